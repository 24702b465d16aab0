import type { Clock } from "../../kernel/clock.ts";
import type { Config } from "../../kernel/config.ts";
import { fetchLogo, isAddress, type Logo, logoFrom, readLogo } from "./logo.ts";
import { settings } from "./settings.ts";

/** Whose mails these are: the part of every mail that the installation decides. */
export interface Brand {
  readonly name: string;
  /** `#rrggbb`: buttons and the mark beside the name. */
  readonly accent: string;
  /** What is readable on the accent. */
  readonly onAccent: string;
  /** The postal address that laws of many countries want below mails to a list. */
  readonly address: string | undefined;
  readonly logo?: Logo;
}

/** What is worked out once for each configuration; a logo that must be fetched is added when it has come. */
interface Known {
  brand: Brand;
  fetched: Promise<Brand> | undefined;
  fetchedAt: number;
}

const known = new WeakMap<Config, Known>();
/** Seconds after which a logo from elsewhere is looked at again. */
const FRESH = 3600;

function knownOf(config: Config): Known {
  const held = known.get(config);
  if (held) return held;
  const accent = config.get(settings.brandAccent);
  const source = config.get(settings.brandLogo);
  const logo = source === undefined || isAddress(source) ? undefined : logoFrom(config, readLogo(source));
  const brand = {
    name: config.get(settings.brandName),
    accent,
    onAccent: readableOn(accent),
    address: config.get(settings.postalAddress),
    ...(logo ? { logo } : {}),
  };
  const fresh = { brand, fetched: undefined, fetchedAt: Number.NEGATIVE_INFINITY };
  known.set(config, fresh);
  return fresh;
}

/** The brand as far as it is known here; `readyBrand` also waits for a logo from elsewhere. */
export function brandOf(config: Config): Brand {
  return knownOf(config).brand;
}

/** The whole brand. Raises `template_asset_unreachable` or `template_too_slow` while its logo cannot be had. */
export function readyBrand({ config, clock }: { config: Config; clock: Clock }): Brand | Promise<Brand> {
  const held = knownOf(config);
  const source = config.get(settings.brandLogo);
  if (source === undefined || !isAddress(source)) return held.brand;
  if (held.brand.logo && clock.monotonic() - held.fetchedAt < FRESH) return held.brand;
  // Everybody who needs it now waits for the same request.
  held.fetched ??= fetchLogo(source, clock)
    .then((picture) => {
      held.brand = { ...held.brand, logo: logoFrom(config, picture) };
      held.fetchedAt = clock.monotonic();
      return held.brand;
    })
    .catch((error: unknown) => {
      // One that is known goes on serving: an old logo is better than no mail.
      if (!held.brand.logo) throw error;
      held.fetchedAt = clock.monotonic();
      return held.brand;
    })
    .finally(() => {
      held.fetched = undefined;
    });
  return held.fetched;
}

/** White or near-black, whichever has more contrast (WCAG 2 relative luminance). */
function readableOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.06 ? "#ffffff" : "#10161d";
}

import type { Config } from "../../kernel/config.ts";
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
}

export function brandOf(config: Config): Brand {
  const accent = config.get(settings.brandAccent);
  return {
    name: config.get(settings.brandName),
    accent,
    onAccent: readableOn(accent),
    address: config.get(settings.postalAddress),
  };
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

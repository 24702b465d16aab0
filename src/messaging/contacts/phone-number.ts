import { type CountryCode, parsePhoneNumberFromString } from "libphonenumber-js/max";
import type { Context } from "../../jobs/context.ts";
import { errors } from "./errors.ts";
import { settings } from "./settings.ts";

/** Longer texts are no phone numbers, however they are punctuated. */
const LONGEST = 64;

/** A phone number as people write it, as E.164. A number without a country code is read as one of `country`. */
export function toE164(text: string, country?: string): { readonly number: string; readonly country?: string } {
  const parsed =
    text.length > LONGEST
      ? undefined
      : parsePhoneNumberFromString(text, { defaultCountry: country as CountryCode, extract: false });
  if (!parsed?.isValid() || parsed.ext !== undefined) throw errors.invalid_phone_number();
  return { number: parsed.number, country: parsed.country };
}

/** The same for a number that texts are to be sent to: its country must be one that is served. */
export function parsePhoneNumber(ctx: Pick<Context, "config">, text: string, country?: string): string {
  const allowed = ctx.config.get(settings.allowedCountries);
  const { number, country: found } = toE164(text, country);
  if (allowed.length > 0 && (found === undefined || !allowed.includes(found)))
    throw errors.country_not_allowed({ detail: { country: found ?? null } });
  return number;
}

import { domainToASCII } from "node:url";
import { z } from "zod";

/**
 * The one rule for email addresses: what people add, what is queued, what a header may hold and what can be suppressed is
 * the same set, so that nothing which one part took is refused by the next.
 *
 *   local part  1 to 64 of the characters that need no quotes, ASCII; dots only between others
 *   domain      two labels or more, in the ASCII form (punycode) that every server takes; or localhost
 *   whole       3 to 254 characters, with their case as it was typed: some servers care
 */
const LONGEST = 254;
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/** The last label is never a number: such domains are addresses of machines. */
const ADDRESS = new RegExp(
  `^(?=.{1,64}@)${ATOM}(?:\\.${ATOM})*@(?:localhost|(?:${LABEL}\\.)+(?![0-9]+$)${LABEL})$`,
  "i",
);
/** Longer texts are not even looked at: punycode makes a domain longer, never an address out of a novel. */
const LONGEST_TYPED = 511;
// ASCII signs other than letters, digits, dots and hyphens would be read as parts of a URL when a domain is translated.
const FOREIGN_DOMAIN = /^(?:[A-Za-z0-9.-]|[^\p{ASCII}\p{Cc}\p{Z}])+$/u;

/** Whether this is an address in the form in which addresses are kept. */
export function isEmailAddress(text: string): boolean {
  return text.length <= LONGEST && ADDRESS.test(text);
}

/** The address that somebody typed, as it is kept: without surrounding space, its domain in ASCII. */
export function parseEmailAddress(typed: string): string | undefined {
  if (typed.length > LONGEST_TYPED) return undefined;
  const text = typed.trim();
  if (isEmailAddress(text)) return text;
  const at = text.lastIndexOf("@");
  const domain = text.slice(at + 1);
  // An ASCII domain is kept or refused as it is: translating it would turn numbers into addresses of machines.
  if (at < 1 || !/[^\p{ASCII}]/u.test(domain) || !FOREIGN_DOMAIN.test(domain)) return undefined;
  const translated = `${text.slice(0, at)}@${domainToASCII(domain)}`;
  return isEmailAddress(translated) ? translated : undefined;
}

/** An address as people type it. */
export const EmailAddress = z
  .string()
  .max(LONGEST_TYPED)
  .overwrite((typed) => parseEmailAddress(typed) ?? typed)
  .refine(isEmailAddress, "is not an email address")
  .meta({ description: "An email address; a domain in another script is kept in its ASCII form" });

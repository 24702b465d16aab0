import { z } from "zod";

export const LONGEST_EMAIL = 511;

/** An address as people type it: surrounding space is dropped, letters keep their case. */
export const EmailAddress = z
  .string()
  .trim()
  .max(LONGEST_EMAIL)
  .pipe(z.email())
  .meta({ description: "An email address" });

export function isEmailAddress(text: string): boolean {
  return EmailAddress.safeParse(text).success;
}

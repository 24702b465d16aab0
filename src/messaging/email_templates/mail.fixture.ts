import fc from "fast-check";
import PostalMime, { type Email } from "postal-mime";
import { Config } from "../../kernel/config.ts";
import { brandOf } from "./brand.ts";
import type { Mail } from "./mail.ts";

export const brand = brandOf(new Config([]));

export const plainMail: Mail = {
  from: { name: "Carillon", address: "bells@carillon.example" },
  to: "ada@example.com",
  subject: "Your daily reminder",
  html: "<p>Hello</p>",
  text: "Hello",
  date: 1_790_000_000,
  messageId: "crl_em_1@carillon.example",
};

export const parse = (raw: Buffer): Promise<Email> => PostalMime.parse(raw);

/** Text as parsers give it: one kind of line break, and perhaps more at the end. */
export const settled = (text: string | undefined) => (text ?? "").replaceAll(/\r\n?/g, "\n").replace(/\n+$/, "");

/** Any well-formed text, from plain words to bells and other scripts. */
export const anyText = (maxLength: number) =>
  fc.oneof(
    fc.string({ unit: "grapheme", maxLength }),
    fc.string({ unit: "grapheme-ascii", maxLength }),
    fc.string({
      unit: fc.constantFrom(" ", "=", ".", "\t", "F", "From ", "\n", "ü", "鐘", "🔔", "=?", "--", "=_"),
      maxLength,
    }),
  );

/** The same on one line. */
export const anyLine = (maxLength: number) =>
  anyText(maxLength).map((text) => text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, " "));

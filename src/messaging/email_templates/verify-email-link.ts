import { z } from "zod";
import { hours, inHours, line, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const verifyEmailLink = defineTemplate({
  slug: "verifyEmailLink",
  title: "Confirm your email address",
  doc: "Proves that somebody reads this mailbox: they follow the link.",
  list: null,
  parameters: z.object({ name: line(100).optional(), url: webUrl(), hours: hours() }),
  secret: ["url"],
  subject: "Confirm your email address",
  preheader: (p) => `One click, and it is yours. The link works for ${inHours(p.hours)}.`,
  reason: "somebody added this address to an account",
  lifetime: (p) => p.hours * 3600,
  examples: [
    { name: "Ada", url: "https://app.example.com/verify?token=s2Jd8Kq0vXw4RtYb7NcE1A", hours: 24 },
    { url: "https://app.example.com/verify?token=s2Jd8Kq0vXw4RtYb7NcE1A", hours: 1 },
  ],
  html: ({ html, given, heading, paragraph, note, button, address }) => [
    heading(html`Confirm your email address`),
    given(
      (p) => p.name,
      (pen) => pen.paragraph(pen.html`Hi ${(name) => name},`),
    ),
    paragraph(html`Please confirm that this address is yours:`),
    button((p) => p.url, "Confirm address"),
    note(html`The link works for ${(p) => inHours(p.hours)}. If you do not know what this is about, ignore this mail: nothing
      happens.`),
    address((p) => p.url),
  ],
  text: ({ text, given }) => text`
    Confirm your email address

    ${given(
      (p) => p.name,
      (pen) => pen.text`Hi ${(name) => name},

        `,
    )}Please confirm that this address is yours:

    ${(p) => p.url}

    The link works for ${(p) => inHours(p.hours)}. If you do not know what this is
    about, ignore this mail: nothing happens.`,
});

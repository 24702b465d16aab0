import { z } from "zod";
import { hours, inHours, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const resetPasswordLink = defineTemplate({
  slug: "resetPasswordLink",
  title: "Choose a new password",
  doc: "Lets the owner of a mailbox set a new password: they follow the link.",
  list: null,
  parameters: z.object({ url: webUrl(), hours: hours() }),
  secret: ["url"],
  subject: "Choose a new password",
  preheader: (p) => `The link inside works once, for ${inHours(p.hours)}.`,
  reason: "somebody asked to reset the password of this account",
  lifetime: (p) => p.hours * 3600,
  examples: [{ url: "https://app.example.com/reset?token=Qm4Zp1sT8yLw0BvKd6RxHc", hours: 1 }],
  html: ({ html, heading, paragraph, note, button, address }) => [
    heading(html`Choose a new password`),
    paragraph(html`Somebody, hopefully you, wants to reset the password of this account.`),
    button((p) => p.url, "Choose a new password"),
    note(html`The link works once, for ${(p) => inHours(p.hours)}. If it was not you who asked, ignore this mail: your password
      stays as it is.`),
    address((p) => p.url),
  ],
  text: ({ text }) => text`
    Choose a new password

    Somebody, hopefully you, wants to reset the password of this account.
    To choose a new one, open:

    ${(p) => p.url}

    The link works once, for ${(p) => inHours(p.hours)}. If it was not you who
    asked, ignore this mail: your password stays as it is.`,
});

import { z } from "zod";
import { code, mailbox } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const resetPassword = defineTemplate({
  slug: "resetPassword",
  title: "Reset your password",
  doc: "Lets the owner of a mailbox set a new password: they type the code on the page that asked for it.",
  list: null,
  parameters: z.object({ code: code(), email: mailbox() }),
  secret: ["code"],
  subject: "Reset your password",
  preheader: () => "Enter the code inside to choose a new password.",
  reason: "somebody asked to reset the password of this account",
  lifetime: 1500,
  examples: [{ code: "907 261", email: "ada@example.com" }],
  html: ({ html, heading, paragraph, note, code: shown }) => [
    heading(html`Reset your password`),
    paragraph(html`To choose a new password for <strong>${(p) => p.email}</strong>, enter this code:`),
    shown((p) => p.code),
    note(html`If it was not you who asked, ignore this mail: your password stays as it is.`),
  ],
  text: ({ text }) => text`
    Reset your password

    To choose a new password for ${(p) => p.email},
    enter this code:

    ${(p) => p.code}

    If it was not you who asked, ignore this mail: your password stays as
    it is.`,
});

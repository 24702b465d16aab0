import { z } from "zod";
import { mailbox, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const passwordChanged = defineTemplate({
  slug: "passwordChanged",
  title: "Your password was changed",
  doc: "Tells the owner of an account that its password is a new one, in case it was not them.",
  list: null,
  parameters: z.object({ email: mailbox(), url: webUrl().optional() }),
  subject: "Your password was changed",
  preheader: () => "If this was you, there is nothing to do.",
  reason: "the password of your account was changed",
  examples: [{ email: "ada@example.com", url: "https://app.example.com/reset" }, { email: "ada@example.com" }],
  html: ({ html, given, heading, paragraph, note }) => [
    heading(html`Your password was changed`),
    paragraph(html`The password for <strong>${(p) => p.email}</strong> is a new one, and every device was signed out.`),
    paragraph(html`If this was you, there is nothing to do.`),
    given(
      (p) => p.url,
      (pen) =>
        pen.html`${pen.paragraph(pen.html`If it was not, take your account back now:`)}
          ${pen.button((url) => url, "It was not me")}`,
    ),
    note(html`Nobody from ${(_, brand) => brand.name} will ever ask you for your password.`),
  ],
  text: ({ text, given }) => text`
    Your password was changed

    The password for ${(p) => p.email} is a new one,
    and every device was signed out.

    If this was you, there is nothing to do.
    ${given(
      (p) => p.url,
      (pen) => pen.text`
        If it was not, take your account back now:

        ${(url) => url}
        `,
    )}
    Nobody from ${(_, brand) => brand.name} will ever ask you for your password.`,
});

import { z } from "zod";
import { code } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const verifyEmailCode = defineTemplate({
  slug: "verifyEmailCode",
  title: "Your security code",
  doc: "Proves that somebody reads this mailbox: they type the code where they were asked for it.",
  list: null,
  parameters: z.object({ code: code() }),
  secret: ["code"],
  subject: "Your security code",
  // The code is not in the line of preview: that line is read on locked screens.
  preheader: () => "Enter it where you were asked for it.",
  reason: "somebody entered this address to sign in or to verify it",
  lifetime: 1500,
  examples: [{ code: "482 913" }, { code: "K7QX-9M2D" }],
  html: ({ html, heading, paragraph, note, code: shown }) => [
    heading(html`Your security code`),
    paragraph(html`Enter this code where you were asked for it:`),
    shown((p) => p.code),
    note(html`Nobody from ${(_, brand) => brand.name} will ever ask you for it. If you did not request a code, ignore this
      mail: without it nobody gets in.`),
  ],
  text: ({ text }) => text`
    Your security code

    ${(p) => p.code}

    Enter it where you were asked for it.

    Nobody from ${(_, brand) => brand.name} will ever ask you for it. If you did
    not request a code, ignore this mail: without it nobody gets in.`,
});

import { z } from "zod";
import { line, prose } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const sample = defineTemplate({
  slug: "sample",
  title: "Sample",
  doc: "A mail that does nothing: to try a provider, a mailbox or the look of the frame.",
  list: null,
  parameters: z.object({ name: line(100), message: prose(2000) }),
  subject: "A sample mail",
  preheader: (p) => p.message.slice(0, 140),
  reason: "somebody tried whether mail arrives",
  examples: [{ name: "Ada", message: "If you can read this, mail works.\n\nNothing else needs to be done." }],
  html: ({ html, lines, heading, paragraph }) => [
    heading(html`Hello ${(p) => p.name}`),
    paragraph(lines((p) => p.message)),
  ],
  text: ({ text }) => text`
    Hello ${(p) => p.name}

    ${(p) => p.message}`,
});

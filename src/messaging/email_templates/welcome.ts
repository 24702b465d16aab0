import { z } from "zod";
import { line, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const welcome = defineTemplate({
  slug: "welcome",
  title: "Welcome",
  doc: "Greets somebody who has just joined, and leads them in.",
  list: "announcements",
  parameters: z.object({ name: line(100), url: webUrl(), unsubscribeUrl: webUrl() }),
  subject: (p) => `Welcome, ${p.name}`,
  preheader: () => "It is good to have you here.",
  reason: "you have just created an account",
  examples: [
    {
      name: "Ada",
      url: "https://app.example.com/start",
      unsubscribeUrl: "https://app.example.com/l/k3Jd9sQ0",
    },
  ],
  html: ({ html, heading, paragraph, button }) => [
    heading(html`Welcome, ${(p) => p.name}`),
    paragraph(html`It is good to have you here. A few minutes a day are enough to make it a habit, and today is a good day to
      start.`),
    button((p) => p.url, "Begin"),
    paragraph(html`See you soon,<br>${(_, brand) => brand.name}`),
  ],
  text: ({ text }) => text`
    Welcome, ${(p) => p.name}

    It is good to have you here. A few minutes a day are enough to make it
    a habit, and today is a good day to start:

    ${(p) => p.url}

    See you soon,
    ${(_, brand) => brand.name}`,
});

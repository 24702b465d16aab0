import { z } from "zod";
import { line, prose, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const dailyReminder = defineTemplate({
  slug: "dailyReminder",
  title: "Daily reminder",
  doc: "Reminds somebody, at the time of day that they chose, of what they wanted to do.",
  list: "reminders",
  parameters: z.object({ name: line(100), message: prose(500), url: webUrl(), unsubscribeUrl: webUrl() }),
  subject: "Your daily reminder",
  preheader: (p) => p.message,
  reason: "you chose to be reminded every day",
  examples: [
    {
      name: "Ada",
      message: "Take one minute to breathe before the day begins.",
      url: "https://app.example.com/l/4Wq9",
      unsubscribeUrl: "https://app.example.com/l/unsubscribe-k3Jd9sQ0",
    },
    {
      name: "Ludovica-Alessandra della Rocca",
      message: "Good morning.\nToday's class is about <patience> & rest.",
      url: "https://app.example.com/l/4Wq9",
      unsubscribeUrl: "https://app.example.com/l/unsubscribe-k3Jd9sQ0",
    },
  ],
  html: ({ html, lines, heading, paragraph, button }) => [
    heading(html`Hi ${(p) => p.name},`),
    paragraph(lines((p) => p.message)),
    button((p) => p.url, "I am ready"),
  ],
  text: ({ text }) => text`
    Hi ${(p) => p.name},

    ${(p) => p.message}

    ${(p) => p.url}`,
});

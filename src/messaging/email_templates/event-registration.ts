import { z } from "zod";
import { calendarFile, whenInWords } from "./calendar.ts";
import { line, moment, timezone, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

export const eventRegistration = defineTemplate({
  slug: "eventRegistration",
  title: "You are registered",
  doc: "Confirms a place at an event, with the event as a calendar file.",
  list: null,
  parameters: z
    .object({
      name: line(100),
      title: line(200),
      starts_at: moment(),
      ends_at: moment(),
      timezone: timezone(),
      venue: line(300),
      url: webUrl(),
    })
    .refine((p) => p.ends_at >= p.starts_at, { path: ["ends_at"], message: "is before starts_at" }),
  subject: (p) => `You are registered: ${p.title}`,
  preheader: (p) => `${whenInWords(p.starts_at, p.ends_at, p.timezone)} at ${p.venue}`,
  reason: "you registered for this event",
  examples: [
    {
      name: "Ada",
      title: "An evening of bells",
      starts_at: 1_798_822_800,
      ends_at: 1_798_830_000,
      timezone: "Europe/Brussels",
      venue: "St. Rumbold's Tower, Mechelen",
      url: "https://app.example.com/e/an-evening-of-bells",
    },
    {
      name: "Grace",
      title: "Night watch: from dusk till dawn",
      starts_at: 1_781_920_800,
      ends_at: 1_781_953_200,
      timezone: "America/New_York",
      venue: "Online",
      url: "https://app.example.com/e/night-watch",
    },
  ],
  html: ({ html, heading, paragraph, facts, button, note }) => [
    heading(html`You are in, ${(p) => p.name}`),
    paragraph(html`Your place is reserved. We look forward to seeing you.`),
    facts([
      ["What", html`<strong>${(p) => p.title}</strong>`],
      ["When", html`${(p) => whenInWords(p.starts_at, p.ends_at, p.timezone)}`],
      ["Where", html`${(p) => p.venue}`],
    ]),
    button((p) => p.url, "Open the event"),
    note(html`The attached file puts it into your calendar. If you cannot come, please say so on the event's page: somebody else
      may be waiting for a place.`),
  ],
  text: ({ text }) => text`
    You are in, ${(p) => p.name}

    Your place is reserved. We look forward to seeing you.

    What:  ${(p) => p.title}
    When:  ${(p) => whenInWords(p.starts_at, p.ends_at, p.timezone)}
    Where: ${(p) => p.venue}

    ${(p) => p.url}

    The attached file puts it into your calendar. If you cannot come,
    please say so on the event's page: somebody else may be waiting for a
    place.`,
  attachments: (p, at) => [
    {
      filename: "event.ics",
      contentType: "text/calendar; charset=utf-8; method=PUBLISH",
      content: calendarFile({ ...p, at }),
    },
  ],
});

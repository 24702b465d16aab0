import { z } from "zod";
import { line, prose, webUrl } from "./parameters.ts";
import { defineTemplate } from "./template.ts";

const picture = z.strictObject({
  url: webUrl(),
  width: z.number().int().min(1).max(2000),
  height: z.number().int().min(1).max(4000),
  alt: line(300),
});

export const announcement = defineTemplate({
  slug: "announcement",
  title: "Announcement",
  doc: "News to everybody on the list: a headline, some paragraphs, perhaps a picture and one thing to do.",
  list: "announcements",
  parameters: z.object({
    headline: line(150),
    paragraphs: z.array(prose(2000)).min(1).max(12),
    cta: z.strictObject({ text: line(40), url: webUrl() }).optional(),
    image: picture.optional(),
    unsubscribeUrl: webUrl(),
  }),
  subject: (p) => p.headline,
  preheader: (p) => p.paragraphs[0]!.slice(0, 140),
  reason: "you asked to hear about news",
  examples: [
    {
      headline: "Evening sessions are here",
      paragraphs: [
        "Many of you asked for something quiet before sleep. From today there is a new session every evening at nine, each led by another teacher.",
        "They last ten minutes, and you can come as you are.",
      ],
      cta: { text: "See tonight's session", url: "https://app.example.com/l/evening" },
      image: {
        url: "https://images.example.com/evening.png",
        width: 560,
        height: 280,
        alt: "A lake at dusk",
      },
      unsubscribeUrl: "https://app.example.com/l/unsubscribe-k3Jd9sQ0",
    },
    {
      headline: "We are away for one hour on Sunday",
      paragraphs: ["On Sunday between two and three in the morning (UTC) we move to new machines."],
      unsubscribeUrl: "https://app.example.com/l/unsubscribe-k3Jd9sQ0",
    },
  ],
  html: ({ html, given, each, heading }) => [
    given(
      (p) => p.image,
      (pen) => pen.image({ url: (i) => i.url, width: (i) => i.width, height: (i) => i.height, alt: (i) => i.alt }),
    ),
    heading(html`${(p) => p.headline}`),
    each(
      (p) => p.paragraphs,
      (pen) => pen.paragraph(pen.lines((own) => own)),
    ),
    given(
      (p) => p.cta,
      (pen) =>
        pen.button(
          (cta) => cta.url,
          (cta) => cta.text,
        ),
    ),
  ],
  text: ({ text, given, each }) => text`
    ${(p) => p.headline}
    ${each(
      (p) => p.paragraphs,
      (pen) => pen.text`
        ${(own) => own}
        `,
    )}${given(
      (p) => p.cta,
      (pen) => pen.text`
        ${(cta) => cta.text}: ${(cta) => cta.url}`,
    )}`,
});

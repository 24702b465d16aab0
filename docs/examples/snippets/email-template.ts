import { z } from "zod";
import {
  type Brand,
  composeMime,
  defineTemplate,
  line,
  mailFor,
  prepareMail,
  TemplateBook,
  webUrl,
} from "../../../src/messaging/email_templates/service.ts";

export const streak = defineTemplate({
  slug: "streak",
  title: "Your streak",
  doc: "Congratulates somebody on days in a row.",
  list: "announcements",
  parameters: z.object({
    name: line(100),
    days: z.number().int().min(2),
    friends: z.array(line(100)).max(5),
    url: webUrl(),
    unsubscribeUrl: webUrl(),
  }),
  subject: (p) => `${p.days} days in a row`,
  preheader: (p) => `Well done, ${p.name}.`,
  reason: "you asked to hear about your progress",
  examples: [
    {
      name: "Ada",
      days: 7,
      friends: ["Grace", "Edsger"],
      url: "https://app.example.com/l/streak",
      unsubscribeUrl: "https://app.example.com/l/leave",
    },
  ],
  html: ({ html, each, heading, paragraph, button }) => [
    heading(html`${(p) => p.days} days in a row`),
    paragraph(html`Well done, ${(p) => p.name}. These people kept you company:`),
    each(
      (p) => p.friends,
      (pen) => pen.paragraph(pen.html`${(friend) => friend}`),
    ),
    button((p) => p.url, "Go on"),
  ],
  text: ({ text, each }) => text`
    ${(p) => p.days} days in a row

    Well done, ${(p) => p.name}. These people kept you company:
    ${each(
      (p) => p.friends,
      (pen) => pen.text`
        ${(friend) => friend}`,
    )}

    ${(p) => p.url}`,
});

export function streakMail(parameters: z.input<typeof streak.parameters>, brand: Brand, at: number): Buffer {
  const { template, subject, html, text } = prepareMail("streak", parameters, brand, new TemplateBook([streak]));
  const mail = mailFor(
    template,
    { html, text },
    {
      uid: "crl_em_1",
      from: { name: brand.name, address: "bells@example.com" },
      to: "ada@example.com",
      subject,
      date: at,
      listUnsubscribe: { url: "https://app.example.com/api/1/emails/unsubscribe/1.token" },
    },
  );
  return composeMime(mail);
}

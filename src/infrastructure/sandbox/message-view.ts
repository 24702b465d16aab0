import { z } from "zod";
import { CHANNELS, type Inbox, type SandboxMessage } from "../../sandbox/inbox.ts";

export const MessageSummary = z.object({
  id: z.string(),
  channel: z.enum(CHANNELS),
  direction: z.enum(["out", "in"]),
  provider: z.enum(["expo", "twilio", "ses", "smtp"]),
  provider_id: z.string(),
  to: z.string(),
  from: z.string().nullable(),
  subject: z.string().nullable(),
  /** The template of a mail, where the provider was told it. */
  template: z.string().nullable(),
  text: z.string(),
  at: z.number(),
  status: z.string(),
});

const Step = z.object({ status: z.string(), at: z.number(), error: z.string().nullable() });

export const MessageDetail = MessageSummary.extend({
  /** What has happened to it, oldest first. */
  history: z.array(Step),
  /** Calls of webhooks about it, and what the house answered. */
  webhooks: z.array(z.object({ kind: z.string(), url: z.string(), at: z.number(), answered: z.number().nullable() })),
  fields: z.record(z.string(), z.unknown()),
  mail: z
    .object({
      html: z.string().nullable(),
      headers: z.array(z.object({ name: z.string(), value: z.string() })),
      attachments: z.array(
        z.object({
          filename: z.string().nullable(),
          content_type: z.string(),
          size: z.number(),
          inline: z.boolean(),
        }),
      ),
      links: z.array(z.string()),
      code: z.string().nullable(),
      one_click_url: z.string().nullable(),
    })
    .nullable(),
});

export function summaryOf(inbox: Inbox, message: SandboxMessage): z.input<typeof MessageSummary> {
  const { id, channel, direction, provider, provider_id, to, from, subject, text, at } = message;
  const { status } = inbox.statusOf(message);
  return {
    id,
    channel,
    direction,
    provider,
    provider_id,
    to,
    from,
    subject,
    template: templateOf(message),
    text,
    at,
    status,
  };
}

/** The simulated provider keeps the tags of a mail as they were given. */
function templateOf({ fields: { tags } }: SandboxMessage): string | null {
  const template = (tags as Readonly<Record<string, unknown>> | undefined)?.template;
  return typeof template === "string" ? template : null;
}

export function detailOf(inbox: Inbox, message: SandboxMessage): z.input<typeof MessageDetail> {
  const { mail } = message;
  return {
    ...summaryOf(inbox, message),
    history: inbox.historyOf(message).map(({ status, at, error }) => ({ status, at, error: error ?? null })),
    webhooks: message.webhooks,
    fields: message.fields,
    mail: mail
      ? {
          html: mail.html,
          headers: [...mail.headers],
          attachments: [...mail.attachments],
          links: [...mail.links],
          code: mail.code,
          one_click_url: mail.one_click_url,
        }
      : null,
  };
}

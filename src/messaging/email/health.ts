import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { emailSettings } from "../../providers/settings.ts";
import { keys } from "./keys.ts";
import { listsPause, reputationOf } from "./reputation.ts";

const Level = z.enum(["good", "warning", "critical"]);
/** Seconds for which what the provider said of our quota is shown to people. */
const QUOTA_SHOWN = 60;

export const Health = z.object({
  providers: z.array(z.string()).meta({ description: "Configured ones, the preferred first; none means the sandbox" }),
  sending_enabled: z.boolean().nullable(),
  quota: z.object({ max_24h: z.number(), sent_24h: z.number(), max_per_second: z.number() }).nullable(),
  topics: z.array(z.string()),
  last_webhook_at: z
    .number()
    .nullable()
    .meta({ description: "When a topic last reported, to the second; null before the first report" }),
  signatures: z
    .enum(["provider", "own", "none"])
    .meta({ description: "Who signs mails with DKIM: the provider, this installation, or as far as it knows nobody" }),
  reputation: z
    .object({
      days: z.number(),
      accepted: z.number(),
      bounced: z.number(),
      complained: z.number(),
      bounce_rate: z.number(),
      bounce_level: Level,
      complaint_rate: z.number(),
      complaint_level: Level,
    })
    .nullable()
    .meta({ description: "Of the last seven days; null while the database is away" }),
  lists: z.object({
    paused: z.boolean(),
    since: z.number().nullable(),
    reason: z.string().nullable(),
    aside: z.number(),
  }),
});

export async function healthOf(ctx: Context): Promise<z.input<typeof Health>> {
  const { commands, topology } = ctx.redis;
  const [quota, reputation, heard, pause, aside] = await Promise.all([
    ctx.providers.email.quota(QUOTA_SHOWN).catch(() => undefined),
    reputationOf(ctx).catch(() => null),
    commands.getBuffer(topology.key(keys.lastWebhook())),
    listsPause(ctx),
    commands.llen(topology.key(keys.paused())),
  ]);
  const providers = ctx.config.get(emailSettings.provider);
  return {
    providers: [...providers],
    sending_enabled: quota?.sendingEnabled ?? null,
    quota: quota ? { max_24h: quota.max24h, sent_24h: quota.sent24h, max_per_second: quota.maxPerSecond } : null,
    topics: [...ctx.config.get(emailSettings.snsTopicArns)],
    last_webhook_at: heard === null ? null : keys.lastWebhook.codec.decode(heard),
    signatures:
      providers[0] === "smtp"
        ? ctx.config.get(emailSettings.smtpDkimDomain) === undefined
          ? "none"
          : "own"
        : "provider",
    reputation,
    lists: {
      paused: pause?.paused ?? false,
      since: pause?.paused ? pause.at : null,
      reason: pause?.paused ? pause.reason : null,
      aside,
    },
  };
}

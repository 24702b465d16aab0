import type { Context } from "../../jobs/context.ts";
import { calendarOf, readCounts } from "../../mechanisms/dated-counters/index.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

/**
 * How mailboxes see us, and the guard over it. Mail providers stop accounts whose mails bounce or are called unwanted too
 * often, and then nobody gets a sign-in code any more. So mails of lists pause by themselves before that happens; all
 * others go on.
 *
 *   open ──a rate reaches its limit──▶ paused ──an administrator──▶ open, judged by the days after it alone
 *
 * Redis is authoritative (`email:lists_pause`). A paused mail is set aside whole and in order by the send job, and brought
 * back when lists are open again.
 */
const WINDOW_DAYS = 7;

/** Shares of accepted mails from which a rate worries us, and from which providers act. */
export const LEVELS = {
  bounce: { warning: 0.05, critical: 0.1 },
  complaint: { warning: 0.001, critical: 0.005 },
} as const;

export type Level = "good" | "warning" | "critical";

export interface Reputation {
  readonly days: number;
  readonly accepted: number;
  readonly bounced: number;
  readonly complained: number;
  readonly bounce_rate: number;
  readonly bounce_level: Level;
  readonly complaint_rate: number;
  readonly complaint_level: Level;
}

type ReputationContext = Pick<Context, "redis" | "sql" | "clock" | "config">;

/** The last seven days, or those of them that begin with `from`. */
export async function reputationOf(ctx: ReputationContext, from = 0): Promise<Reputation> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const first = Math.max(from, today - WINDOW_DAYS + 1);
  const [sent, news] = await Promise.all([
    readCounts(ctx, emailSendStats, first, today + 1),
    readCounts(ctx, emailEventStats, first, today + 1),
  ]);
  const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0);
  const accepted = sum([...sent.days.values()].map(({ counts }) => counts.accepted ?? 0));
  // Full mailboxes and holidays are reported as passing bounces; providers do not hold them against a sender.
  const bounced = sum(
    [...news.days.values()].flatMap(({ breakdowns }) =>
      Object.entries(breakdowns.bounced ?? {}).map(([word, count]) => (word.split(":")[1] === "Transient" ? 0 : count)),
    ),
  );
  const complained = sum([...news.days.values()].map(({ counts }) => counts.complaint ?? 0));
  const rate = (count: number) => (accepted === 0 ? 0 : count / accepted);
  return {
    days: Math.max(0, today + 1 - first),
    accepted,
    bounced,
    complained,
    bounce_rate: rate(bounced),
    bounce_level: levelOf(rate(bounced), LEVELS.bounce),
    complaint_rate: rate(complained),
    complaint_level: levelOf(rate(complained), LEVELS.complaint),
  };
}

function levelOf(rate: number, { warning, critical }: { readonly warning: number; readonly critical: number }): Level {
  if (rate >= critical) return "critical";
  return rate >= warning ? "warning" : "good";
}

export interface ListsPause {
  readonly paused: boolean;
  /** When it began, or when an administrator ended it. */
  readonly at: number;
  readonly reason: string;
}

export async function listsPause({ redis }: Pick<Context, "redis">): Promise<ListsPause | undefined> {
  const raw = await redis.commands.getBuffer(redis.topology.key(keys.listsPause()));
  return raw === null ? undefined : keys.listsPause.codec.decode(raw);
}

export async function writeListsPause({ redis }: Pick<Context, "redis">, pause: ListsPause): Promise<void> {
  await redis.commands.set(redis.topology.key(keys.listsPause()), keys.listsPause.codec.encode(pause));
}

/** Pauses mails of lists when a rate has reached its limit. Answers whether they are paused now. */
export async function guardReputation(ctx: ReputationContext & Pick<Context, "alerts">): Promise<boolean> {
  const before = await listsPause(ctx);
  if (before?.paused) return true;
  // What led to a pause that was ended is known; only what came after it can lead to the next.
  const from = before ? calendarOf(ctx).unixDate(before.at) + 1 : 0;
  const { accepted, bounce_rate, complaint_rate, bounce_level, complaint_level } = await reputationOf(ctx, from);
  const isBad = bounce_level !== "good" || complaint_level !== "good";
  if (!isBad || accepted < ctx.config.get(settings.reputationMinimum)) return false;
  const percent = (rate: number) => `${(rate * 100).toFixed(2)} %`;
  const reason = `of ${accepted} mails ${percent(bounce_rate)} bounced and ${percent(complaint_rate)} were called unwanted`;
  await writeListsPause(ctx, { paused: true, at: ctx.clock.now(), reason });
  ctx.alerts.warning("emails:lists_paused", `mails of lists are paused: ${reason}`, { urgent: true });
  return true;
}

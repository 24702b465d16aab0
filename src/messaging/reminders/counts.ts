import { sql } from "kysely";
import type { Context, JobContext } from "../../jobs/context.ts";
import { correctPreferences, PREFERENCES, preferenceCounts } from "../../people/users/service.ts";
import type { TouchChannel } from "../touch/service.ts";
import { countKeys } from "./keys.ts";
import { truePreferences } from "./preferences.ts";
import type { ReminderTables } from "./tables.ts";
import { REMINDER_CHANNELS } from "./window.ts";

export type ChannelCounts = Readonly<Record<TouchChannel, number>>;

/** So many looks in a row must see the same difference before it is believed: registrations change meanwhile. */
const LOOKS = 5;
const PAUSE = 1;
const PATIENCE = 60;

/** How many people get reminders, as it is counted. */
export async function readCounts({ redis }: Pick<Context, "redis">): Promise<ChannelCounts> {
  const held = await redis.commands.hgetall(redis.topology.key(countKeys.counts()));
  return { email: Number(held.email ?? 0), sms: Number(held.sms ?? 0), push: Number(held.push ?? 0) };
}

/** The same as SQL has it. */
async function trueCounts(ctx: Pick<Context, "sql">): Promise<ChannelCounts> {
  const { rows } = await sql<{ channel: TouchChannel; count: number }>`
    select channel, count(*)::float8 as count from user_daily_reminders group by channel`.execute(
    ctx.sql.tables<ReminderTables>(),
  );
  const counts = { email: 0, sms: 0, push: 0 };
  for (const { channel, count } of rows) counts[channel] = count;
  return counts;
}

interface Drifting<Name extends string> {
  readonly names: readonly Name[];
  counted(): Promise<Readonly<Record<Name, number>>>;
  actual(): Promise<Readonly<Record<Name, number>>>;
  /** By the difference and not by the value, so that changes meanwhile stay counted. */
  correct(drift: Readonly<Record<Name, number>>): Promise<void>;
}

/** What counts are wrong by, after it was corrected; nothing when they are right, or change too fast to tell. */
async function corrected<Name extends string>(ctx: JobContext, plan: Drifting<Name>): Promise<string | undefined> {
  const until = ctx.clock.monotonic() + PATIENCE;
  let seen = "";
  let times = 0;
  while (ctx.clock.monotonic() < until && !ctx.shuttingDown()) {
    const [counted, actual] = await Promise.all([plan.counted(), plan.actual()]);
    const drift = Object.fromEntries(plan.names.map((name) => [name, actual[name] - counted[name]]));
    if (plan.names.every((name) => drift[name] === 0)) return undefined;
    const text = plan.names.flatMap((name) => (drift[name] === 0 ? [] : [`${name} ${drift[name]}`])).join(", ");
    times = text === seen ? times + 1 : 1;
    seen = text;
    if (times === LOOKS) {
      await plan.correct(drift as Record<Name, number>);
      return seen;
    }
    if (!(await ctx.sleep(PAUSE))) return undefined;
  }
  return undefined;
}

/** Corrects how many people get reminders, and how many want texts at which time of day, should that have drifted. */
export async function recheckCounts(ctx: JobContext): Promise<void> {
  const { commands, topology } = ctx.redis;
  const reminders = await corrected(ctx, {
    names: REMINDER_CHANNELS,
    counted: () => readCounts(ctx),
    actual: () => trueCounts(ctx),
    async correct(drift) {
      for (const channel of REMINDER_CHANNELS)
        if (drift[channel] !== 0) await commands.hincrby(topology.key(countKeys.counts()), channel, drift[channel]);
    },
  });
  if (reminders !== undefined)
    ctx.alerts.warning(
      "daily_reminders:counts_drifted",
      `counts of reminders were wrong by ${reminders} and are corrected`,
    );
  const preferences = await corrected(ctx, {
    names: PREFERENCES,
    counted: () => preferenceCounts(ctx),
    actual: () => truePreferences(ctx),
    correct: (drift) => correctPreferences(ctx, drift),
  });
  if (preferences !== undefined)
    ctx.log.warn({ drift: preferences }, "counts of when people want texts were wrong and are corrected");
}

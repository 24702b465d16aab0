import { sql } from "kysely";
import type { Context, JobContext } from "../../jobs/context.ts";
import type { TouchChannel } from "../touch/service.ts";
import { countKeys } from "./keys.ts";
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

/** Corrects counts that drifted, by the difference and not by the value, so that changes meanwhile stay counted. */
export async function recheckCounts(ctx: JobContext): Promise<void> {
  const { commands, topology } = ctx.redis;
  const until = ctx.clock.monotonic() + PATIENCE;
  let seen = "";
  let times = 0;
  while (ctx.clock.monotonic() < until && !ctx.shuttingDown()) {
    const [counted, actual] = await Promise.all([readCounts(ctx), trueCounts(ctx)]);
    const drift = REMINDER_CHANNELS.map((channel) => actual[channel] - counted[channel]);
    if (drift.every((difference) => difference === 0)) return;
    times = drift.join() === seen ? times + 1 : 1;
    seen = drift.join();
    if (times === LOOKS) {
      for (const [at, channel] of REMINDER_CHANNELS.entries())
        if (drift[at] !== 0) await commands.hincrby(topology.key(countKeys.counts()), channel, drift[at]!);
      ctx.alerts.warning(
        "daily_reminders:counts_drifted",
        `counts of reminders were wrong by ${seen} and are corrected`,
      );
      return;
    }
    if (!(await ctx.sleep(PAUSE))) return;
  }
}

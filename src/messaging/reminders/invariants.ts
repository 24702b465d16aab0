import { sql } from "kysely";
import { type Invariant, type InvariantContext, type KeyName, seenTwice } from "../../kernel/keyspace/index.ts";
import { brokenOnOpenDays, openDaysAsIs } from "../../mechanisms/dated-counters/index.ts";
import { leftInPurgatories } from "../../mechanisms/run-report/index.ts";
import { countKeys, keys, queuedReminder } from "./keys.ts";
import { registrationStats, reminderStats } from "./stats.ts";
import type { ReminderTables } from "./tables.ts";
import { REMINDER_CHANNELS } from "./window.ts";

const PAGE = 500;

async function places(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const violations: string[] = [];
  const look = async (key: KeyName<"zset">, other: KeyName<"zset">) => {
    for (let start = 0; ; start += PAGE) {
      const members = await commands.zrangeBuffer(topology.key(key), start, String(start + PAGE - 1));
      if (members.length === 0) return;
      const twice = await commands.zmscore(topology.key(other), ...members);
      for (const [at, member] of members.entries()) {
        if (twice[at] !== null) violations.push(`the reminder ${member} waits and is being sent`);
        try {
          queuedReminder.decode(member);
        } catch (error) {
          violations.push(`a reminder in ${key} cannot be read: ${(error as Error).message}`);
        }
      }
    }
  };
  await look(keys.queued(), keys.sendPurgatory());
  await look(keys.sendPurgatory(), keys.queued());
  return violations;
}

async function progress(ctx: InvariantContext): Promise<readonly string[]> {
  const { commands, topology } = ctx.redis;
  const prefix = topology.key(keys.earliest()).slice(0, -"earliest".length);
  const earliest = Number((await commands.get(topology.key(keys.earliest()))) ?? Number.POSITIVE_INFINITY);
  const violations: string[] = [];
  let cursor = "0";
  do {
    const [next, found] = await commands.scan(cursor, "MATCH", `${prefix}*:*`, "COUNT", PAGE);
    cursor = next;
    for (const name of found) {
      const [, zone, date] = /^(.+):(\d+)$/.exec(name.slice(prefix.length)) ?? [];
      if (!zone || !date) continue;
      if (Number(date) < earliest) violations.push(`day ${date} is older than the earliest that is gone through`);
      if (zone === "timezones") continue;
      const zones = topology.key(keys.zones({ unix_date: Number(date) }));
      if ((await commands.zscore(zones, zone)) === null) violations.push(`day ${date} is not gone through in ${zone}`);
    }
  } while (cursor !== "0");
  return violations;
}

export const invariants: readonly Invariant[] = [
  {
    name: "daily_reminders:in_one_place",
    doc: "A reminder waits for its time or is being sent, and can be read.",
    check: seenTwice(places),
  },
  {
    name: "daily_reminders:purgatory_is_held",
    doc: "What a run of sending reminders took, it finished, unless it was stopped or died; what a dead run left is taken up within ten minutes.",
    check: seenTwice((ctx) =>
      leftInPurgatories(ctx, [{ purgatory: keys.sendPurgatory(), lock: keys.sendLock(), report: keys.sendReport }]),
    ),
  },
  {
    name: "daily_reminders:progress_is_whole",
    doc: "Only zones of open days are gone through.",
    check: seenTwice(progress),
  },
  {
    name: "daily_reminders:counts_are_true",
    doc: "The counts of people who get reminders are those of SQL, or are about to be corrected.",
    check: seenTwice(async (ctx) => {
      const { rows } = await sql<{ channel: string; count: number }>`
        select channel, count(*)::float8 as count from user_daily_reminders group by channel`.execute(
        ctx.sql.tables<ReminderTables>(),
      );
      const { rows: late } =
        await sql`select 1 from stat_deltas where family = ${registrationStats.family} limit 1`.execute(
          ctx.sql.tables(),
        );
      if (late.length > 0) return [];
      const counted = await ctx.redis.commands.hgetall(ctx.redis.topology.key(countKeys.counts()));
      const actual = new Map(rows.map(({ channel, count }) => [channel, count]));
      return REMINDER_CHANNELS.flatMap((channel) => {
        const [is, should] = [Number(counted[channel] ?? 0), actual.get(channel) ?? 0];
        return is === should ? [] : [`daily_reminders:counts ${channel} is ${is}, and SQL has ${should}`];
      });
    }),
  },
  {
    name: "daily_reminders:counts_add_up",
    doc: "On every open day reminders that were tried got a time or were too late, and those with a time were sent or not.",
    check: seenTwice(async (ctx) => {
      const violations = [...(await brokenOnOpenDays(ctx, [reminderStats]))];
      for (const { date, counts } of await openDaysAsIs(ctx, reminderStats)) {
        const { skipped_assigning_time: skipped = 0, overdue = 0, attempted = 0 } = counts;
        if (skipped > overdue || overdue > attempted)
          violations.push(`reminders of day ${date}: more were too late than were late, or more late than there were`);
      }
      return violations;
    }),
  },
];

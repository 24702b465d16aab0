import { sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { calendarIn, calendarOf, Tally } from "../../mechanisms/dated-counters/index.ts";
import { type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { isTimezone } from "../../people/users/service.ts";
import { TOUCH_CHANNELS, type TouchChannel } from "../touch/service.ts";
import { keys } from "./keys.ts";
import { assign, closeDate, openDate } from "./scripts.ts";
import { settings } from "./settings.ts";
import { reminderStats } from "./stats.ts";
import { DEFAULT_ZONE, type ReminderTables } from "./tables.ts";
import { DAY, weekdayBit } from "./window.ts";

interface Row {
  readonly uid: string;
  readonly channel: TouchChannel;
  readonly start: number;
  readonly end: number;
}

interface Cursor {
  readonly start: string;
  readonly uid: string;
  readonly finished: boolean;
}

const ZERO = {
  start_unix_date: 0,
  end_unix_date: 0,
  unique_timezones: 0,
  pairs: 0,
  queries: 0,
  attempted: 0,
  overdue: 0,
  stale: 0,
  sms_queued: 0,
  push_queued: 0,
  email_queued: 0,
};
type Counts = { -readonly [Name in keyof typeof ZERO]: number };

/** Somebody else moved the cursor: another run is at work, and this one ends. */
class Overtaken extends Error {}

/**
 * Gives reminders their times: for every zone and local day, the registrations whose window begins within the horizon.
 *
 *   day opened ─▶ zone by zone, page by page in the order of start times ─▶ zone finished ─▶ day closed when all are
 *
 * The cursor of a zone and day moves in the same script that queues the reminders it passed, so a death leaves nobody out
 * and gives nobody two times. What is too late to matter is counted and left out.
 */
export async function assignTimes(ctx: JobContext): Promise<StopReason> {
  const report = await startRun<keyof Counts>(ctx, keys.assignReport);
  const run = new AssignRun(ctx, report.startedAt);
  const stopReason = await run.go();
  await report.finish({ stopReason, counts: run.counts });
  return stopReason;
}

class AssignRun {
  readonly counts: Counts = { ...ZERO };
  readonly #ctx: JobContext;
  readonly #startedAt: number;
  readonly #horizon: number;
  readonly #zonesSeen = new Set<string>();

  constructor(ctx: JobContext, startedAt: number) {
    this.#ctx = ctx;
    this.#startedAt = startedAt;
    this.#horizon = startedAt + ctx.config.get(settings.assignHorizon);
  }

  async go(): Promise<StopReason> {
    let date = await this.#firstDate();
    this.counts.start_unix_date = date;
    for (;;) {
      this.counts.end_unix_date = date;
      const stopped = await this.#stop();
      if (stopped) return stopped;
      const zones = await this.#zonesOf(date);
      const { ended, nextIsNeeded } = await this.#goThrough(date, zones);
      if (ended) return ended;
      await this.#close(date, zones, false);
      if (!nextIsNeeded) return "list_exhausted";
      date += 1;
    }
  }

  async #stop(): Promise<StopReason | undefined> {
    const { redis, config } = this.#ctx;
    if (this.#ctx.shuttingDown()) return "signal";
    if (this.#ctx.budget.exhausted()) return "time_exhausted";
    const queued = await redis.commands.zcard(redis.topology.key(keys.queued()));
    return queued > config.get(settings.queuedLimit) ? "backpressure" : undefined;
  }

  /** Where the last run stood. Days that statistics have closed are left out: their reminders would all be too old. */
  async #firstDate(): Promise<number> {
    const { redis, alerts } = this.#ctx;
    const held = await redis.commands.get(redis.topology.key(keys.earliest()));
    if (held === null) {
      if (await this.#hasHistory())
        alerts.warning(
          "daily_reminders:progress_lost",
          "it is not known any more how far reminders got: some may be sent once more today",
        );
      return Math.floor((this.#startedAt - DAY / 2) / DAY);
    }
    const oldest = calendarOf(this.#ctx).unixDate(this.#startedAt) - 2;
    let date = Number(held);
    if (date < oldest)
      alerts.warning(
        "daily_reminders:days_left_out",
        `${oldest - date} days were over before their reminders got a time`,
      );
    for (; date < oldest; date++) await this.#close(date, await this.#known(date), true);
    return date;
  }

  /** Whether reminders were sent on days that are over: then somebody must have known how far they got. */
  async #hasHistory(): Promise<boolean> {
    const { rows } = await sql`select 1 from daily_reminder_stats limit 1`.execute(
      this.#ctx.sql.tables<ReminderTables>(),
    );
    return rows.length > 0;
  }

  async #known(date: number): Promise<readonly string[]> {
    const { commands, topology } = this.#ctx.redis;
    return commands.zrange(topology.key(keys.zones({ unix_date: date })), 0, "-1");
  }

  /** The zones of a day, fixed when it is opened: one that is first used later joins on the next day. */
  async #zonesOf(date: number): Promise<readonly string[]> {
    const known = await this.#known(date);
    if (known.length > 0) return known;
    const zones = await this.#usedZones();
    await this.#ctx.redis.run(openDate, [keys.zones({ unix_date: date }), keys.earliest()], [date, ...zones]);
    return this.#known(date);
  }

  /** Zones that registrations have, found by hopping over the index from one to the next. */
  async #usedZones(): Promise<readonly string[]> {
    const { rows } = await sql<{ timezone: string }>`
      with recursive hop as (
        (select timezone from user_daily_reminders order by timezone limit 1)
        union all
        select (select later.timezone from user_daily_reminders as later where later.timezone > hop.timezone
          order by later.timezone limit 1) from hop where hop.timezone is not null
      ) select timezone from hop where timezone is not null`.execute(this.#ctx.sql.tables<ReminderTables>());
    const used = rows.map(({ timezone }) => timezone);
    const invalid = used.filter((zone) => !isTimezone(zone));
    if (invalid.length > 0)
      this.#ctx.alerts.warning(
        "daily_reminders:unknown_zone",
        `nobody knows the timezone of some people: ${invalid.join(", ")}`,
      );
    return [...new Set([DEFAULT_ZONE, ...used.filter(isTimezone)])];
  }

  async #goThrough(date: number, zones: readonly string[]) {
    const cursors = await this.#cursors(date, zones);
    let nextIsNeeded = false;
    for (const [at, zone] of zones.entries()) {
      if (!isTimezone(zone)) continue;
      const local = calendarIn(zone).unixDate(this.#horizon);
      if (local > date) nextIsNeeded = true;
      if (local < date || cursors[at]!.finished) continue;
      const ended = await this.#goThroughZone(date, zone, cursors[at]!);
      if (ended) return { ended, nextIsNeeded };
    }
    return { ended: undefined, nextIsNeeded };
  }

  async #cursors(date: number, zones: readonly string[]): Promise<readonly Cursor[]> {
    const { commands, topology } = this.#ctx.redis;
    const held = await Promise.all(
      zones.map((tz) =>
        commands.hmget(topology.key(keys.progress({ tz, unix_date: date })), "start_time", "uid", "finished"),
      ),
    );
    return held.map(([start, uid, finished]) => ({ start: start ?? "", uid: uid ?? "", finished: finished === "1" }));
  }

  async #goThroughZone(date: number, zone: string, from: Cursor): Promise<StopReason | undefined> {
    const { config, redis } = this.#ctx;
    const midnight = calendarIn(zone).startOf(date);
    const to = Math.floor(this.#horizon - midnight);
    const size = config.get(settings.page);
    this.#zonesSeen.add(zone);
    this.counts.pairs += 1;
    this.counts.unique_timezones = this.#zonesSeen.size;
    let cursor = from;
    for (;;) {
      const rows = await this.#page(zone, date, cursor, to, size);
      const group = config.get(settings.group);
      for (let start = 0; start < rows.length; start += group)
        cursor = await this.#assign(date, zone, midnight, cursor, rows.slice(start, start + group));
      if (rows.length < size) break;
      const stopped = await this.#stop();
      if (stopped) return stopped;
    }
    if (to > DAY)
      await redis.commands.hset(redis.topology.key(keys.progress({ tz: zone, unix_date: date })), "finished", "1");
    return undefined;
  }

  async #page(zone: string, date: number, cursor: Cursor, to: number, size: number): Promise<readonly Row[]> {
    this.counts.queries += 1;
    const after =
      cursor.uid === "" ? sql`true` : sql`(start_time, uid) > (${Number(cursor.start)}::integer, ${cursor.uid})`;
    const { rows } = await sql<Row>`
      select uid, channel, start_time as start, end_time as end from user_daily_reminders
      where timezone = ${zone} and ${after} and start_time <= ${to}::integer
        and day_of_week_mask & ${weekdayBit(date)}::integer <> 0
      order by start_time, uid limit ${size}`.execute(this.#ctx.sql.tables<ReminderTables>());
    return rows;
  }

  async #assign(date: number, zone: string, midnight: number, from: Cursor, rows: readonly Row[]): Promise<Cursor> {
    const ctx = this.#ctx;
    const late = this.#startedAt - ctx.config.get(settings.staleness);
    // Written by hand in the order that the codec keeps: nothing in it comes from outside.
    const members = rows.map(({ uid }) => JSON.stringify({ uid, unix_date: date }));
    const waits = await this.#waitingAmong(members);
    const assigned: (string | number)[] = [];
    const sums = {
      attempted: 0,
      overdue: 0,
      stale: { push: 0, sms: 0, email: 0 },
      queued: { push: 0, sms: 0, email: 0 },
    };
    for (const [at, { channel, start, end }] of rows.entries()) {
      if (waits[at]) continue;
      const overdue = midnight + start < this.#startedAt;
      sums.attempted += 1;
      if (overdue) sums.overdue += 1;
      if (overdue && midnight + end < late) {
        sums.stale[channel] += 1;
        continue;
      }
      sums.queued[channel] += 1;
      assigned.push(this.#timeIn(midnight + start, midnight + end), members[at]!);
    }
    const tally = new Tally(ctx);
    const block = tally.block((counting) => {
      counting.incrOn(reminderStats, "attempted", date, { by: sums.attempted });
      counting.incrOn(reminderStats, "overdue", date, { by: sums.overdue });
      for (const extra of TOUCH_CHANNELS) {
        counting.incrOn(reminderStats, "skipped_assigning_time", date, { extra, by: sums.stale[extra] });
        counting.incrOn(reminderStats, "time_assigned", date, { extra, by: sums.queued[extra] });
      }
    });
    const last = rows.at(-1)!;
    const next = { start: String(last.start), uid: last.uid, finished: false };
    const moved = await ctx.redis.run(
      assign,
      [keys.progress({ tz: zone, unix_date: date }), keys.queued(), ...tally.keys],
      [from.start, from.uid, next.start, next.uid, assigned.length / 2, ...assigned, ...block],
    );
    if (!moved) throw new Overtaken(`${zone} was gone through by somebody else`);
    this.counts.attempted += sums.attempted;
    this.counts.overdue += sums.overdue;
    for (const channel of TOUCH_CHANNELS) {
      this.counts.stale += sums.stale[channel];
      this.counts[`${channel}_queued`] += sums.queued[channel];
    }
    return next;
  }

  /**
   * Which of these have their time for this day already: of somebody who moved, or chose later hours. They keep it and
   * count once. Only this job gives times, so what has none now has none in a moment.
   */
  async #waitingAmong(members: readonly string[]): Promise<readonly boolean[]> {
    const { commands, topology } = this.#ctx.redis;
    const [queued, sending] = await Promise.all(
      [keys.queued(), keys.sendPurgatory()].map((key) => commands.zmscore(topology.key(key), ...members)),
    );
    return members.map((_, at) => queued![at] != null || sending![at] != null);
  }

  /** Anywhere in the window with the same chance, and not in the past. */
  #timeIn(start: number, end: number): number {
    const [from, until] = [Math.max(start, this.#startedAt), Math.max(end, this.#startedAt)];
    return Math.floor(from + Math.random() * (until - from));
  }

  async #close(date: number, zones: readonly string[], force: boolean): Promise<void> {
    await this.#ctx.redis.run(
      closeDate,
      [keys.earliest(), keys.zones({ unix_date: date }), ...zones.map((tz) => keys.progress({ tz, unix_date: date }))],
      [date, force ? 1 : 0],
    );
  }
}

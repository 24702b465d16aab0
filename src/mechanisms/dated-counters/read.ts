import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { isoDate, parseIsoDate } from "./calendar.ts";
import { brokenBalances, type DailyStats } from "./daily-stats.ts";
import { type StoredCounts, storedOf } from "./kept-days.ts";
import { snapshotScript } from "./scripts.ts";

/**
 * Reads days wherever they are. A count is in Redis, in SQL, or, while a rotation is under way, in both: then SQL alone
 * counts. A rotation may begin or end while we read, and what we have would be doubled or missing; so we look at the
 * table's rotations before and after, and read again until nothing has moved in between.
 */
export interface DayCounts {
  /** By event, and by looked-up column. */
  readonly counts: Readonly<Record<string, number>>;
  /** By event, then by breakdown key. */
  readonly breakdowns: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface ReadCounts {
  /** The earliest day that may still be in Redis. */
  readonly earliest: number | undefined;
  /** Every day that was asked for. */
  readonly days: ReadonlyMap<number, DayCounts>;
  /** False when rotations followed each other so closely that some day may be told wrongly. */
  readonly settled: boolean;
}

type ReadContext = Pick<KernelContext, "redis" | "sql">;
type Tally = Map<string, Map<string, number>>;

const MOST_READS = 50;
const KEYS_A_CALL = 1000;
/** The part of a tally that holds the counts themselves; no event has an empty name. */
const COUNTS = "";

/** All counts of the days from `from` up to and without `to`. */
export async function readCounts(
  ctx: ReadContext,
  stats: DailyStats & { readonly computed?: readonly string[] },
  from: number,
  to: number,
): Promise<ReadCounts> {
  for (let read = 1; ; read++) {
    const before = await rotationsOf(ctx, stats.table);
    const [stored, hot] = await Promise.all([readRows(ctx, stats, from, to), readRedis(ctx, stats, from, to)]);
    const after = await rotationsOf(ctx, stats.table);
    const settled = before === after;
    if (!settled && read < MOST_READS) continue;
    const begun = new Set((JSON.parse(after) as [unknown, string[]])[1].map(parseIsoDate));
    const days = new Map<number, DayCounts>();
    for (let date = from; date < to; date++) {
      const sources = [stored.get(date), begun.has(date) ? undefined : hot.days.get(date)];
      days.set(date, sum(stats, sources));
    }
    return { earliest: hot.earliest, days, settled };
  }
}

/** What tells two moments of a table's rotations apart: the newest one, and the days of those that are not finished. */
async function rotationsOf(ctx: ReadContext, table: string): Promise<string> {
  const { rows } = await sql<{ newest: number | null; begun: string[] }>`
    select max(id) as newest,
      coalesce(json_agg(retrieved_for order by id) filter (where consumed_at is null), '[]'::json) as begun
    from stat_rotations where table_name = ${table}`.execute(ctx.sql.tables());
  return JSON.stringify([rows[0]?.newest ?? null, rows[0]?.begun ?? []]);
}

async function readRows(
  ctx: ReadContext,
  stats: DailyStats & { readonly computed?: readonly string[] },
  from: number,
  to: number,
): Promise<Map<number, Tally>> {
  const events = Object.entries(stats.events);
  const broken = events.filter(([, { by }]) => by !== undefined).map(([event]) => event);
  const counted = [...events.map(([event]) => event), ...(stats.computed ?? [])];
  const columns = ["retrieved_for", ...counted, ...broken.map((event) => `${event}_breakdown`)];
  const { rows } = await sql<Record<string, unknown>>`
    select ${sql.join(columns.map((column) => sql.ref(column)))} from ${sql.table(stats.table)}
    where retrieved_for >= ${isoDate(from)} and retrieved_for < ${isoDate(to)}`.execute(ctx.sql.tables());
  return new Map(
    rows.map((row) => {
      const tally: Tally = new Map([[COUNTS, new Map(counted.map((column) => [column, Number(row[column])]))]]);
      for (const event of broken)
        tally.set(event, new Map(Object.entries(row[`${event}_breakdown`] as Record<string, number>)));
      return [parseIsoDate(String(row.retrieved_for)), tally];
    }),
  );
}

/** What only Redis knows of some days: of a day that is kept after it was stored, what was counted since. */
async function readRedis(
  ctx: ReadContext,
  stats: DailyStats,
  from: number,
  to: number,
): Promise<{ earliest: number | undefined; days: Map<number, Tally> }> {
  const held = await ctx.redis.commands.get(ctx.redis.topology.key(stats.earliest()));
  const earliest = held === null ? undefined : Number(held);
  const days = new Map<number, Tally>();
  if (earliest === undefined) return { earliest, days };
  const wanted: number[] = [];
  for (let date = Math.max(from, earliest); date < to; date++) wanted.push(date);
  const size = Math.max(1, Math.floor(KEYS_A_CALL / stats.slots.length));
  for (let start = 0; start < wanted.length; start += size) {
    const dates = wanted.slice(start, start + size);
    const keys = dates.flatMap((date) => stats.slots.map((slot) => stats.counter(date, slot)));
    const stored = await storedOf(ctx, stats, dates);
    const contents = await ctx.redis.run(snapshotScript, keys, []);
    for (const [index, date] of dates.entries()) {
      const day = contents.slice(index * stats.slots.length, (index + 1) * stats.slots.length);
      days.set(date, tallyOf(stats, day, stored.get(date)));
    }
  }
  return { earliest, days };
}

/** The slots of a day: its hash of events first, then the breakdowns. What is no count is told by the rotation, not here. */
function tallyOf(stats: DailyStats, contents: readonly (readonly string[])[], stored: StoredCounts | undefined): Tally {
  return new Map(
    stats.slots.map((slot, index) => {
      const flat = contents[index] ?? [];
      const counts = new Map<string, number>();
      for (let at = 0; at + 1 < flat.length; at += 2) {
        const [field, count] = [flat[at]!, flat[at + 1]!];
        if (/^-?\d{1,15}$/.test(count)) counts.set(field, Number(count) - (stored?.[slot]?.[field] ?? 0));
      }
      return [partOf(slot), counts];
    }),
  );
}

/** What Redis holds for a day, undoubted: for checks that look for what should not be there. */
export async function readDayAsIs(
  ctx: Pick<KernelContext, "redis">,
  stats: DailyStats,
  date: number,
): Promise<{
  readonly events: Readonly<Record<string, string>>;
  readonly breakdowns: Readonly<Record<string, Readonly<Record<string, string>>>>;
}> {
  const contents = await ctx.redis.run(
    snapshotScript,
    stats.slots.map((slot) => stats.counter(date, slot)),
    [],
  );
  const [events = {}, ...parts] = contents.map((flat) =>
    Object.fromEntries(
      Array.from({ length: Math.floor(flat.length / 2) }, (_, at) => [flat[2 * at], flat[2 * at + 1]]),
    ),
  ) as Record<string, string>[];
  const broken = stats.slots.slice(1).map(partOf);
  return { events, breakdowns: Object.fromEntries(broken.map((event, index) => [event, parts[index] ?? {}])) };
}

/** Days beyond those that a family holds that may still be in Redis: about to be moved, and one ahead. */
const SPARE_DAYS = 3;

/** The events of each day that Redis may hold, from the earliest on, undoubted. */
export async function openDaysAsIs(
  ctx: Pick<KernelContext, "redis">,
  stats: DailyStats,
): Promise<readonly { readonly date: number; readonly counts: Readonly<Record<string, number>> }[]> {
  const earliest = await ctx.redis.commands.get(ctx.redis.topology.key(stats.earliest()));
  if (earliest === null || !/^\d{1,6}$/.test(earliest)) return [];
  const dates = Array.from({ length: stats.held + SPARE_DAYS }, (_, at) => Number(earliest) + at);
  const days = await Promise.all(dates.map((date) => readDayAsIs(ctx, stats, date)));
  return days.map(({ events }, at) => ({
    date: dates[at]!,
    counts: Object.fromEntries(Object.entries(events).map(([event, count]) => [event, Number(count)])),
  }));
}

/** What breaks the balances of these families on some open day, each in a sentence. */
export async function brokenOnOpenDays(
  ctx: Pick<KernelContext, "redis">,
  families: readonly DailyStats[],
): Promise<readonly string[]> {
  const found = await Promise.all(
    families.map(async (family) =>
      (await openDaysAsIs(ctx, family)).flatMap(({ date, counts }) =>
        brokenBalances(family.balances, counts).map((broken) => `${family.name} on day ${date}: ${broken}`),
      ),
    ),
  );
  return found.flat();
}

function partOf(slot: string): string {
  return slot.includes(":") ? slot.slice(slot.indexOf(":") + 1) : COUNTS;
}

function sum(
  stats: DailyStats & { readonly computed?: readonly string[] },
  sources: readonly (Tally | undefined)[],
): DayCounts {
  const total = (part: string, name: string) =>
    sources.reduce((so, tally) => so + (tally?.get(part)?.get(name) ?? 0), 0);
  const events = Object.entries(stats.events);
  const counted = [...events.map(([event]) => event), ...(stats.computed ?? [])];
  const broken = events.filter(([, { by }]) => by !== undefined).map(([event]) => event);
  return {
    counts: Object.fromEntries(counted.map((name) => [name, total(COUNTS, name)])),
    breakdowns: Object.fromEntries(
      broken.map((event) => {
        const keys = new Set(sources.flatMap((tally) => [...(tally?.get(event)?.keys() ?? [])]));
        return [event, Object.fromEntries([...keys].sort().map((key) => [key, total(event, key)]))];
      }),
    ),
  };
}

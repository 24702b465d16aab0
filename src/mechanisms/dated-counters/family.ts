import type { Transaction } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import type { ChannelName, Origin } from "../../kernel/keyspace/index.ts";
import type { Migration } from "../../kernel/sql/index.ts";
import { DEFAULT_GRACE, type Holding, SKEW, type StatisticsCalendar } from "./calendar.ts";
import {
  type Balance,
  breakdownColumn,
  brokenBalances,
  countColumn,
  createStatsTable,
  type DailyStats,
  defineDailyStats,
  type EventPlan,
} from "./daily-stats.ts";
import { dailyKeys } from "./keys-daily.ts";
import { type Plot, plotsOf } from "./plots.ts";
import { readCounts } from "./read.ts";
import { REMEMBERED } from "./rotate.ts";

type Events = Readonly<Record<string, EventPlan>>;

type Addresses = string | readonly string[];

/** When the days of a family are moved to SQL: every hour from 02:00 on, or at a quarter past every hour. */
export type RotationTime = "nightly" | "quarter_past";

export interface StatsFamilyPlan<E extends Events> extends Holding {
  /** `push_tickets`, or with parts: `shop:checkouts`. Keys, channel and addresses carry it. */
  readonly family: string;
  /** The family of keys whose scripts count it, so that one script may do both. */
  readonly keysFamily: string;
  /** What people call it. */
  readonly title: string;
  readonly table: string;
  /** Seconds for which a day's counters stay in Redis after they were stored, for whoever looks into an attack. */
  readonly keep?: number;
  /** Each event, with the form of its breakdown if it has one. */
  readonly events: E;
  /** Sums that are the same once a day is over: checked when it is stored. */
  readonly balances?: readonly Balance<string & keyof E>[];
  /** The same for sums that events of another family, `family.event`, are part of. */
  readonly beside?: { readonly stats: DailyStats; readonly balances: readonly Balance[] };
  /** What pages draw of it; by default all events as lines, and each breakdown. */
  readonly plots?: readonly Plot[];
  /** The word on the channel where charts are told; default the family's name, false: they are not told. */
  readonly channel?: string | false;
  /** Before the dates in the name of a cached chart; default `daily_` and the family's name. */
  readonly cachePrefix?: string;
  /** Further addresses of its chart and its open days, below `/api/1/admin`. */
  readonly alias?: { readonly daily?: Addresses; readonly partial?: Addresses };
  /** Default nightly. */
  readonly rotation?: RotationTime;
  /** Columns that are looked up when a day is stored rather than counted. */
  readonly computed?: {
    readonly columns: readonly string[];
    read(tx: Transaction<never>, date: number, calendar: StatisticsCalendar): Promise<Readonly<Record<string, number>>>;
  };
  /** Default `carillon`. */
  readonly origin?: Origin;
}

/** Daily statistics with everything that follows from their declaration: keys, table, charts, rotation. */
export interface StatsFamily<E extends Events = Events> extends DailyStats<E> {
  readonly title: string;
  /** Its keys and channel, for the catalogue. */
  readonly keys: object;
  readonly channel: ChannelName | undefined;
  readonly cachePrefix: string;
  readonly alias: { readonly daily: readonly string[]; readonly partial: readonly string[] };
  readonly rotation: RotationTime;
  readonly plots: readonly Plot[];
  /** The names of the columns that are looked up. */
  readonly computed: readonly string[];
  /** The steps of its table. */
  readonly migrations: readonly Migration[];
}

/** Seconds after midnight of the first run that should find yesterday closed. */
const FIRST_RUN: Readonly<Record<RotationTime, number>> = { nightly: 7200, quarter_past: 900 };

/**
 * Declares a family of daily statistics. A room that lists it under `stats` gets its keys into the catalogue, its table,
 * its nightly rotation, its charts and the checks of the audit.
 */
export function dailyStats<const E extends Events>(plan: StatsFamilyPlan<E>): StatsFamily<E> {
  const rotation = plan.rotation ?? "nightly";
  if ((plan.grace ?? DEFAULT_GRACE) + SKEW > FIRST_RUN[rotation])
    throw new TypeError(`${plan.family}: its days are still open when its rotation begins; shorten the grace`);
  // The rotations of a kept day say what of it is stored.
  if (plan.keep !== undefined && plan.keep >= REMEMBERED)
    throw new TypeError(`${plan.family} keeps its days for ${plan.keep} s; at most ${REMEMBERED} are possible`);
  const keys = dailyKeys({
    name: plan.family,
    keysFamily: plan.keysFamily,
    title: plan.title,
    channel: plan.channel === false ? undefined : (plan.channel ?? plan.family),
    hasBreakdowns: Object.values(plan.events).some(({ by }) => by !== undefined),
    origin: plan.origin ?? "carillon",
    keep: plan.keep,
  });
  const day = Object.assign(({ unix_date }: { unix_date: number }) => keys.day(unix_date), { family: keys.family });
  const extra = Object.assign(
    ({ unix_date, event }: { unix_date: number; event: string }) => keys.extra(unix_date, event),
    { family: keys.family },
  );
  const computed = plan.computed?.columns ?? [];
  const stats = {
    ...defineDailyStats({
      name: plan.family,
      table: plan.table,
      keep: plan.keep,
      events: plan.events,
      balances: plan.balances,
      held: plan.held,
      grace: plan.grace,
      keys: { day, extra, earliest: keys.earliest },
      computed: plan.computed && ((tx, date, calendar) => plan.computed!.read(tx, date, calendar)),
    }),
    title: plan.title,
    keys: keys.declared,
    channel: keys.channel,
    cachePrefix: plan.cachePrefix ?? `daily_${plan.family.replaceAll(":", "_")}`,
    alias: { daily: [plan.alias?.daily ?? []].flat(), partial: [plan.alias?.partial ?? []].flat() },
    rotation,
    plots: plotsOf(plan.family, plan.events, computed, plan.plots, plan.title),
    computed,
    migrations: tableSteps(plan.table, plan.events, computed),
  };
  const { beside } = plan;
  if (!beside) return stats;
  return { ...stats, compare: (ctx, date) => brokenBeside(ctx, stats, beside, date) };
}

/** Sums of two families that differ on a day. Each is read wherever it is by now: a day may be stored in parts. */
async function brokenBeside(
  ctx: Pick<KernelContext, "redis" | "sql">,
  stats: DailyStats,
  beside: NonNullable<StatsFamilyPlan<Events>["beside"]>,
  date: number,
): Promise<readonly string[]> {
  const [own, other] = await Promise.all(
    [stats, beside.stats].map(async (one) => (await readCounts(ctx, one, date, date + 1)).days.get(date)?.counts ?? {}),
  );
  const named = Object.entries(other!).map(([event, count]) => [`${beside.stats.name}.${event}`, count]);
  return brokenBalances(beside.balances, { ...own, ...Object.fromEntries(named) });
}

/** Step 1 creates the table; what later versions declare with `since` comes as a step of its own. Columns are never dropped. */
function tableSteps(table: string, events: Events, computed: readonly string[]): readonly Migration[] {
  const steps = Object.values(events).flatMap(({ since = 1, bySince = since }) => [since, bySince]);
  const last = Math.max(1, ...steps);
  return Array.from({ length: last }, (_, index) => {
    const number = index + 1;
    if (number === 1) return { number, name: `create ${table}`, up: createFirst(table, events, computed) };
    const columns = Object.entries(events).flatMap(([event, { by, since = 1, bySince = since }]) => [
      ...(since === number ? [countColumn(event)] : []),
      ...(by !== undefined && bySince === number ? [breakdownColumn(event)] : []),
    ]);
    const up = columns.map((column) => `alter table ${table} add column ${column};\n`).join("");
    return { number, name: `add columns to ${table}`, up };
  });
}

function createFirst(table: string, events: Events, computed: readonly string[]): string {
  const first = Object.entries(events).flatMap(([event, plan]): [string, EventPlan][] => {
    const { since = 1, bySince = since } = plan;
    return since > 1 ? [] : [[event, bySince > 1 ? {} : plan]];
  });
  return createStatsTable({ table, events: Object.fromEntries(first) }, { computed });
}

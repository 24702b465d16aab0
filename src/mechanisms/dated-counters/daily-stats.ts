import { type RawBuilder, sql, type Transaction } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { canonicalJson, type KeyName } from "../../kernel/keyspace/index.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { type Holding, isoDate, type StatisticsCalendar } from "./calendar.ts";

/** What Redis held for one day: by slot, the counts of a hash, or the one count of a string counter. */
export type Snapshot = Readonly<Record<string, Readonly<Record<string, number>> | number>>;

export interface DayToStore {
  readonly date: number;
  readonly snapshot: Snapshot;
  readonly now: number;
  readonly calendar: StatisticsCalendar;
}

/** Counters that are moved into SQL day by day: what `rotate` needs to know of them. */
export interface RotatedCounters extends Holding {
  readonly name: string;
  readonly table: string;
  /** Seconds for which the counters of a stored day stay readable in Redis; by default they go at once. */
  readonly keep?: number | undefined;
  earliest(): KeyName<"string">;
  /** The names of a day's counters inside its snapshot. */
  readonly slots: readonly string[];
  counter(date: number, slot: string): KeyName<"hash" | "string">;
  /** What in a snapshot contradicts the declaration. */
  examine(snapshot: Snapshot): { readonly mismatches: readonly string[]; readonly leftover: object | null };
  /** What of a day, stored or not, contradicts the same day of another family. */
  compare?(ctx: Pick<KernelContext, "redis" | "sql">, date: number): Promise<readonly string[]>;
  /** Inserts the day's row, or adds to the one that is there; answers which. */
  store(tx: Transaction<never>, day: DayToStore): Promise<"inserted" | "added">;
}

export interface EventPlan {
  /** The form of its breakdown's keys, such as `{currency}`; an event without one has no breakdown. */
  readonly by?: string;
  /** Its breakdown has many keys that are mostly zero: charts name only the days on which a key was counted. */
  readonly sparse?: boolean;
  /** The step of the table that added it: 1, the default, for those that came with the table. */
  readonly since?: number;
  /** The step of the table that added its breakdown, where that came later. */
  readonly bySince?: number;
}

/** Two sums of a family's events that are the same on every day that nothing is under way for any more. */
export interface Balance<Event extends string = string> {
  readonly sum: readonly Event[];
  readonly equals: readonly Event[];
}

type KeyOf<Parameters, Type extends "hash" | "string"> = ((parameters: Parameters) => KeyName<Type>) & {
  readonly family: string;
};

/** A family of daily event counters: one hash of events a day, one hash a day for each event with a breakdown. */
export interface DailyStats<Events extends Readonly<Record<string, EventPlan>> = Readonly<Record<string, EventPlan>>>
  extends RotatedCounters {
  /** The family of keys whose scripts count it. */
  readonly family: string;
  readonly events: Events;
  readonly balances: readonly Balance[];
  day(date: number): KeyName<"hash">;
  extra(date: number, event: string): KeyName<"hash">;
}

export interface DailyStatsPlan<Events extends Readonly<Record<string, EventPlan>>> extends Holding {
  readonly name: string;
  readonly table: string;
  /** Seconds for which the counters of a stored day stay readable in Redis. */
  readonly keep?: number | undefined;
  readonly events: Events;
  /** Checked when a day is stored: a break is warned of, and the day is stored as it is. */
  readonly balances?: readonly Balance<string & keyof Events>[];
  readonly keys: {
    readonly day: KeyOf<{ unix_date: number }, "hash">;
    readonly extra?: KeyOf<{ unix_date: number; event: string }, "hash">;
    readonly earliest: () => KeyName<"string">;
  };
  /** Columns that are not counted but looked up when the day is stored. */
  computed?(
    tx: Transaction<never>,
    date: number,
    calendar: StatisticsCalendar,
  ): Promise<Readonly<Record<string, number>>>;
}

const DAY_SLOT = "day";
const EXTRA_SLOT = "extra:";
const NAME = /^[a-z][a-z0-9_]*(:[a-z][a-z0-9_]*)*$/;
const EVENT = /^[a-z][a-z0-9_]{0,52}$/;
const RESERVED = /^(id|labels|retrieved_for|retrieved_at)$|_breakdown$/;

export function defineDailyStats<const Events extends Readonly<Record<string, EventPlan>>>(
  plan: DailyStatsPlan<Events>,
): DailyStats<Events> {
  if (!NAME.test(plan.name) || plan.name.length > 64) throw new TypeError(`${plan.name} is not a name of statistics`);
  const names = Object.keys(plan.events);
  for (const event of names)
    if (!EVENT.test(event) || RESERVED.test(event)) throw new TypeError(`${event} is not a name of an event`);
  const broken = names.filter((event) => plan.events[event]!.by !== undefined);
  const extraKey = plan.keys.extra;
  if (broken.length > 0 && !extraKey) throw new TypeError(`${plan.name} has breakdowns and no key for them`);
  const extra = (date: number, event: string) => {
    if (!extraKey) throw new TypeError(`${plan.name} has no breakdowns`);
    return extraKey({ unix_date: date, event });
  };
  return {
    name: plan.name,
    table: plan.table,
    keep: plan.keep,
    held: plan.held,
    grace: plan.grace,
    events: plan.events,
    balances: plan.balances ?? [],
    family: plan.keys.day.family,
    earliest: plan.keys.earliest,
    day: (date) => plan.keys.day({ unix_date: date }),
    extra,
    slots: [DAY_SLOT, ...broken.map((event) => EXTRA_SLOT + event)],
    counter: (date, slot) =>
      slot === DAY_SLOT ? plan.keys.day({ unix_date: date }) : extra(date, slot.slice(EXTRA_SLOT.length)),
    examine(snapshot) {
      const day = hashOf(snapshot, DAY_SLOT);
      const mismatches = broken.flatMap((event) => {
        const sum = Object.values(hashOf(snapshot, EXTRA_SLOT + event)).reduce((total, count) => total + count, 0);
        const total = day[event] ?? 0;
        return sum === total ? [] : [`${event} is ${total} and its breakdown sums to ${sum}`];
      });
      mismatches.push(...brokenBalances(plan.balances ?? [], day));
      const unknown = Object.entries(day).filter(([event]) => !(event in plan.events));
      return { mismatches, leftover: unknown.length > 0 ? Object.fromEntries(unknown) : null };
    },
    async store(tx, { date, snapshot, now, calendar }) {
      const day = hashOf(snapshot, DAY_SLOT);
      const counts = names.map((event) => ({
        column: event,
        value: sql`${day[event] ?? 0}::integer`,
        merge: plus(plan.table, event),
      }));
      const breakdowns = broken.map((event) => ({
        column: `${event}_breakdown`,
        value: sql`${canonicalJson(hashOf(snapshot, EXTRA_SLOT + event))}::jsonb`,
        merge: plusEach(plan.table, `${event}_breakdown`),
      }));
      const computed = Object.entries((await plan.computed?.(tx, date, calendar)) ?? {}).map(([column, value]) => ({
        column,
        value: sql`${value}::integer`,
        merge: sql`excluded.${sql.ref(column)}`,
      }));
      return upsert(tx, plan.table, isoDate(date), now, [...counts, ...breakdowns, ...computed]);
    },
  };
}

/** Each balance that these counts break, in a sentence. */
export function brokenBalances(balances: readonly Balance[], counts: Readonly<Record<string, number>>): string[] {
  const total = (events: readonly string[]) => events.reduce((sum, event) => sum + (counts[event] ?? 0), 0);
  return balances.flatMap(({ sum, equals }) => {
    const [left, right] = [total(sum), total(equals)];
    return left === right ? [] : [`${sum.join(" + ")} is ${left}, and ${equals.join(" + ")} is ${right}`];
  });
}

/** One string counter a day, stored in the column `total`. */
export function defineDailyCount(
  plan: Holding & {
    readonly name: string;
    readonly table: string;
    readonly keys: {
      readonly day: KeyOf<{ unix_date: number }, "string">;
      readonly earliest: () => KeyName<"string">;
    };
  },
): RotatedCounters & { readonly family: string; day(date: number): KeyName<"string"> } {
  return {
    name: plan.name,
    table: plan.table,
    held: plan.held,
    grace: plan.grace,
    family: plan.keys.day.family,
    earliest: plan.keys.earliest,
    day: (date) => plan.keys.day({ unix_date: date }),
    slots: [DAY_SLOT],
    counter: (date) => plan.keys.day({ unix_date: date }),
    examine: () => ({ mismatches: [], leftover: null }),
    store: (tx, { date, snapshot, now }) =>
      upsert(tx, plan.table, isoDate(date), now, [
        {
          column: "total",
          value: sql`${Number(snapshot[DAY_SLOT] ?? 0)}::integer`,
          merge: plus(plan.table, "total"),
        },
      ]),
  };
}

/** The statement that creates the table of a family, for its migrations. */
export function createStatsTable(
  stats: Pick<DailyStats, "table" | "events">,
  options: { readonly computed?: readonly string[] } = {},
): string {
  const columns = Object.entries(stats.events).flatMap(([event, { by }]) => [
    countColumn(event),
    ...(by === undefined ? [] : [breakdownColumn(event)]),
  ]);
  const computed = (options.computed ?? []).map(countColumn);
  return `create table ${stats.table} (
  id bigint generated always as identity primary key,
  retrieved_for date not null unique,
  retrieved_at timestamptz not null,
  ${[...columns, ...computed].join(",\n  ")}
);
`;
}

/** Quoted, because an event may have a name that SQL has a use for. */
export function countColumn(name: string): string {
  return `"${name}" integer not null default 0`;
}

export function breakdownColumn(event: string): string {
  return `"${event}_breakdown" jsonb not null default '{}'`;
}

function hashOf(snapshot: Snapshot, slot: string): Readonly<Record<string, number>> {
  const held = snapshot[slot];
  return typeof held === "object" ? held : {};
}

interface Column {
  readonly column: string;
  readonly value: RawBuilder<unknown>;
  /** What an existing row's column becomes. */
  readonly merge: RawBuilder<unknown>;
}

function plus(table: string, column: string): RawBuilder<unknown> {
  return sql`${sql.ref(`${table}.${column}`)} + excluded.${sql.ref(column)}`;
}

/** The sum of two breakdowns, key by key. */
function plusEach(table: string, column: string): RawBuilder<unknown> {
  return sql`(select coalesce(jsonb_object_agg(sums.key, sums.total), '{}'::jsonb) from (
    select entries.key, sum(entries.value::bigint) as total from (
      select * from jsonb_each_text(${sql.ref(`${table}.${column}`)})
      union all select * from jsonb_each_text(excluded.${sql.ref(column)})
    ) entries group by entries.key
  ) sums)`;
}

async function upsert(
  tx: Transaction<never>,
  table: string,
  retrievedFor: string,
  now: number,
  columns: readonly Column[],
): Promise<"inserted" | "added"> {
  const { rows } = await sql<{ inserted: boolean }>`
    insert into ${sql.table(table)} (retrieved_for, retrieved_at, ${sql.join(columns.map(({ column }) => sql.ref(column)))})
    values (${retrievedFor}, ${timestamp(now)}, ${sql.join(columns.map(({ value }) => value))})
    on conflict (retrieved_for) do update set retrieved_at = excluded.retrieved_at, ${sql.join(
      columns.map(({ column, merge }) => sql`${sql.ref(column)} = ${merge}`),
    )}
    returning (xmax = 0) as inserted`.execute(tx);
  return rows[0]?.inserted ? "inserted" : "added";
}

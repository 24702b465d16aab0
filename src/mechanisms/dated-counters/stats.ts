import type { KernelContext } from "../../kernel/context.ts";
import { calendarOf, type StatisticsCalendar } from "./calendar.ts";
import type { DailyStats, EventPlan } from "./daily-stats.ts";
import { applyOperations, type CounterOperation } from "./operations.ts";

const MAX_BREAKDOWN_BYTES = 200;
const MISSING = "__missing__";

/** What an event is counted with: its breakdown where it has one, its time, and how often. */
export type EventOptions<Plan> = Plan extends { readonly by: string }
  ? [options: { readonly extra: string; readonly at?: number; readonly by?: number }]
  : [options?: { readonly at?: number; readonly by?: number; readonly extra?: never }];

type StatsContext = Pick<KernelContext, "clock" | "redis" | "log" | "metrics">;

/**
 * Collects what a unit of work counts, merging equal increments in memory, and applies it with one call per family of
 * keys. Nothing reaches Redis before `store`.
 */
export class Stats {
  readonly #ctx: StatsContext;
  readonly #calendar: StatisticsCalendar;
  readonly #families = new Map<string, Map<string, CounterOperation>>();

  constructor(ctx: StatsContext, calendar: StatisticsCalendar) {
    this.#ctx = ctx;
    this.#calendar = calendar;
  }

  /** Counts an event on the day of `at` (default now), or on the oldest day that is still open if that one is closed. */
  incr<Events extends Readonly<Record<string, EventPlan>>, Event extends string & keyof Events>(
    stats: DailyStats<Events>,
    event: Event,
    ...[options]: EventOptions<Events[Event]>
  ): this {
    const { date } = dateOf(this.#ctx, this.#calendar, stats, options);
    return this.incrOn(stats, event, date, ...([options] as unknown as EventOptions<Events[Event]>));
  }

  /** Counts an event on a day that the caller chose, as reminders do with their own calendar date. */
  incrOn<Events extends Readonly<Record<string, EventPlan>>, Event extends string & keyof Events>(
    stats: DailyStats<Events>,
    event: Event,
    date: number,
    ...[options]: EventOptions<Events[Event]>
  ): this {
    const { by, extra } = amountOf(stats, event, options);
    if (by === 0) return this;
    this.add(stats.family, { op: "low", key: stats.earliest(), value: date });
    this.add(stats.family, { op: "hincr", key: stats.day(date), field: event, by });
    if (extra !== undefined) this.add(stats.family, { op: "xhincr", key: stats.extra(date, event), field: extra, by });
    return this;
  }

  /** Adds any operation on keys of that family; equal ones are merged. */
  add(family: string, operation: CounterOperation): this {
    const operations = this.#families.get(family) ?? new Map<string, CounterOperation>();
    this.#families.set(family, operations);
    const identity = identityOf(operation);
    const known = operations.get(identity);
    operations.set(identity, known ? merged(known, operation) : operation);
    return this;
  }

  /** What was collected for one family, for a script that counts beside its own effects. */
  operations(family: string): readonly CounterOperation[] {
    return [...(this.#families.get(family)?.values() ?? [])];
  }

  /** Every family with what was collected for it. */
  collected(): readonly { readonly family: string; readonly operations: readonly CounterOperation[] }[] {
    return [...this.#families].map(([family, operations]) => ({ family, operations: [...operations.values()] }));
  }

  /** Applies everything and forgets it. */
  async store(): Promise<void> {
    const collected = this.collected();
    this.#families.clear();
    await Promise.all(collected.map(({ operations }) => applyOperations(this.#ctx, operations)));
  }
}

/** The open day that events of this time (default now) count on, and how many of them have another one of their own. */
export function dateOf(
  ctx: Pick<KernelContext, "clock" | "log" | "metrics">,
  calendar: StatisticsCalendar,
  stats: Pick<DailyStats, "name" | "held" | "grace">,
  { at, by = 1 }: { readonly at?: number; readonly by?: number } = {},
): { readonly date: number; readonly redated: number } {
  const { date, redated } = calendar.dateFor(ctx.clock, at ?? ctx.clock.now(), stats);
  if (!redated || by === 0) return { date, redated: 0 };
  ctx.log.info({ family: stats.name, at, by }, "an event came after its day was closed and counts on another");
  countRedated(ctx, stats.name, by);
  return { date, redated: by };
}

export function countRedated({ metrics }: Pick<KernelContext, "metrics">, family: string, by: number): void {
  metrics
    .counter("carillon_stats_redated_total", "Events counted on another day than their own.", ["family"])
    .inc({ family }, by);
}

/** How often an event is counted, and on which key of its breakdown if it has one. */
export function amountOf(
  stats: Pick<DailyStats, "name" | "events">,
  event: string,
  options: { readonly by?: number; readonly extra?: string } | undefined,
): { readonly by: number; readonly extra: string | undefined } {
  const by = options?.by ?? 1;
  if (!Number.isInteger(by) || by < 0) throw new TypeError(`${stats.name} ${event}: ${by} is not a count`);
  // Types refuse a breakdown that is missing or too much; should one slip through, sums must stay true.
  if (stats.events[event]?.by === undefined) return { by, extra: undefined };
  return { by, extra: breakdownKey(options?.extra ?? MISSING) };
}

/** A collector in the timezone of the installation. */
export function statsOf(ctx: StatsContext & Pick<KernelContext, "config">): Stats {
  return new Stats(ctx, calendarOf(ctx));
}

function identityOf(operation: CounterOperation): string {
  switch (operation.op) {
    case "low":
    case "incr":
      return `${operation.op} ${operation.key}`;
    case "hlow":
    case "hincr":
    case "xhincr":
      return `${operation.op} ${operation.key} ${operation.field}`;
    case "sadd":
      return `sadd ${operation.key} ${operation.member}`;
    case "smove":
      return `smove ${operation.from} ${operation.to} ${operation.member}`;
    case "unless":
      return `unless ${operation.sets.join(" ")} ${operation.member}`;
  }
}

function merged(known: CounterOperation, added: CounterOperation): CounterOperation {
  if ("by" in known && "by" in added) return { ...known, by: known.by + added.by };
  if ("value" in known && "value" in added) return { ...known, value: Math.min(known.value, added.value) };
  return known;
}

/** A breakdown's key as it is stored: at most 200 bytes of printable text, a longer one ends in `~`. */
export function breakdownKey(text: string): string {
  const printable = text.replaceAll(/\p{C}/gu, "?");
  if (Buffer.byteLength(printable) <= MAX_BREAKDOWN_BYTES) return printable;
  const cut = Buffer.from(printable)
    .subarray(0, MAX_BREAKDOWN_BYTES - 1)
    .toString("utf8");
  return `${cut.replace(/\uFFFD+$/, "")}~`;
}

import type { KernelContext } from "../../kernel/context.ts";
import { calendarOf, type StatisticsCalendar } from "./calendar.ts";
import type { DailyStats, EventPlan } from "./daily-stats.ts";
import { amountOf, dateOf, type EventOptions } from "./stats.ts";

type TallyContext = Pick<KernelContext, "clock" | "log" | "metrics" | "config">;

/** What counts events: a `Stats` that is stored by itself, or the block of an item that a script counts. */
export interface Counting {
  incr<Events extends Readonly<Record<string, EventPlan>>, Event extends string & keyof Events>(
    stats: DailyStats<Events>,
    event: Event,
    ...options: EventOptions<Events[Event]>
  ): this;
  /** Counts on a day that the caller chose, as reminders do with their own calendar date. */
  incrOn<Events extends Readonly<Record<string, EventPlan>>, Event extends string & keyof Events>(
    stats: DailyStats<Events>,
    event: Event,
    date: number,
    ...options: EventOptions<Events[Event]>
  ): this;
}

/** Events that came after their day was closed. */
export interface Redated {
  readonly family: string;
  readonly events: number;
}

/** Places of one day's counters among the keys of the call. */
interface Day {
  readonly date: number;
  readonly earliest: number;
  readonly counts: number;
  readonly breakdowns: Map<string, number>;
}

/**
 * What the items of one script call count. Each item has a block of its own, because it counts only if the script applies
 * it; counters are named by their place among the keys, since the items of a call mostly share them. The script reads
 * blocks with `tally.fragment.lua`. All counters of a call belong to one family of keys, as the script's own keys do.
 */
export class Tally {
  readonly #ctx: TallyContext;
  readonly #calendar: StatisticsCalendar;
  readonly #keys: string[] = [];
  readonly #days = new Map<string, Day[]>();
  #family: string | undefined;
  #redated: readonly Redated[] = [];

  constructor(ctx: TallyContext) {
    this.#ctx = ctx;
    this.#calendar = calendarOf(ctx);
  }

  /** The counters of all blocks so far, in the order in which blocks name them. */
  get keys(): readonly string[] {
    return this.#keys;
  }

  /** What the last block counts on another day than its own. */
  get redated(): readonly Redated[] {
    return this.#redated;
  }

  /** One item's block: how many operations, then for each its name, the counter's place, field and amount. */
  block(count: (counting: Counting) => void): (string | number)[] {
    const redated: Redated[] = [];
    const block = new Block((stats, event, options, chosen) => {
      const { by, extra } = amountOf(stats, event, options);
      if (by === 0) return;
      const { date, redated: events } =
        chosen === undefined ? dateOf(this.#ctx, this.#calendar, stats, options) : { date: chosen, redated: 0 };
      if (events > 0) redated.push({ family: stats.name, events });
      const day = this.#dayOf(stats, date);
      block.add("low", day.earliest, "", day.date);
      block.add("hincr", day.counts, event, by);
      if (extra !== undefined) block.add("xhincr", this.#breakdownOf(stats, day, event), extra, by);
    });
    count(block);
    this.#redated = redated;
    return block.encoded;
  }

  #dayOf(stats: DailyStats, date: number): Day {
    let days = this.#days.get(stats.name);
    if (!days) {
      this.#family ??= stats.family;
      if (stats.family !== this.#family)
        throw new TypeError(`${stats.name} belongs to the keys of ${stats.family}, not of ${this.#family}`);
      days = [];
      this.#days.set(stats.name, days);
    }
    const known = days.find((day) => day.date === date);
    if (known) return known;
    const earliest = days[0]?.earliest ?? this.#keys.push(stats.earliest());
    const day = { date, earliest, counts: this.#keys.push(stats.day(date)), breakdowns: new Map() };
    days.push(day);
    return day;
  }

  #breakdownOf(stats: DailyStats, day: Day, event: string): number {
    const known = day.breakdowns.get(event);
    if (known !== undefined) return known;
    const place = this.#keys.push(stats.extra(day.date, event));
    day.breakdowns.set(event, place);
    return place;
  }
}

type Options = { readonly at?: number; readonly by?: number; readonly extra?: string } | undefined;

/** Equal operations are merged, so that a whole group may share one block. */
class Block implements Counting {
  readonly #count: (stats: DailyStats, event: string, options: Options, date?: number) => void;
  readonly encoded: (string | number)[] = [0];

  constructor(count: (stats: DailyStats, event: string, options: Options, date?: number) => void) {
    this.#count = count;
  }

  incr<Events extends Readonly<Record<string, EventPlan>>, Event extends string & keyof Events>(
    stats: DailyStats<Events>,
    event: Event,
    ...[options]: EventOptions<Events[Event]>
  ): this {
    this.#count(stats as unknown as DailyStats, event, options);
    return this;
  }

  incrOn<Events extends Readonly<Record<string, EventPlan>>, Event extends string & keyof Events>(
    stats: DailyStats<Events>,
    event: Event,
    date: number,
    ...[options]: EventOptions<Events[Event]>
  ): this {
    this.#count(stats as unknown as DailyStats, event, options, date);
    return this;
  }

  add(operation: "low" | "hincr" | "xhincr", place: number, field: string, amount: number): void {
    const { encoded } = this;
    for (let at = 1; at < encoded.length; at += 4) {
      if (encoded[at + 1] !== place || encoded[at + 2] !== field) continue;
      // A pointer's amount is its day: those of one family come in any order, and the earliest counts.
      const held = encoded[at + 3] as number;
      encoded[at + 3] = operation === "low" ? Math.min(held, amount) : held + amount;
      return;
    }
    encoded.push(operation, place, field, amount);
    encoded[0] = (encoded[0] as number) + 1;
  }
}

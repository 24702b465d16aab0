import type { Context } from "../../jobs/context.ts";
import { calendarOf, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";

/**
 * The days that the items of one script call count on. A script counts an item only if it also moves it, so every item
 * names its day by position, and the days are keys of the call.
 */
export class Tally {
  readonly #ctx: Pick<Context, "clock" | "config">;
  readonly #stats: StatsFamily;
  readonly #dates: number[] = [];

  constructor(ctx: Pick<Context, "clock" | "config">, stats: StatsFamily) {
    this.#ctx = ctx;
    this.#stats = stats;
  }

  /** Position and date of the day that an event of this time counts on. */
  day(at: number): [position: number, date: number] {
    const { date } = calendarOf(this.#ctx).dateFor(this.#ctx.clock, at, this.#stats);
    const known = this.#dates.indexOf(date);
    return [known >= 0 ? known + 1 : this.#dates.push(date), date];
  }

  get earliest(): string {
    return this.#stats.earliest();
  }

  get days(): string[] {
    return this.#dates.map((date) => this.#stats.day(date));
  }
}

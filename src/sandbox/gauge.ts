import type { Clock } from "../kernel/clock.ts";

/** Counts what happened in the last seconds of the clock, for limits on a rate or on a day. */
export class Gauge {
  readonly #clock: Clock;
  readonly #window: number;
  #entries: { readonly at: number; readonly count: number }[] = [];

  constructor(clock: Clock, windowSeconds: number) {
    this.#clock = clock;
    this.#window = windowSeconds;
  }

  get total(): number {
    const since = this.#clock.now() - this.#window;
    this.#entries = this.#entries.filter(({ at }) => at > since);
    return this.#entries.reduce((sum, { count }) => sum + count, 0);
  }

  /** Counts, unless that would pass the limit. */
  admit(count: number, limit: number | null): boolean {
    if (limit !== null && this.total + count > limit) return false;
    this.count(count);
    return true;
  }

  count(count: number): void {
    this.#entries.push({ at: this.#clock.now(), count });
    if (this.#entries.length > 10_000) void this.total;
  }
}

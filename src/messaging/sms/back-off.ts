import type { Clock } from "../../kernel/clock.ts";

const LONGEST_EXPONENT = 5;

/**
 * How a run slows down while the provider is in trouble: 2, 4, 8, 16, then 32 s after each failure in a row, until one
 * request goes well. Requests that were under way when a failure came belong to the same trouble and count once.
 */
export class BackOff {
  readonly #clock: Clock;
  readonly #sleep: (seconds: number) => Promise<boolean>;
  /** By the monotonic clock: a rest beyond it ends the run. */
  readonly #deadline: number;
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #restUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, sleep: (seconds: number) => Promise<boolean>, budget: number) {
    this.#clock = clock;
    this.#sleep = sleep;
    this.#deadline = clock.monotonic() + budget;
  }

  /** True when the next rest would outlast the run. */
  get exhausted(): boolean {
    return this.#restUntil > this.#deadline;
  }

  /** Waits until requests make sense again; false when the run should end instead. */
  async ready(): Promise<boolean> {
    for (;;) {
      if (this.exhausted) return false;
      const left = this.#restUntil - this.#clock.monotonic();
      if (left <= 0) return true;
      if (!(await this.#sleep(left))) return false;
    }
  }

  /** Notes how a request went that began at `began` of the monotonic clock. */
  note(began: number, went: "well" | "badly"): void {
    if (went === "well") {
      this.#failures = 0;
      return;
    }
    if (began <= this.#failedAt) return;
    const now = this.#clock.monotonic();
    this.#failures += 1;
    this.#failedAt = now;
    this.#restUntil = now + 2 ** Math.min(this.#failures, LONGEST_EXPONENT);
  }
}

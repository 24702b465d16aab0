import type { Clock } from "../../kernel/clock.ts";

const LONGEST_EXPONENT = 5;

/**
 * How a run slows down while the provider is in trouble. A failure that others would share closes the gate for 2, 4, 8, 16,
 * then 32 s, longer with each one of the run. After the rest one mail at a time goes through, until one is taken.
 * Requests that were under way when a failure came belong to the same trouble and count once.
 */
export class Gate {
  readonly #clock: Clock;
  readonly #sleep: (seconds: number) => Promise<boolean>;
  /** By the monotonic clock: a rest beyond it ends the run. */
  readonly #deadline: number;
  #troubles = 0;
  #troubledAt = Number.NEGATIVE_INFINITY;
  #restUntil = Number.NEGATIVE_INFINITY;
  #careful = false;
  #single: Promise<void> = Promise.resolve();

  constructor(clock: Clock, sleep: (seconds: number) => Promise<boolean>, budget: number) {
    this.#clock = clock;
    this.#sleep = sleep;
    this.#deadline = clock.monotonic() + budget;
  }

  /** Sends through the gate; undefined when the run should end instead. */
  async pass<T>(request: () => Promise<T>, went: (answer: T) => "well" | "badly" | "neither"): Promise<T | undefined> {
    if (!this.#careful) return this.#go(request, went);
    const before = this.#single;
    let leave = () => {};
    this.#single = new Promise((resolve) => {
      leave = resolve;
    });
    await before;
    try {
      return await this.#go(request, went);
    } finally {
      leave();
    }
  }

  async #go<T>(request: () => Promise<T>, went: (answer: T) => "well" | "badly" | "neither"): Promise<T | undefined> {
    // Nearly always: waiting for nothing costs a turn for every mail.
    if (this.#restUntil > this.#clock.monotonic() && !(await this.#rested())) return undefined;
    const began = this.#clock.monotonic();
    const answer = await request();
    const how = went(answer);
    if (how === "well") this.#careful = false;
    if (how === "badly") this.#close(began);
    return answer;
  }

  async #rested(): Promise<boolean> {
    for (;;) {
      if (this.#restUntil > this.#deadline) return false;
      const left = this.#restUntil - this.#clock.monotonic();
      if (left <= 0) return true;
      if (!(await this.#sleep(left))) return false;
    }
  }

  #close(began: number): void {
    this.#careful = true;
    if (began <= this.#troubledAt) return;
    const now = this.#clock.monotonic();
    this.#troubles += 1;
    this.#troubledAt = now;
    this.#restUntil = now + 2 ** Math.min(this.#troubles, LONGEST_EXPONENT);
  }
}

/**
 * Time, as everything in the house sees it: unix seconds as a float, from one injected object.
 *
 * Nothing outside this file asks the platform for the time or sets a timer, so a test that brings its own clock decides
 * when things happen. Scripts in Redis get `now` as an argument for the same reason.
 */
export interface Clock {
  /** Unix seconds, with fractions. */
  now(): number;
  /** Seconds that only ever grow, for measuring durations across jumps of the wall clock. */
  monotonic(): number;
  /** Waits; answers false when the signal cut the wait short. Never rejects. */
  sleep(seconds: number, signal?: AbortSignal): Promise<boolean>;
  /** Calls `tick` every `seconds` until the returned function is called. A tick never overlaps the one before. */
  every(seconds: number, tick: () => Promise<void> | void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now() / 1000,
  monotonic: () => performance.now() / 1000,
  sleep: (seconds, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve(false);
      const onAbort = () => {
        clearTimeout(timer);
        resolve(false);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener("abort", onAbort);
          resolve(true);
        },
        Math.max(0, seconds * 1000),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
  every: (seconds, tick) => everyBy(systemClock, seconds, tick),
};

/** Repetition on top of any clock's `sleep`. */
function everyBy(clock: Clock, seconds: number, tick: () => Promise<void> | void): () => void {
  const stopping = new AbortController();
  const loop = async () => {
    while (await clock.sleep(seconds, stopping.signal)) await tick();
  };
  void loop();
  return () => stopping.abort();
}

interface Sleeper {
  readonly due: number;
  readonly order: number;
  wake(completed: boolean): void;
}

/**
 * A clock that stands still until somebody moves it: a test, or the demo that lives a month in a minute. `advance` wakes sleepers in the order of their due times, and tells
 * each `onAdvance` listener how far time went, which is how Redis TTLs follow virtual time.
 */
export class VirtualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #order = 0;
  #sleepers: Sleeper[] = [];
  readonly #listeners = new Set<(seconds: number) => Promise<void> | void>();

  constructor(start = 1_772_000_000) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** How many are asleep on this clock right now: a fact that tests wait for before they advance. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  /** When the next of them wakes up, for whoever skips the time in which nothing happens. */
  get nextDue(): number | undefined {
    if (this.#sleepers.length === 0) return undefined;
    return this.#now + Math.min(...this.#sleepers.map(({ due }) => due)) - this.#monotonic;
  }

  sleep(seconds: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve(false);
      const sleeper: Sleeper = {
        due: this.#monotonic + Math.max(0, seconds),
        order: this.#order++,
        wake: (completed) => {
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
          signal?.removeEventListener("abort", onAbort);
          resolve(completed);
        },
      };
      const onAbort = () => sleeper.wake(false);
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  every(seconds: number, tick: () => Promise<void> | void): () => void {
    return everyBy(this, seconds, tick);
  }

  onAdvance(listener: (seconds: number) => Promise<void> | void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Moves time forward, stopping at every sleeper's due time so that what it does next happens at that time. */
  async advance(seconds: number): Promise<void> {
    const target = this.#monotonic + seconds;
    for (;;) {
      const next = this.#sleepers
        .filter((sleeper) => sleeper.due <= target)
        .sort((a, b) => a.due - b.due || a.order - b.order)[0];
      await this.#moveTo(next ? next.due : target);
      if (!next) return;
      next.wake(true);
      await new Promise(setImmediate);
    }
  }

  /** The wall clock jumps without time passing, as when an operator or NTP sets it. */
  jump(seconds: number): void {
    this.#now += seconds;
  }

  async #moveTo(monotonic: number): Promise<void> {
    const step = Math.max(0, monotonic - this.#monotonic);
    this.#monotonic += step;
    this.#now += step;
    if (step > 0) for (const listener of this.#listeners) await listener(step);
  }
}

import { setMaxListeners } from "node:events";
import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";

/**
 * What the simulators do later: status steps, callbacks, notifications. Times are those of the injected clock. Tasks of
 * one thread run one after another in the order of their times, because callbacks about one message must not
 * overtake each other by accident; they do so only when a knob says so.
 */
export class Agenda {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  readonly #threads = new Map<string, Promise<void>>();
  readonly #running = new Set<Promise<void>>();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    // Everything that is planned waits for the end too, and thousands may be planned.
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Aborted when the sandbox ends. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** How many tasks have begun and not ended; those whose time is still ahead do not count. */
  get atWork(): number {
    return this.#threads.size;
  }

  /** Runs `task` at that time, or as soon as the present answer is out. */
  at(time: number, thread: string, task: () => Promise<void> | void): void {
    const running = this.#reach(time).then((reached) => (reached ? this.#next(thread, task) : undefined));
    this.#running.add(running);
    void running.then(() => this.#running.delete(running));
  }

  /** Waits on the clock; false when the sandbox ends before. */
  pause(seconds: number): Promise<boolean> {
    return this.#clock.sleep(seconds, this.signal);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  async #next(thread: string, task: () => Promise<void> | void): Promise<void> {
    const before = this.#threads.get(thread) ?? Promise.resolve();
    const turn = before
      .then(() => (this.signal.aborted ? undefined : task()))
      .catch((error: unknown) => {
        if (!this.signal.aborted) this.#log.warn({ error: String(error) }, "a task of the sandbox failed");
      });
    this.#threads.set(thread, turn);
    await turn;
    if (this.#threads.get(thread) === turn) this.#threads.delete(thread);
  }

  async #reach(time: number): Promise<boolean> {
    const seconds = time - this.#clock.now();
    if (seconds > 0) return this.pause(seconds);
    await new Promise(setImmediate);
    return true;
  }
}

import type { Clock } from "../../kernel/clock.ts";
import type { LinkTarget } from "./entries.ts";

/** How long a stored link is taken from memory before SQL is asked again, in seconds. */
const FRESH = 60;
const MOST = 10_000;

interface Held {
  readonly target: LinkTarget;
  readonly since: number;
}

/**
 * Links that this process has seen lately. Fresh ones spare SQL a question; older ones are used only while Redis or SQL
 * cannot be asked. What does not exist is never remembered: it may exist a moment later.
 */
export class LinkMemory {
  readonly #clock: Clock;
  /** Two shelves: when the newer is full it becomes the older, and what nobody asked for since then is forgotten. */
  #newer = new Map<string, Held>();
  #older = new Map<string, Held>();
  readonly #waiting = new WeakMap<LinkTarget, Held>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A link that is known to be stored, seen within the last minute. */
  fresh(code: string): LinkTarget | undefined {
    const held = this.#held(code);
    return held && this.#clock.monotonic() - held.since <= FRESH ? held.target : undefined;
  }

  /** Whatever was seen last, however long ago. */
  last(code: string): LinkTarget | undefined {
    return this.#held(code)?.target;
  }

  /** A waiting link may be given up any time, so it is remembered for bad times only. */
  note(code: string, target: LinkTarget, stored: boolean): void {
    this.#put(code, stored ? { target, since: this.#clock.monotonic() } : this.#waitingAt(target));
  }

  /** Links that wait and lead to one place are remembered alike. */
  #waitingAt(target: LinkTarget): Held {
    const known = this.#waiting.get(target) ?? { target, since: Number.NEGATIVE_INFINITY };
    this.#waiting.set(target, known);
    return known;
  }

  #held(code: string): Held | undefined {
    return this.#newer.get(code) ?? this.#older.get(code);
  }

  #put(code: string, held: Held): void {
    if (this.#newer.size >= MOST) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(code, held);
  }
}

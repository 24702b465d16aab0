import type { Clock } from "../../kernel/clock.ts";
import type { LinkTarget } from "./entries.ts";

/** How long a stored link is taken from memory before SQL is asked again, in seconds. */
const FRESH = 60;
const MOST = 20_000;

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
  readonly #links = new Map<string, Held>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A link that is known to be stored, seen within the last minute. */
  fresh(code: string): LinkTarget | undefined {
    const held = this.#links.get(code);
    return held && this.#clock.monotonic() - held.since <= FRESH ? held.target : undefined;
  }

  /** Whatever was seen last, however long ago. */
  last(code: string): LinkTarget | undefined {
    return this.#links.get(code)?.target;
  }

  /** A waiting link may be given up any time, so it is remembered for bad times only. */
  note(code: string, target: LinkTarget, stored: boolean): void {
    this.#links.delete(code);
    this.#links.set(code, { target, since: stored ? this.#clock.monotonic() : Number.NEGATIVE_INFINITY });
    if (this.#links.size > MOST) for (const oldest of this.#links.keys()) return void this.#links.delete(oldest);
  }
}

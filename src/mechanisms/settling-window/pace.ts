import type { Clock } from "../../kernel/clock.ts";

/**
 * At most so many items in any second, however they are grouped. Kept by whoever sends, for as long as the process
 * lives, so that two runs in the same second share one allowance; only one process sends at a time.
 */
export class Pace {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #perSecond: number;
  /** What went out within the last second, oldest first. */
  #recent: { readonly at: number; readonly count: number }[] = [];

  constructor(clock: Pick<Clock, "monotonic">, perSecond: number) {
    if (!(perSecond > 0)) throw new RangeError(`${perSecond} items a second would never send anything`);
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Seconds until `count` more may go. A group larger than the allowance goes alone, and its second is paid for. */
  wait(count: number): number {
    const now = this.#clock.monotonic();
    this.#recent = this.#recent.filter(({ at, count: sent }) => at + secondsFor(sent, this.#perSecond) > now);
    let used = this.#recent.reduce((sum, { count: sent }) => sum + sent, 0);
    let until = now;
    for (const { at, count: sent } of this.#recent) {
      if (used + count <= this.#perSecond) break;
      used -= sent;
      until = at + secondsFor(sent, this.#perSecond);
    }
    return Math.max(0, until - now);
  }

  spend(count: number): void {
    this.#recent.push({ at: this.#clock.monotonic(), count });
  }
}

function secondsFor(count: number, perSecond: number): number {
  return Math.max(1, count / perSecond);
}

import type { Clock } from "../../kernel/clock.ts";

/** What goes out within so many seconds counts as one moment, so that a fast sender's memory stays short. */
const MOMENT = 0.01;
/** The share of a second's allowance that an even pace lets out at once. */
const AT_ONCE = 0.05;

/**
 * At most so many items in any second, however they are grouped. Kept by whoever sends, for as long as the process
 * lives, so that two runs in the same second share one allowance; only one process sends at a time.
 *
 * By itself it lets a whole second's allowance out at once and is then silent for the rest. An even pace spreads it, so
 * that whoever comes later and is in a hurry waits for the next item's turn, not for the next second.
 */
export class Pace {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #perSecond: number;
  readonly #even: boolean;
  /** What went out within the last second, oldest first. */
  #recent: { readonly began: number; at: number; count: number }[] = [];
  /** What an even pace may let out now. */
  #credit: number;
  #creditAt: number;

  constructor(clock: Pick<Clock, "monotonic">, perSecond: number, options: { readonly even?: boolean } = {}) {
    if (!(perSecond > 0)) throw new RangeError(`${perSecond} items a second would never send anything`);
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#even = options.even ?? false;
    this.#credit = this.#mostCredit;
    this.#creditAt = clock.monotonic();
  }

  /** Seconds until `count` more may go. A group larger than the allowance goes alone, and its second is paid for. */
  wait(count: number): number {
    const now = this.#clock.monotonic();
    this.#forget(now);
    let used = 0;
    for (const { count: sent } of this.#recent) used += sent;
    let until = now;
    for (const { at, count: sent } of this.#recent) {
      if (used + count <= this.#perSecond) break;
      used -= sent;
      until = at + secondsFor(sent, this.#perSecond);
    }
    return Math.max(until - now, this.#even ? this.#untilCredit(count, now) : 0);
  }

  spend(count: number): void {
    const now = this.#clock.monotonic();
    const last = this.#recent.at(-1);
    // Counted at the later time, what is merged is remembered a little too long, never too short.
    if (last && now - last.began < MOMENT && last.count + count <= this.#perSecond) {
      last.count += count;
      last.at = now;
    } else this.#recent.push({ began: now, at: now, count });
    this.#earn(now);
    this.#credit -= count;
  }

  get #mostCredit(): number {
    return Math.max(1, this.#perSecond * AT_ONCE);
  }

  #forget(now: number): void {
    const over = this.#recent.findIndex(({ at, count }) => at + secondsFor(count, this.#perSecond) > now);
    if (over !== 0) this.#recent.splice(0, over < 0 ? this.#recent.length : over);
  }

  #earn(now: number): void {
    this.#credit = Math.min(this.#mostCredit, this.#credit + (now - this.#creditAt) * this.#perSecond);
    this.#creditAt = now;
  }

  #untilCredit(count: number, now: number): number {
    this.#earn(now);
    const missing = Math.min(count, this.#mostCredit) - this.#credit;
    // Virtual and real clocks add fractions up: the last of them is not worth a wait.
    return missing <= 1e-6 ? 0 : missing / this.#perSecond;
  }
}

function secondsFor(count: number, perSecond: number): number {
  return Math.max(1, count / perSecond);
}

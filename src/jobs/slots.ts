import type { Held } from "./held.ts";

export interface SlotLimits {
  /** Jobs that run at the same time, recurring ones not counted. */
  readonly concurrency: number;
  /** How many of all may be of category 1. */
  readonly heavy: number;
  /** Recurring jobs that run beside them. */
  readonly recurring: number;
}

export type SlotKind = "plain" | "recurring";

/** One look ahead covers this many seconds of work at the present speed, but never more entries than MAX_PREFETCH. */
const PREFETCH_SECONDS = 0.1;
export const MAX_PREFETCH = 500;

/**
 * Which entries run, which wait in hand, and how many more to take.
 *
 * A worker takes ahead only as much as it finishes in a tenth of a second: fast jobs flow in large batches, slow ones
 * are left in the queue for other workers.
 */
export class Slots {
  readonly #limits: SlotLimits;
  #plainActive = 0;
  #recurringActive = 0;
  #heavyActive = 0;
  #heavyWaiting = 0;
  #plain: Held[] = [];
  #recurring: Held[] = [];
  #finishedSinceTake = 0;
  #lastTakeAt: number;
  #prefetch = 0;

  constructor(limits: SlotLimits, now: number) {
    this.#limits = limits;
    this.#lastTakeAt = now;
  }

  get active(): number {
    return this.#plainActive + this.#recurringActive;
  }

  get waiting(): number {
    return this.#plain.length + this.#recurring.length;
  }

  /** How many more costly jobs may come in. */
  get heavyFree(): number {
    return Math.max(0, this.#limits.heavy - this.#heavyActive - this.#heavyWaiting);
  }

  /** How many entries fit right now; none while enough wait in hand already. */
  room(): { plain: number; recurring: number } {
    const ahead = this.#plain.length;
    const wantsPlain = ahead === 0 || ahead <= this.#prefetch / 2;
    const plain = wantsPlain ? this.#limits.concurrency + this.#prefetch - this.#plainActive - ahead : 0;
    const recurring = this.#limits.recurring - this.#recurringActive - this.#recurring.length;
    return { plain: Math.min(MAX_PREFETCH, Math.max(0, plain)), recurring: Math.max(0, recurring) };
  }

  /** Learns the present speed; called before each take. */
  noteTake(now: number): void {
    const elapsed = now - this.#lastTakeAt;
    if (elapsed > 0) {
      const perSecond = this.#finishedSinceTake / elapsed;
      this.#prefetch = Math.min(MAX_PREFETCH, Math.floor(perSecond * PREFETCH_SECONDS));
    }
    this.#finishedSinceTake = 0;
    this.#lastTakeAt = now;
  }

  add(held: Held): void {
    if (held.runner.category === 1) this.#heavyWaiting++;
    (held.job.rjob === undefined ? this.#plain : this.#recurring).push(held);
  }

  /** The next entries that may start: one, or for a batch runner all that wait of the same name. */
  next(): { held: readonly Held[]; kind: SlotKind } | undefined {
    if (this.#recurring.length > 0 && this.#recurringActive < this.#limits.recurring)
      return this.#start([this.#recurring.shift()!], "recurring");
    if (this.#plainActive >= this.#limits.concurrency) return undefined;
    // A recurring job that finds its own slots full uses a plain one rather than hold up the queue behind it.
    const first = this.#plain.shift() ?? this.#recurring.shift();
    if (!first) return undefined;
    if (!first.runner.runMany) return this.#start([first], "plain");
    const batch = [first, ...this.#plain.filter((held) => held.runner === first.runner)].slice(0, MAX_PREFETCH);
    const together = new Set(batch);
    this.#plain = this.#plain.filter((held) => !together.has(held));
    return this.#start(batch, "plain");
  }

  ended(held: readonly Held[], kind: SlotKind): void {
    if (kind === "plain") this.#plainActive--;
    else this.#recurringActive--;
    this.#heavyActive -= held.filter(({ runner }) => runner.category === 1).length;
    this.#finishedSinceTake += held.length;
  }

  /** Takes back entries that have waited in hand since before the given time, or all of them. */
  drain(takenBefore = Number.POSITIVE_INFINITY): Held[] {
    const leaving = [...this.#recurring, ...this.#plain].filter((held) => held.takenAt < takenBefore);
    if (leaving.length === 0) return leaving;
    const gone = new Set(leaving);
    this.#plain = this.#plain.filter((held) => !gone.has(held));
    this.#recurring = this.#recurring.filter((held) => !gone.has(held));
    this.#heavyWaiting -= leaving.filter(({ runner }) => runner.category === 1).length;
    this.#prefetch = 0;
    return leaving;
  }

  #start(held: readonly Held[], kind: SlotKind) {
    if (kind === "plain") this.#plainActive++;
    else this.#recurringActive++;
    const heavy = held.filter(({ runner }) => runner.category === 1).length;
    this.#heavyWaiting -= heavy;
    this.#heavyActive += heavy;
    return { held, kind };
  }
}

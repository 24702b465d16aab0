import type { KernelContext } from "../../kernel/context.ts";
import { countRedated } from "./stats.ts";
import { type Counting, type Redated, Tally } from "./tally.ts";

/** Days begin on quarter hours wherever people live: what belongs to the same one counts on the same day. */
const QUARTER = 900;

/**
 * What the items of one script call count, by kind. Most items of a call count the same, so each kind's block of counts is
 * written once and the script applies it once, for all items that it applied.
 */
export class Kinds {
  readonly blocks: (string | number)[] = [];
  readonly #ctx: Pick<KernelContext, "metrics">;
  readonly #tally: Tally;
  readonly #known = new Map<string, number>();
  /** By the kind, where items of it come after their day was closed; nearly always empty. */
  readonly #redated = new Map<number, readonly Redated[]>();

  constructor(ctx: Pick<KernelContext, "clock" | "log" | "metrics" | "config">) {
    this.#ctx = ctx;
    this.#tally = new Tally(ctx);
  }

  /** The counters of all blocks. */
  get keys(): readonly string[] {
    return this.#tally.keys;
  }

  get count(): number {
    return this.#known.size;
  }

  /** The number of a kind, which its name and the time that it is dated by tell from others. */
  of(name: string, at: number, count: (counting: Counting) => void): number {
    const full = `${name} ${Math.floor(at / QUARTER)}`;
    const known = this.#known.get(full);
    if (known !== undefined) {
      if (this.#redated.size > 0)
        for (const { family, events } of this.#redated.get(known) ?? []) countRedated(this.#ctx, family, events);
      return known;
    }
    for (const part of this.#tally.block(count)) this.blocks.push(part);
    const kind = this.#known.size + 1;
    this.#known.set(full, kind);
    if (this.#tally.redated.length > 0) this.#redated.set(kind, this.#tally.redated);
    return kind;
  }
}

import type { KernelContext } from "../../kernel/context.ts";
import { type Counting, Tally } from "./tally.ts";

/** Days begin on quarter hours wherever people live: what belongs to the same one counts on the same day. */
const QUARTER = 900;

/**
 * What the items of one script call count, by kind. Most items of a call count the same, so each kind's block of counts is
 * written once and the script applies it once, for all items that it applied.
 */
export class Kinds {
  readonly blocks: (string | number)[] = [];
  readonly #tally: Tally;
  readonly #known = new Map<string, number>();

  constructor(ctx: Pick<KernelContext, "clock" | "log" | "metrics" | "config">) {
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
    if (known !== undefined) return known;
    for (const part of this.#tally.block(count)) this.blocks.push(part);
    this.#known.set(full, this.#known.size + 1);
    return this.#known.size;
  }
}

import type { Fence } from "../lock/index.ts";

/** Items that are exactly those at the head of a purgatory, as far as whoever holds its lock knows. */
export interface Head {
  readonly fence: Fence;
  /** The last of them, byte for byte: while it stands where it should, so do all before it. */
  readonly last: Buffer;
}

/**
 * What stands in a purgatory, and in which order, as its one worker believes: others change it only when the lock was
 * lost. Items that stand at its head can be cut off by their number, which costs a fraction of naming each of them.
 */
export class Standing<Item> {
  #items: Item[];

  constructor(items: readonly Item[]) {
    this.#items = [...items];
  }

  get items(): readonly Item[] {
    return this.#items;
  }

  /** These were claimed and stand at the end now. */
  join(items: readonly Item[]): void {
    this.#items.push(...items);
  }

  /** The last of these, if they are all that stands before and with it; in whatever order they are given. */
  lastOfHead(items: readonly Item[]): Item | undefined {
    const head = this.#items.slice(0, items.length);
    const given = new Set(items);
    return head.every((item) => given.has(item)) ? head.at(-1) : undefined;
  }

  /** These have left it. */
  leave(items: readonly Item[]): void {
    const gone = new Set(items);
    this.#items = this.#items.filter((item) => !gone.has(item));
  }
}

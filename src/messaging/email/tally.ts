import type { KernelContext } from "../../kernel/context.ts";
import { type CounterOperation, calendarOf, Stats } from "../../mechanisms/dated-counters/index.ts";

type TallyContext = Pick<KernelContext, "clock" | "redis" | "log" | "metrics" | "config">;

/**
 * What the items of one script call count. Each item has a block of its own, because it counts only if it is applied;
 * counters are named by their place among the keys, since the items of a call mostly share them.
 */
export class Tally {
  readonly #ctx: TallyContext;
  readonly #places = new Map<string, number>();

  constructor(ctx: TallyContext) {
    this.#ctx = ctx;
  }

  /** The counters of all blocks so far, in the order in which blocks name them. */
  get keys(): string[] {
    return [...this.#places.keys()];
  }

  /** One item's block: how many operations, then for each its name, the counter's place, field and amount. */
  block(count: (stats: Stats) => void): (string | number)[] {
    const stats = new Stats(this.#ctx, calendarOf(this.#ctx));
    count(stats);
    const operations = stats.operations("email");
    return [operations.length, ...operations.flatMap((operation) => this.#encode(operation))];
  }

  #encode(operation: CounterOperation): (string | number)[] {
    switch (operation.op) {
      case "low":
        return ["low", this.#placeOf(operation.key), "", operation.value];
      case "hincr":
      case "xhincr":
        return [operation.op, this.#placeOf(operation.key), operation.field, operation.by];
      default:
        throw new TypeError(`mails count nothing with ${operation.op}`);
    }
  }

  #placeOf(key: string): number {
    const place = this.#places.get(key) ?? this.#places.size + 1;
    this.#places.set(key, place);
    return place;
  }
}

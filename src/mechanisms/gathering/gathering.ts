export interface GatheringPlan<Item, Answer> {
  /** The most items of one group; 500 where a script takes them. */
  readonly most: number;
  /** Does the work of a whole group. Never called while an earlier call is under way. */
  work(group: readonly Item[]): Promise<Answer>;
}

interface Group<Item, Answer> {
  readonly items: Item[];
  readonly end: Promise<Answer>;
  done(answer: Answer): void;
  failed(error: unknown): void;
}

/**
 * Groups calls that arrive close together.
 *
 *   idle ──join──▶ gathering ──end of the turn──▶ working ──end, others joined meanwhile──▶ working
 *    ▲                                               └──────────end, nobody did──────┐
 *    └───────────────────────────────────────────────────────────────────────────────┘
 *
 * Nothing waits for time: the first group is what came in one turn of the event loop, each further one what came while the
 * one before it was at work. So a quiet system answers at once, and a busy one makes larger groups instead of a longer
 * queue. Nothing is remembered beyond the process: an item counts as taken when its group's work has ended well, and
 * whoever brought it must not say so before. When the work fails, its whole group fails with it and the next one goes on.
 */
export class Gathering<Item, Answer = void> {
  readonly #plan: GatheringPlan<Item, Answer>;
  readonly #groups: Group<Item, Answer>[] = [];
  #working = false;

  constructor(plan: GatheringPlan<Item, Answer>) {
    if (plan.most < 1) throw new RangeError("a group holds at least one item");
    this.#plan = plan;
  }

  /** Adds an item to the next group, and answers what came of that group: one promise serves all of it. */
  join(item: Item): Promise<Answer> {
    let group = this.#groups.at(-1);
    if (!group || group.items.length >= this.#plan.most) {
      group = newGroup();
      this.#groups.push(group);
    }
    group.items.push(item);
    if (!this.#working) {
      this.#working = true;
      setImmediate(() => void this.#work());
    }
    return group.end;
  }

  async #work(): Promise<void> {
    for (let group = this.#groups.shift(); group; group = this.#groups.shift()) {
      try {
        group.done(await this.#plan.work(group.items));
      } catch (error) {
        group.failed(error);
      }
    }
    this.#working = false;
  }
}

function newGroup<Item, Answer>(): Group<Item, Answer> {
  let settle: Pick<Group<Item, Answer>, "done" | "failed"> | undefined;
  const end = new Promise<Answer>((done, failed) => {
    settle = { done, failed };
  });
  return { items: [], end, ...settle! };
}

import { systemClock } from "../../kernel/clock.ts";

export interface GatheringPlan<Item, Answer> {
  /** The most items of one group; 500 where a script takes them. */
  readonly most: number;
  /**
   * Whether the same come again and again, as providers do over the connections that they keep. When as many are there as
   * came together before, nobody else is waited for.
   */
  readonly returning?: boolean;
  /** Does the work of a whole group. Never called while an earlier call is under way. */
  work(group: readonly Item[]): Promise<Answer>;
}

/** Seconds after a group of several within which the next one is of the same busy time. */
const BUSY = 0.002;
/** Seconds between two looks at whether others still come, and the most that is waited for them. */
const LOOK = 0.001;
const LONGEST_LOOK = 0.008;
/** How many sizes of a crowd are remembered, and how many groups rely on them before one is waited for again. */
const REMEMBERED = 8;

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
 * The first group is what came in one turn of the event loop, each further one what came while the one before it was at
 * work, and while others still come: within milliseconds of a group of several the next one waits for as long as each look
 * finds more, 8 ms at most. So a quiet system answers at once, and a busy one makes larger groups instead of a longer
 * queue. Without that wait a crowd whose members each open a connection would be groups of one or two, since an event loop
 * lets in one of them a turn. The last look of such a wait finds nobody and was idle, so where the same come again it is
 * remembered how many they were lately: when as many as at most are there, nobody else is waited for, but once in a while.
 *
 * Nothing is remembered beyond the process: an item counts as taken when its group's work has ended well, and whoever
 * brought it must not say so before. When the work fails, its whole group fails with it and the next one goes on.
 */
export class Gathering<Item, Answer = void> {
  readonly #plan: GatheringPlan<Item, Answer>;
  readonly #groups: Group<Item, Answer>[] = [];
  #working = false;
  /** When the last group of several ended. */
  #busyAt = Number.NEGATIVE_INFINITY;
  /** How many there were when nobody else came, lately, and how many groups have relied on it since. */
  readonly #crowds: number[] = [];
  #relied = 0;

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
    for (;;) {
      if (systemClock.monotonic() - this.#busyAt < BUSY) await this.#letIn();
      const group = this.#groups.shift();
      if (!group) break;
      try {
        group.done(await this.#plan.work(group.items));
      } catch (error) {
        group.failed(error);
      }
      if (group.items.length > 1) this.#busyAt = systemClock.monotonic();
    }
    this.#working = false;
  }

  /** Waits while others still come, or until as many are there as came together before. */
  async #letIn(): Promise<void> {
    const until = systemClock.monotonic() + LONGEST_LOOK;
    const known = this.#plan.returning && this.#crowds.length > 0 && this.#relied < REMEMBERED;
    const enough = Math.min(this.#plan.most, known ? Math.max(...this.#crowds) : Number.POSITIVE_INFINITY);
    let [before, now] = [0, this.#waiting];
    while (now > before && now < enough && systemClock.monotonic() < until) {
      before = now;
      await systemClock.sleep(LOOK);
      now = this.#waiting;
    }
    if (now >= enough) this.#relied += 1;
    else if (now > 0) {
      this.#relied = 0;
      this.#crowds.push(now);
      if (this.#crowds.length > REMEMBERED) this.#crowds.shift();
    }
  }

  get #waiting(): number {
    return this.#groups.reduce((sum, { items }) => sum + items.length, 0);
  }
}

function newGroup<Item, Answer>(): Group<Item, Answer> {
  let settle: Pick<Group<Item, Answer>, "done" | "failed"> | undefined;
  const end = new Promise<Answer>((done, failed) => {
    settle = { done, failed };
  });
  return { items: [], end, ...settle! };
}

import type { KernelContext } from "../../kernel/context.ts";
import { Pace } from "./pace.ts";

/** How many answers one settle call gets at most, because one script call handles no more items. */
export const MAX_PAIRS_PER_SETTLE = 500;

/** After so many items others get their turn: replies of Redis, and whoever else works in this process. */
const ITEMS_PER_TURN = 50;

/** An item, and what the provider said to it. */
export interface Pair<Item, Answer> {
  readonly item: Item;
  readonly answer: Answer;
}

export interface WindowPlan<Item, Answer> {
  readonly items: readonly Item[];
  /** The most items that are with the provider or answered, but not settled: what a crash repeats. */
  readonly window: number;
  /** The most items in one request. */
  readonly groupSize: number;
  /** The most items in any second: a number for this call alone, a pace to share it with other calls. */
  readonly perSecond?: number | Pace;
  /** Hands one group to the provider: an answer for each, in order. It should not throw for what a provider does. */
  send(group: readonly Item[]): Promise<readonly Answer[]>;
  /** Writes down what became of these, in one step. Never called while an earlier call is under way. */
  settle(pairs: readonly Pair<Item, Answer>[]): Promise<void>;
  /** Asked before each group: true hands out no more. What is out is still awaited and settled. */
  stop?(): boolean;
  /** Asked before each group: items that came meanwhile and are in a hurry. They go before all others that wait. */
  ahead?(): readonly Item[];
  /** Brings more while the last ones are being settled, so that nobody waits for the next batch. */
  readonly refill?: Refill<Item>;
}

export interface Refill<Item> {
  /** Asked when no more than so many items wait or are unsettled. */
  readonly below: number;
  /** Never called while an earlier call is under way, and never again after it answered that there are none. */
  fetch(): Promise<readonly Item[] | "none">;
}

/**
 * Sends a claimed batch through a window.
 *
 *   waiting ──send──▶ with the provider ──answer──▶ answered ──settle──▶ settled
 *
 * What is authoritative is the purgatory that the items lie in: only `settle` takes them out of it. A process that dies
 * leaves everything else there, so at most `window` items, those between `send` and `settle`, can reach the provider
 * twice. Answers wait for nothing but the settle call before them: they are settled together as soon as it has returned,
 * so a slow Redis makes larger groups instead of a longer queue.
 *
 * While others wait or may come, at most a third of a window is settled at a time: another can be with the provider
 * meanwhile, and a third on its way here. A provider that answers at once must not keep replies of Redis out until the whole
 * window is full, so the event loop gets a turn now and then.
 *
 * When `settle` throws, nothing more is sent or settled, the requests under way are awaited, and the error is thrown. When
 * `send` throws, its group stays unsettled and nothing more is sent, but other answers are settled first, since their
 * messages are out. Either way the rest is found in the purgatory. Answers with what was never handed out, in order.
 */
export async function sendThroughWindow<Item, Answer>(
  ctx: Pick<KernelContext, "clock">,
  plan: WindowPlan<Item, Answer>,
): Promise<{ readonly unsent: readonly Item[] }> {
  return new Passage(ctx, plan).run();
}

class Passage<Item, Answer> {
  readonly #ctx: Pick<KernelContext, "clock">;
  readonly #plan: WindowPlan<Item, Answer>;
  readonly #pace: Pace | undefined;
  readonly #resting = new AbortController();
  readonly #ahead: Item[] = [];
  #items: readonly Item[];
  #next = 0;
  #fetching = false;
  #dry: boolean;
  #unsettled = 0;
  #requests = 0;
  #answered: Pair<Item, Answer>[] = [];
  #settling = false;
  #stopped = false;
  #settleFailed = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: () => void = () => {};

  constructor(ctx: Pick<KernelContext, "clock">, plan: WindowPlan<Item, Answer>) {
    if (plan.window < 1 || plan.groupSize < 1) throw new RangeError("a window and its groups hold at least one item");
    this.#ctx = ctx;
    this.#plan = plan;
    this.#items = plan.items;
    this.#dry = plan.refill === undefined;
    this.#pace = typeof plan.perSecond === "number" ? new Pace(ctx.clock, plan.perSecond) : plan.perSecond;
  }

  async run(): Promise<{ readonly unsent: readonly Item[] }> {
    let sinceTurn = 0;
    for (;;) {
      const size = this.#nextSize();
      this.#refill();
      if (size > 0) {
        const wait = this.#pace?.wait(size) ?? 0;
        if (wait > 0) await this.#ctx.clock.sleep(wait, this.#resting.signal);
        else {
          this.#handOut(size);
          // What is ready is worked off first: items that all begin before any goes on would be in memory all at once.
          sinceTurn += size;
          if (sinceTurn < ITEMS_PER_TURN) await undefined;
          else {
            sinceTurn = 0;
            await new Promise(setImmediate);
          }
        }
      } else if (this.#requests > 0 || this.#settling || this.#fetching) await this.#change();
      else if (this.#failure) throw this.#failure.error;
      else return { unsent: [...this.#ahead, ...this.#items.slice(this.#next)] };
    }
  }

  get #waiting(): number {
    return this.#ahead.length + this.#items.length - this.#next;
  }

  /** How many items may go now: a whole group, or the rest; nothing while the window has no room for it. */
  #nextSize(): number {
    const { groupSize, window } = this.#plan;
    const hurried = this.#plan.ahead?.() ?? [];
    if (hurried.length > 0) this.#ahead.push(...hurried);
    const waiting = this.#ahead.length > 0 ? this.#ahead.length : this.#items.length - this.#next;
    const size = Math.min(groupSize, window, waiting);
    if (size === 0 || this.#stopped || this.#unsettled + size > window) return 0;
    this.#stopped = this.#failure !== undefined || (this.#plan.stop?.() ?? false);
    return this.#stopped ? 0 : size;
  }

  #take(size: number): readonly Item[] {
    if (this.#ahead.length > 0) return this.#ahead.splice(0, size);
    this.#next += size;
    return this.#items.slice(this.#next - size, this.#next);
  }

  #refill(): void {
    if (this.#dry || this.#fetching || this.#stopped || this.#failure) return;
    const { below, fetch } = this.#plan.refill!;
    if (this.#unsettled + this.#waiting > below) return;
    this.#fetching = true;
    void this.#fetch(fetch).finally(() => {
      this.#fetching = false;
      this.#wake();
    });
  }

  async #fetch(fetch: Refill<Item>["fetch"]): Promise<void> {
    try {
      const more = await fetch();
      if (more === "none") {
        this.#dry = true;
        return;
      }
      this.#items = [...this.#items.slice(this.#next), ...more];
      this.#next = 0;
    } catch (error) {
      this.#fail(error);
    }
  }

  #handOut(size: number): void {
    const group = this.#take(size);
    this.#unsettled += size;
    this.#pace?.spend(size);
    this.#requests += 1;
    void this.#ask(group).finally(() => {
      this.#requests -= 1;
      this.#wake();
    });
  }

  async #ask(group: readonly Item[]): Promise<void> {
    try {
      const answers = await this.#plan.send(group);
      if (answers.length !== group.length)
        throw new RangeError(`${group.length} items were sent, and ${answers.length} answers came back`);
      for (const [at, item] of group.entries()) this.#answered.push({ item, answer: answers[at]! });
      this.#settleAnswered();
    } catch (error) {
      this.#fail(error);
    }
  }

  #settleAnswered(): void {
    if (this.#settling || this.#settleFailed || this.#answered.length === 0) return;
    this.#settling = true;
    void this.#settle(this.#answered.splice(0, this.#mostSettled())).finally(() => {
      this.#settling = false;
      this.#settleAnswered();
      this.#wake();
    });
  }

  #mostSettled(): number {
    const { window, groupSize } = this.#plan;
    const part = this.#waiting > 0 || !this.#dry ? Math.max(groupSize, Math.ceil(window / 3)) : window;
    return Math.min(MAX_PAIRS_PER_SETTLE, part);
  }

  async #settle(pairs: readonly Pair<Item, Answer>[]): Promise<void> {
    try {
      await this.#plan.settle(pairs);
      this.#unsettled -= pairs.length;
    } catch (error) {
      this.#settleFailed = true;
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#resting.abort();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

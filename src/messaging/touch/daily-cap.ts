import type { Context } from "../../jobs/context.ts";
import { calendarOf } from "../../mechanisms/dated-counters/index.ts";
import type { TouchEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";

type Addressed = Pick<TouchEntry, "user_sub" | "channel">;

/** How a person and a channel are named in the counts of a day. */
export const fieldOf = ({ channel, user_sub }: Addressed): string => `${channel}:${user_sub}`;

export const todayOf = (ctx: Pick<Context, "clock" | "config">): number => calendarOf(ctx).unixDate(ctx.clock.now());

/**
 * What people may still get today while touches of one batch are planned one after the other. Whoever is dispatched a
 * touch is counted in the script that dispatches it, so a death in between counts nobody twice.
 */
export class DailyCap {
  readonly #cap: number;
  readonly #sent: Map<string, number>;

  private constructor(cap: number, sent: Map<string, number>) {
    this.#cap = cap;
    this.#sent = sent;
  }

  static async open(
    ctx: Pick<Context, "redis" | "clock" | "config">,
    touches: readonly Addressed[],
  ): Promise<DailyCap | undefined> {
    const cap = ctx.config.get(settings.dailyCap);
    if (cap === 0 || touches.length === 0) return undefined;
    const fields = [...new Set(touches.map(fieldOf))];
    const { commands, topology } = ctx.redis;
    const held = await commands.hmget(topology.key(keys.sentOn({ unix_date: todayOf(ctx) })), ...fields);
    return new DailyCap(cap, new Map(fields.map((field, at) => [field, Number(held[at] ?? 0)])));
  }

  get limit(): number {
    return this.#cap;
  }

  /** Whether this person has had all they may get on this channel. */
  isReached(touch: Addressed): boolean {
    return (this.#sent.get(fieldOf(touch)) ?? 0) >= this.#cap;
  }

  count(touch: Addressed): void {
    this.#sent.set(fieldOf(touch), (this.#sent.get(fieldOf(touch)) ?? 0) + 1);
  }
}

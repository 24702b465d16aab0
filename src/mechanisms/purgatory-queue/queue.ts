import type { KernelContext } from "../../kernel/context.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";
import type { Fence, Fenced } from "../lock/index.ts";
import { alertQuarantined, quarantineEntry, quarantineOf, reasonOf } from "../quarantine/index.ts";
import { type Effect, encodeEffects } from "./effects.ts";
import {
  ack,
  ackAll,
  ackValues,
  ackWith,
  type Claim,
  claim,
  claimMore,
  claimOne,
  push,
  putBack,
  quarantine,
  type Remaining,
} from "./scripts.ts";

/** How many items one script call handles at most; more are paged by the caller. */
export const MAX_ITEMS_PER_CALL = 500;

type QueueContext = Pick<KernelContext, "redis" | "clock" | "alerts" | "log">;

/** An item as it lies in Redis, and what it means. */
export interface Entry<T> {
  readonly raw: Buffer;
  readonly value: T;
}

export interface PurgatoryQueuePlan<T> {
  readonly queue: KeyName<"list">;
  readonly purgatory: KeyName<"list">;
  readonly codec: Codec<T>;
  /** Items that wait for their next try, scored by when: every claim lets those that are due join the queue first. */
  readonly retrying?: KeyName<"zset">;
}

export type PushAnswer =
  | { readonly ok: true; readonly length: number }
  | { readonly ok: false; readonly reason: "backpressure" };

/**
 * A queue whose consumer may die.
 *
 *   producer ──push──▶ queue ──claim──▶ purgatory ──ack──▶ done
 *                        ▲                  │ └──an entry that cannot be read──▶ quarantine
 *    retrying ──due───────┴────put_back──────┘
 *
 * Redis is authoritative: an item is in exactly one of queue, purgatory and quarantine, and every arrow is one script.
 * One consumer at a time works, under a lock, and every arrow that counts items off asks whether the lock is still its
 * own. A consumer that dies leaves its batch in the purgatory; the first claim of the next run finds it there, says so,
 * and moves nothing, so leftovers go first and in order. What was done but not acked is done again: delivery is at
 * least once. Later claims of the same run only fill the purgatory up.
 */
export class PurgatoryQueue<T> {
  readonly queue: KeyName<"list">;
  readonly purgatory: KeyName<"list">;
  readonly #retrying: KeyName<"zset"> | undefined;
  readonly #codec: Codec<T>;

  constructor(plan: PurgatoryQueuePlan<T>) {
    this.#retrying = plan.retrying;
    this.queue = plan.queue;
    this.purgatory = plan.purgatory;
    this.#codec = plan.codec;
  }

  /** Appends at most 500 values, all or none. */
  async push(ctx: QueueContext, values: readonly T[], options: { maxLength?: number } = {}): Promise<PushAnswer> {
    return this.pushRaw(
      ctx,
      values.map((value) => this.#codec.encode(value)),
      options,
    );
  }

  /** Appends texts that were encoded before, such as items handed over by another family. */
  async pushRaw(
    ctx: QueueContext,
    items: readonly (string | Buffer)[],
    options: { maxLength?: number } = {},
  ): Promise<PushAnswer> {
    withinCall(items.length);
    if (items.length === 0) return { ok: true, length: await this.length(ctx) };
    return ctx.redis.run(push, [this.queue], [options.maxLength ?? -1, ...items]);
  }

  /** The first claim of a run: leftovers of a dead run, or up to `max` items from the queue. */
  claim(ctx: QueueContext, fence: Fence, max = MAX_ITEMS_PER_CALL): Promise<Claim | Fenced> {
    withinCall(max);
    return ctx.redis.run(claim, this.#claimKeys(fence), [fence.lockId, max, ctx.clock.now().toFixed(6)]);
  }

  /** A later claim of the same run: at most `max` items more, until the purgatory holds `limit`. */
  claimMore(
    ctx: QueueContext,
    fence: Fence,
    max = MAX_ITEMS_PER_CALL,
    limit = max,
  ): Promise<(Claim & { readonly moved: number }) | Fenced> {
    withinCall(max);
    return ctx.redis.run(claimMore, this.#claimKeys(fence), [fence.lockId, max, ctx.clock.now().toFixed(6), limit]);
  }

  /**
   * A later claim, read at once: how many items it moved, and those of them that can be read. Nobody else may claim
   * meanwhile, because they are read from the end; what stands before may be settled at the same time.
   */
  async fetchMore(
    ctx: QueueContext,
    fence: Fence,
    limit: number,
    max = limit,
  ): Promise<{ readonly ok: true; readonly moved: number; readonly entries: readonly Entry<T>[] } | Fenced> {
    const claimed = await this.claimMore(ctx, fence, Math.min(max, MAX_ITEMS_PER_CALL), limit);
    if (!claimed.ok) return claimed;
    const { moved } = claimed;
    return { ok: true, moved, entries: moved === 0 ? [] : await this.read(ctx, -moved, moved) };
  }

  /** A batch of any size in as many calls as it takes; `first` decides about recovery, and only then. */
  async claimBatch(ctx: QueueContext, fence: Fence, first: boolean, size: number): Promise<Claim | Fenced> {
    const perCall = Math.min(size, MAX_ITEMS_PER_CALL);
    let claimed = first ? await this.claim(ctx, fence, perCall) : await this.claimMore(ctx, fence, perCall, size);
    if (!claimed.ok || claimed.recovered) return claimed;
    let moved = first ? claimed.size : (claimed as Claim & { moved: number }).moved;
    while (claimed.size < size && moved === perCall) {
      const more: (Claim & { readonly moved: number }) | Fenced = await this.claimMore(ctx, fence, perCall, size);
      if (!more.ok) return more;
      claimed = more;
      moved = more.moved;
    }
    return { ok: true, size: claimed.size, recovered: false };
  }

  /** The item at the head of the purgatory, or the next one from the queue; undefined when both are empty. */
  async claimOne(ctx: QueueContext, fence: Fence): Promise<{ ok: true; entry: Entry<T> | undefined } | Fenced> {
    for (;;) {
      const claimed = await ctx.redis.run(claimOne, [this.queue, this.purgatory, fence.key], [fence.lockId]);
      if (!claimed.ok) return claimed;
      if (!claimed.present) return { ok: true, entry: undefined };
      const [entry] = await this.read(ctx, 0, 1);
      if (entry) return { ok: true, entry };
    }
  }

  /**
   * Entries of the purgatory from position `from`. What cannot be read is quarantined on the way, so the entries
   * returned are the purgatory's own in order, and acking them by count is right.
   */
  async read(ctx: QueueContext, from = 0, count = MAX_ITEMS_PER_CALL): Promise<Entry<T>[]> {
    const raws = await ctx.redis.commands.lrangeBuffer(ctx.redis.topology.key(this.purgatory), from, from + count - 1);
    const { entries, malformed } = decodeEntries(this.#codec, raws);
    if (malformed.length > 0) await this.quarantine(ctx, malformed);
    return entries;
  }

  /** The `count` leftmost items are done. */
  ack(ctx: QueueContext, fence: Fence, count: number): Promise<Remaining> {
    return ctx.redis.run(ack, [this.purgatory, fence.key], [fence.lockId, count]);
  }

  /** These items are done, wherever they stand; answers per item whether it was still there. */
  async ackValues(ctx: QueueContext, raws: readonly (string | Buffer)[]): Promise<boolean[]> {
    withinCall(raws.length);
    return raws.length === 0 ? [] : ctx.redis.run(ackValues, [this.purgatory], [...raws]);
  }

  ackAll(ctx: QueueContext, fence: Fence): Promise<{ readonly ok: true; readonly removed: number } | Fenced> {
    return ctx.redis.run(ackAll, [this.purgatory, fence.key], [fence.lockId]);
  }

  /** The `count` leftmost items are done, and their effects happen in the same step. */
  ackWith(ctx: QueueContext, fence: Fence, count: number, effects: readonly Effect[]): Promise<Remaining> {
    const { targets, args } = encodeEffects(effects);
    return ctx.redis.run(ackWith, [this.purgatory, fence.key, ...targets], [fence.lockId, count, ...args]);
  }

  /** Nothing of the batch was begun: it waits again at the head of the queue, in order. */
  putBack(ctx: QueueContext, fence: Fence): Promise<{ readonly ok: true; readonly returned: number } | Fenced> {
    return ctx.redis.run(putBack, [this.queue, this.purgatory, fence.key], [fence.lockId]);
  }

  /** Sets items of the purgatory aside; answers per item whether it was still there. */
  quarantine(ctx: QueueContext, items: readonly Malformed[]): Promise<boolean[]> {
    return quarantineFrom(ctx, this.purgatory, this.queue, items);
  }

  #claimKeys(fence: Fence): [string, string, string, ...string[]] {
    return [this.queue, this.purgatory, fence.key, ...(this.#retrying ? [this.#retrying] : [])];
  }

  async length(ctx: Pick<KernelContext, "redis">): Promise<number> {
    return ctx.redis.commands.llen(ctx.redis.topology.key(this.queue));
  }
}

export function purgatoryQueue<T>(plan: PurgatoryQueuePlan<T>): PurgatoryQueue<T> {
  return new PurgatoryQueue(plan);
}

/** An item that its consumer cannot process, and why. */
export interface Malformed {
  readonly raw: Buffer;
  readonly reason: string;
}

/** Moves items out of `list` into the quarantine of `queue`, and rings once per queue and hour. */
export async function quarantineFrom(
  ctx: QueueContext,
  list: KeyName<"list">,
  queue: KeyName<"list">,
  items: readonly Malformed[],
): Promise<boolean[]> {
  const moved: boolean[] = [];
  for (let from = 0; from < items.length; from += MAX_ITEMS_PER_CALL) {
    const some = items.slice(from, from + MAX_ITEMS_PER_CALL);
    const pairs = some.flatMap(({ raw, reason }) => [raw, quarantineEntry(ctx, queue, raw, reason)]);
    moved.push(...(await ctx.redis.run(quarantine, [list, quarantineOf(queue)], pairs)));
  }
  await alertQuarantined(ctx, queue, moved.filter(Boolean).length, items[0]?.reason ?? "");
  return moved;
}

export function decodeEntries<T>(
  codec: Codec<T>,
  raws: readonly Buffer[],
): { entries: Entry<T>[]; malformed: Malformed[] } {
  const entries: Entry<T>[] = [];
  const malformed: Malformed[] = [];
  for (const raw of raws)
    try {
      entries.push({ raw, value: codec.decode(raw) });
    } catch (error) {
      malformed.push({ raw, reason: reasonOf(error) });
    }
  return { entries, malformed };
}

function withinCall(items: number): void {
  if (items > MAX_ITEMS_PER_CALL)
    throw new RangeError(`${items} items in one call: at most ${MAX_ITEMS_PER_CALL}, the rest in further calls`);
}

import type { KernelContext } from "../../kernel/context.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";
import { type Fence, type Fenced, unlessFenced } from "../lock/index.ts";
import {
  ack,
  type Claim,
  decodeEntries,
  type Entry,
  MAX_ITEMS_PER_CALL,
  type Malformed,
  type PushAnswer,
  purgatoryQueue,
  push,
  quarantineFrom,
  type Remaining,
  runBatches,
  type StopReason,
} from "../purgatory-queue/index.ts";
import { writeOrIsolate } from "./isolate.ts";

const DEFAULT_BATCH = 100;

type BufferContext = Pick<KernelContext, "redis" | "clock" | "alerts" | "log">;

export interface WriteBehindPlan<T> {
  readonly buffer: KeyName<"list">;
  /** Families with a purgatory move each batch there first; without one the flush peeks, commits, then trims. */
  readonly purgatory?: KeyName<"list">;
  readonly codec: Codec<T>;
  /** Rows older than this many seconds are worth nothing any more: they are dropped and counted. */
  readonly cutoff?: { readonly seconds: number; timeOf(row: T): number };
}

export interface FlushOptions<T> {
  /** The runner's name, for the warning that an earlier run died. */
  readonly runner: string;
  /** Rows per transaction; default 100. */
  readonly batch?: number;
  shuttingDown(): boolean;
  exhausted(): boolean;
  /** One transaction of upserts that change nothing when they are repeated. */
  write(rows: readonly T[]): Promise<void>;
}

export interface FlushResult {
  readonly stopReason: StopReason;
  readonly written: number;
  readonly quarantined: number;
  readonly dropped: number;
  /** How many rows a dead run had left in the purgatory. */
  readonly recovered: number;
}

/** Where a flush takes rows from and how it counts them off. */
interface Source<T> {
  claim(first: boolean): Promise<Claim | Fenced>;
  read(count: number): Promise<{ entries: Entry<T>[]; malformed: number }>;
  settle(count: number): Promise<Remaining>;
  quarantine(items: readonly Malformed[]): Promise<boolean[]>;
}

/**
 * Rows that reach SQL a little later, in bulk.
 *
 *   request ──append──▶ buffer ──peek──▶ one transaction ──trim──▶ done          (no purgatory)
 *   request ──append──▶ buffer ──claim──▶ purgatory ──one transaction, ack──▶ done
 *
 * The buffer is authoritative until the transaction has committed; only then are the rows counted off, by the holder of
 * the lock alone. A crash between the two writes the rows once more, which must be a no-op. A row that SQL refuses is
 * found by halving and set aside; its neighbours commit.
 */
export class WriteBehind<T> {
  readonly #plan: WriteBehindPlan<T>;

  constructor(plan: WriteBehindPlan<T>) {
    this.#plan = plan;
  }

  /** Appends at most 500 rows, all or none. */
  async append(ctx: BufferContext, rows: readonly T[], options: { maxLength?: number } = {}): Promise<PushAnswer> {
    if (rows.length > MAX_ITEMS_PER_CALL) throw new RangeError(`${rows.length} rows in one call`);
    if (rows.length === 0) return { ok: true, length: await this.length(ctx) };
    const items = rows.map((row) => this.#plan.codec.encode(row));
    return ctx.redis.run(push, [this.#plan.buffer], [options.maxLength ?? -1, ...items]);
  }

  /** Empties the buffer batch by batch until it is empty, time is up, or the process shuts down. */
  async flush(ctx: BufferContext, fence: Fence, options: FlushOptions<T>): Promise<FlushResult> {
    const source = this.#plan.purgatory
      ? this.#fromPurgatory(ctx, fence, this.#plan.purgatory, options.batch ?? DEFAULT_BATCH)
      : this.#fromBuffer(ctx, fence, options.batch ?? DEFAULT_BATCH);
    let [written, quarantined, dropped] = [0, 0, 0];
    const { stopReason, recovered } = await runBatches(ctx, {
      runner: options.runner,
      shuttingDown: options.shuttingDown,
      exhausted: options.exhausted,
      claim: source.claim,
      handle: async ({ size }) => {
        const { entries, malformed } = await source.read(size);
        const current = entries.filter(({ value }) => !this.#tooOld(ctx, value));
        const culprits = await writeOrIsolate(current, options.write);
        if (culprits.length > 0) await source.quarantine(culprits);
        unlessFenced(await source.settle(entries.length - culprits.length));
        written += current.length - culprits.length;
        quarantined += malformed + culprits.length;
        dropped += entries.length - current.length;
        return undefined;
      },
    });
    return { stopReason, written, quarantined, dropped, recovered };
  }

  async length(ctx: Pick<KernelContext, "redis">): Promise<number> {
    return ctx.redis.commands.llen(ctx.redis.topology.key(this.#plan.buffer));
  }

  #tooOld(ctx: BufferContext, row: T): boolean {
    const { cutoff } = this.#plan;
    return cutoff !== undefined && cutoff.timeOf(row) < ctx.clock.now() - cutoff.seconds;
  }

  #fromBuffer(ctx: BufferContext, fence: Fence, batch: number): Source<T> {
    const { buffer, codec } = this.#plan;
    return {
      // Nothing moves, so there is nothing to recover: what a dead run did not trim is still at the head.
      claim: async () => ({ ok: true, size: Math.min(batch, await this.length(ctx)), recovered: false }),
      read: async (count) => {
        const raws = await ctx.redis.commands.lrangeBuffer(ctx.redis.topology.key(buffer), 0, count - 1);
        const { entries, malformed } = decodeEntries(codec, raws);
        if (malformed.length > 0) await quarantineFrom(ctx, buffer, buffer, malformed);
        return { entries, malformed: malformed.length };
      },
      settle: (count) => ctx.redis.run(ack, [buffer, fence.key], [fence.lockId, count]),
      quarantine: (items) => quarantineFrom(ctx, buffer, buffer, items),
    };
  }

  #fromPurgatory(ctx: BufferContext, fence: Fence, purgatory: KeyName<"list">, batch: number): Source<T> {
    const queue = purgatoryQueue({ queue: this.#plan.buffer, purgatory, codec: this.#plan.codec });
    return {
      claim: (first) => queue.claimBatch(ctx, fence, first, batch),
      read: async (count) => {
        const entries = await queue.read(ctx, 0, count);
        return { entries, malformed: count - entries.length };
      },
      settle: (count) => queue.ack(ctx, fence, count),
      quarantine: (items) => queue.quarantine(ctx, items),
    };
  }
}

export function writeBehind<T>(plan: WriteBehindPlan<T>): WriteBehind<T> {
  return new WriteBehind(plan);
}

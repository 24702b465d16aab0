import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import { toBuffer } from "./local.ts";
import type { CacheMessage, CachePlan } from "./plan.ts";
import {
  type FillRight,
  finishFill,
  finishFillAndStore,
  purge,
  push,
  releaseFillLocks,
  takeFillLocks,
  takeFillLocksUnlessStored,
} from "./transitions.ts";

const LOCK_MS = 3000;

export type FenceContext = Pick<KernelContext, "cacheRedis" | "log">;

/** The answer to asking for locks; `token` is what finishing or releasing them takes. */
export interface FillRights {
  readonly token: string;
  readonly rights: readonly FillRight[];
}

/**
 * A family's part in Redis: value, lock, owner and channel, and the scripts that keep them together. A lock's value is
 * the same for everyone, so the owner beside it says who may finish: a purge or the lock's end takes that right away,
 * and the late filler's finish answers false.
 */
export class FillFence<Value> {
  readonly #plan: CachePlan<Value>;
  readonly #context: FenceContext;

  constructor(plan: CachePlan<Value>, context: FenceContext) {
    if (plan.lock && (!plan.channel || plan.channel.pushes === false))
      throw new TypeError(`cache ${plan.name} has a fill lock but no channel that tells those who wait for it`);
    this.#plan = plan;
    this.#context = context;
  }

  /** The stored values, undefined where there is none. */
  async read(ids: readonly string[]): Promise<readonly (Buffer | null)[]> {
    const { redis } = this.#plan;
    if (!redis) return ids.map(() => null);
    return await this.#redis.commands.mgetBuffer(...ids.map((id) => this.#redis.topology.key(redis.key(id))));
  }

  async take(ids: readonly string[]): Promise<FillRights> {
    const token = randomToken();
    const script = this.#plan.redis ? takeFillLocksUnlessStored : takeFillLocks;
    return { token, rights: await this.#redis.run(script, this.#fillKeys(ids), [token, LOCK_MS]) };
  }

  /** Stores and publishes what was read under the lock; answers for each id whether the lock was still ours. */
  async finish(
    ids: readonly string[],
    found: ReadonlyMap<string, Value>,
    checkedAt: number,
    token: string,
  ): Promise<readonly boolean[]> {
    const { redis, channel } = this.#plan;
    if (ids.length === 0) return [];
    const keys = this.#fillKeys(ids);
    const frames = ids.map((id) => this.#frame({ kind: "fill", id, value: found.get(id)!, checkedAt }));
    try {
      if (!redis) return await this.#redis.run(finishFill, keys, [token, channel!.name, ...frames]);
      const items = ids.flatMap((id, at) => [this.#encode(found.get(id)!), frames[at]!]);
      return await this.#redis.run(finishFillAndStore, keys, [token, channel!.name, redis.ttl * 1000, ...items]);
    } catch (error) {
      // The values are good for those who asked; only nobody else will hear of them.
      this.#context.log.warn({ err: error, cache: this.#plan.name }, "a fill could not be published");
      return ids.map(() => false);
    }
  }

  /** There is nothing to publish but that there is nothing: those who wait look for themselves, without losing 3 s. */
  async finishAbsent(ids: readonly string[], minCheckedAt: number, token: string): Promise<void> {
    const { channel } = this.#plan;
    if (ids.length === 0) return;
    if (!channel || channel.purges === false) return await this.release(ids, token);
    const frames = ids.map((id) => this.#frame({ kind: "purge", ids: [id], minCheckedAt }));
    await this.#redis
      .run(finishFill, this.#locks(ids), [token, channel.name, ...frames])
      .catch((error) => this.#noteLeftLock(error));
  }

  async release(ids: readonly string[], token: string): Promise<void> {
    if (ids.length === 0) return;
    await this.#redis.run(releaseFillLocks, this.#locks(ids), [token]).catch((error) => this.#noteLeftLock(error));
  }

  /** For families without a lock: stores and publishes, unfenced. */
  async store(found: ReadonlyMap<string, Value>, checkedAt: number): Promise<void> {
    const { redis, channel } = this.#plan;
    const { commands, topology } = this.#redis;
    const sent: Promise<unknown>[] = [];
    for (const [id, value] of found) {
      if (redis) sent.push(commands.set(topology.key(redis.key(id)), this.#encode(value), "PX", redis.ttl * 1000));
      if (channel && channel.pushes !== false)
        sent.push(commands.publish(channel.name, this.#frame({ kind: "fill", id, value, checkedAt })));
    }
    await Promise.all(sent);
  }

  /** Removes what Redis holds of the ids, then tells every process. */
  async purge(ids: readonly string[], minCheckedAt: number): Promise<void> {
    const { channel } = this.#plan;
    const keys = [...this.#values(ids), ...this.#locks(ids)];
    if (channel && channel.purges !== false) {
      const frames = ids.map((id) => this.#frame({ kind: "purge", ids: [id], minCheckedAt }));
      await this.#redis.run(purge, keys, [channel.name, ...frames]);
    } else if (keys.length > 0) await this.#redis.commands.del(...keys.map((key) => this.#redis.topology.key(key)));
  }

  /** Replaces what Redis holds of the ids, then tells every process. */
  async push(values: readonly (readonly [string, Value])[], checkedAt: number): Promise<void> {
    const { channel, redis } = this.#plan;
    if (!channel || channel.pushes === false) throw new TypeError(`cache ${this.#plan.name} has no channel for fills`);
    const ids = values.map(([id]) => id);
    const frames = values.map(([id, value]) => this.#frame({ kind: "fill", id, value, checkedAt }));
    if (!redis) {
      // Removing the locks fences off fills that began before; the frames are the new values.
      await this.#redis.run(purge, this.#locks(ids), [channel.name, ...frames]);
      return;
    }
    const items = values.flatMap(([, value], at) => [this.#encode(value), frames[at]!]);
    const keys = [...this.#values(ids), ...this.#locks(ids)];
    await this.#redis.run(push, keys, [ids.length, redis.ttl * 1000, channel.name, ...items]);
  }

  get #redis() {
    return this.#context.cacheRedis;
  }

  #noteLeftLock(error: unknown): void {
    this.#context.log.warn({ err: error, cache: this.#plan.name }, "a fill lock is left to expire");
  }

  #encode(value: Value): Buffer {
    return toBuffer(this.#plan.codec.encode(value));
  }

  #frame(message: CacheMessage<Value>): Buffer {
    return toBuffer(this.#plan.channel!.frames.encode(message));
  }

  #fillKeys(ids: readonly string[]): string[] {
    return ids.flatMap((id) => [...this.#locks([id]), ...this.#values([id])]);
  }

  #locks(ids: readonly string[]): string[] {
    const { lock } = this.#plan;
    return lock ? ids.flatMap((id) => [lock.key(id), lock.owner(id)]) : [];
  }

  #values(ids: readonly string[]): string[] {
    const { redis } = this.#plan;
    return redis ? ids.map((id) => redis.key(id)) : [];
  }
}

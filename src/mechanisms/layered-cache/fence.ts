import { Command } from "ioredis";
import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import type { ChannelName } from "../../kernel/keyspace/index.ts";
import { toBuffer } from "./local.ts";
import { type OwnFill, OwnFills } from "./own-fills.ts";
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

/** What a process says to itself behind its own frames; `heard` resolves when it has come back. */
export interface Echo {
  readonly channel: ChannelName;
  readonly message: string;
  heard(): Promise<void>;
}

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
  readonly #ownFills = new OwnFills<Value>();
  #framesCarryTime: boolean | undefined;

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
    const names = ids.map((id) => this.#redis.topology.key(redis.key(id)));
    // Sent at once: the ids are a batch already, so waiting for others to pipeline with would only cost time.
    const command = new Command("mget", names, { replyEncoding: null });
    return (await this.#redis.commands.sendCommand(command)) as (Buffer | null)[];
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
    const values = ids.map((id) => this.#encode(found.get(id)!));
    const frames = ids.map((id, at) => this.#frame({ kind: "fill", id, encoded: values[at]!, checkedAt }));
    for (const [at, id] of ids.entries()) this.#expect(frames[at]!, id, found.get(id)!, checkedAt);
    try {
      const items = redis ? values.flatMap((value, at) => [value, frames[at]!]) : frames;
      const published = redis
        ? await this.#redis.run(finishFillAndStore, keys, [token, channel!.name, redis.ttl * 1000, ...items])
        : await this.#redis.run(finishFill, keys, [token, channel!.name, ...items]);
      for (const [at, done] of published.entries()) if (!done) this.#ownFills.forget(frames[at]!);
      return published;
    } catch (error) {
      this.#ownFills.clear();
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
      const encoded = this.#encode(value);
      if (redis) sent.push(commands.set(topology.key(redis.key(id)), encoded, "PX", redis.ttl * 1000));
      if (channel && channel.pushes !== false)
        sent.push(commands.publish(channel.name, this.#frame({ kind: "fill", id, encoded, checkedAt })));
    }
    await Promise.all(sent);
  }

  /** Removes what Redis holds of the ids, then tells every process. */
  async purge(ids: readonly string[], minCheckedAt: number, echo: Echo | undefined): Promise<void> {
    const { channel } = this.#plan;
    const keys = [...this.#values(ids), ...this.#locks(ids)];
    if (channel && echo) {
      const frames =
        channel.purges === false ? [] : ids.map((id) => this.#frame({ kind: "purge", ids: [id], minCheckedAt }));
      await this.#redis.run(purge, keys, [channel.name, echo.channel, echo.message, ...frames]);
    } else if (keys.length > 0) await this.#redis.commands.del(...keys.map((key) => this.#redis.topology.key(key)));
  }

  /** Replaces what Redis holds of the ids, then tells every process. */
  async push(values: readonly (readonly [string, Value])[], checkedAt: number, echo: Echo): Promise<void> {
    const { channel, redis } = this.#plan;
    if (!channel || channel.pushes === false) throw new TypeError(`cache ${this.#plan.name} has no channel for fills`);
    const ids = values.map(([id]) => id);
    const encoded = values.map(([, value]) => this.#encode(value));
    const frames = ids.map((id, at) => this.#frame({ kind: "fill", id, encoded: encoded[at]!, checkedAt }));
    const behind = [channel.name, echo.channel, echo.message] as const;
    if (!redis) {
      // Removing the locks fences off fills that began before; the frames are the new values.
      await this.#redis.run(purge, this.#locks(ids), [...behind, ...frames]);
      return;
    }
    const items = encoded.flatMap((value, at) => [value, frames[at]!]);
    const keys = [...this.#values(ids), ...this.#locks(ids)];
    await this.#redis.run(push, keys, [ids.length, redis.ttl * 1000, ...behind, ...items]);
  }

  /** The fill behind a frame that this process sent itself. */
  recognise(raw: Buffer): OwnFill<Value> | undefined {
    return this.#ownFills.recognise(raw);
  }

  /** Frames may have been lost. */
  forgetOwnFills(): void {
    this.#ownFills.clear();
  }

  #expect(frame: Buffer, id: string, value: Value, checkedAt: number): void {
    // Where frames carry no time, their order alone counts, for our own as well.
    this.#framesCarryTime ??=
      (this.#plan.channel!.frames.decode(frame) as { checkedAt?: number }).checkedAt !== undefined;
    this.#ownFills.expect(frame, { id, value, checkedAt: this.#framesCarryTime ? checkedAt : undefined });
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

  #frame(message: CacheMessage): Buffer {
    return toBuffer(this.#plan.channel!.frames.encode(message));
  }

  #fillKeys(ids: readonly string[]): string[] {
    const { lock, redis } = this.#plan;
    const keys: string[] = [];
    for (const id of ids) {
      keys.push(lock!.key(id), lock!.owner(id));
      if (redis) keys.push(redis.key(id));
    }
    return keys;
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

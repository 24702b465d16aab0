import type { KernelContext } from "../../kernel/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { isConnectionLoss } from "../../kernel/redis/connection.ts";
import type { OwnerLock } from "./keys.ts";
import {
  type AcquireAnswer,
  acquire,
  acquireToken,
  delIfMatch,
  type HoldAnswer,
  release,
  renew,
  renewToken,
} from "./scripts.ts";

export type LockKindName = "basic" | "token" | "owner";

type LockContext = Pick<KernelContext, "redis" | "clock" | "hostname">;

/** How a lock of one kind is kept in Redis. Leases are in seconds. */
interface LockKind {
  acquire(ctx: LockContext, key: string, id: string, lease: number): Promise<AcquireAnswer>;
  renew(ctx: LockContext, key: string, id: string, lease: number): Promise<HoldAnswer>;
  release(ctx: LockContext, key: string, id: string): Promise<void>;
  /** At shutdown: what is left lives at most 60 s. Answers false where the kind keeps its lease. */
  lower(ctx: LockContext, key: string, id: string): Promise<boolean>;
  /** A basic lock looks the same whoever holds it: once its lease may have run out, it must never be touched again. */
  readonly anonymous: boolean;
}

/** Seconds that a lock lives at most once its holder began to shut down. */
export const LOWERED_LEASE = 60;

const milliseconds = (seconds: number) => Math.round(seconds * 1000);

const basic: LockKind = {
  anonymous: true,
  async acquire(ctx, key, _id, lease) {
    const set = await plainly(() =>
      ctx.redis.commands.set(ctx.redis.topology.key(key), "1", "PX", milliseconds(lease), "NX"),
    );
    return { outcome: set === "OK" ? "acquired" : "other_host", age: undefined, holder: undefined };
  },
  async renew(ctx, key, _id, lease) {
    const there = await ctx.redis.commands.pexpire(ctx.redis.topology.key(key), milliseconds(lease));
    return there === 1 ? { ok: true } : { ok: false, reason: "not_set" };
  },
  async release(ctx, key) {
    await ctx.redis.commands.del(ctx.redis.topology.key(key));
  },
  async lower(ctx, key) {
    await ctx.redis.commands.pexpire(ctx.redis.topology.key(key), milliseconds(LOWERED_LEASE), "LT");
    return true;
  },
};

const token: LockKind = {
  anonymous: false,
  acquire: (ctx, key, id, lease) => ctx.redis.run(acquireToken, [key], [id, milliseconds(lease)]),
  renew: (ctx, key, id, lease) => ctx.redis.run(renewToken, [key], [id, milliseconds(lease)]),
  release: async (ctx, key, id) => void (await ctx.redis.run(delIfMatch, [key], [id])),
  // A token outlives its process on purpose: the successor finds it on disk and releases it.
  lower: async () => false,
};

const owner: LockKind = {
  anonymous: false,
  acquire(ctx, key, id, lease) {
    const now = ctx.clock.now();
    const value: OwnerLock = { acquired_at: Math.floor(now), hostname: ctx.hostname, lock_id: id };
    return ctx.redis.run(acquire, [key], [canonicalJson(value), ctx.hostname, id, now.toFixed(6), milliseconds(lease)]);
  },
  renew: (ctx, key, id, lease) => ctx.redis.run(renew, [key], [id, milliseconds(lease)]),
  release: async (ctx, key, id) => void (await ctx.redis.run(release, [key], [id, "DELETE"])),
  lower: async (ctx, key, id) => (await ctx.redis.run(release, [key], [id, "EXPIRE"])).ok,
};

export const lockKinds: Readonly<Record<LockKindName, LockKind>> = { basic, token, owner };

/** A single command whose reply was lost may have been done; the lock then ends with its TTL. */
async function plainly<T>(command: () => Promise<T>): Promise<T> {
  try {
    return await command();
  } catch (error) {
    if (isConnectionLoss(error)) throw kernelErrors.outcome_unknown({ cause: error });
    throw error;
  }
}

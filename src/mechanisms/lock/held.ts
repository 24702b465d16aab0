import type { KernelContext } from "../../kernel/context.ts";
import type { Fence } from "./fence.ts";
import { LOWERED_LEASE, type LockKindName, lockKinds } from "./kinds.ts";

/** The share of a lease after which its holder no longer vouches for it: renewals failed, and others may come soon. */
const DOUBTFUL_AFTER = 0.8;

/** What the work under a lock sees of it. */
export interface Lock {
  readonly key: string;
  /** False when the wait timed out and the work goes on without the lock. */
  readonly held: boolean;
  /** Fired when the lock is lost: stop at the next boundary, whatever is left belongs to the next holder. */
  readonly signal: AbortSignal;
  /** What fenced scripts take. A basic lock names no holder and therefore has none. */
  readonly fence: Fence;
}

/**
 * A lock that this process holds.
 *
 *   held ──renewal refused, or no renewal for 0.8 of the lease──▶ lost      (signal fires; the key is left alone)
 *   held ──the work ends──▶ released                                         (the key is gone)
 *   held ──shutdown──▶ lowered ──48 s later, or the work ends──▶ lost or released
 *
 * Redis is authoritative; this object only knows since when it has not been contradicted. A process that dies in any
 * state leaves a key that ends with its lease. A process that was stopped and comes back believes itself `held` until
 * its next timer or its next fenced script tells it otherwise: hence the fence.
 */
export class HeldLock implements Lock {
  readonly key: string;
  readonly lockId: string;
  readonly kind: LockKindName;
  readonly acquiredAt: number;
  readonly held = true;
  readonly #ctx: Pick<KernelContext, "redis" | "clock" | "hostname" | "log">;
  readonly #lost = new AbortController();
  readonly #renewEvery: number | undefined;
  #state: "held" | "lowered" | "lost" | "released" = "held";
  #lease: number;
  /** On the monotonic clock: the latest moment at which the lease is known to have begun. */
  #confirmedAt: number;
  #stopRenewing: () => void = () => {};
  #guard = new AbortController();

  constructor(
    ctx: Pick<KernelContext, "redis" | "clock" | "hostname" | "log">,
    init: {
      key: string;
      lockId: string;
      kind: LockKindName;
      lease: number;
      renewEvery: number | undefined;
      confirmedAt: number;
    },
  ) {
    this.#ctx = ctx;
    this.key = init.key;
    this.lockId = init.lockId;
    this.kind = init.kind;
    this.acquiredAt = ctx.clock.now();
    this.#lease = init.lease;
    this.#renewEvery = init.renewEvery;
    this.#confirmedAt = init.confirmedAt;
    if (this.#renewEvery !== undefined) this.#stopRenewing = ctx.clock.every(this.#renewEvery, () => this.#renew());
    void this.#watch();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get fence(): Fence {
    if (lockKinds[this.kind].anonymous) throw new TypeError(`${this.key} is a basic lock: it cannot fence anything`);
    return { key: this.key, lockId: this.lockId };
  }

  get state(): "held" | "lowered" | "lost" | "released" {
    return this.#state;
  }

  /** Ends the lock after its work. A lost one is left alone; a failure leaves it to its lease. */
  async release(): Promise<void> {
    if (this.#state === "lost" || this.#state === "released") return;
    const mayBeAnothers = lockKinds[this.kind].anonymous && this.#doubtful();
    this.#state = "released";
    this.#stopTimers();
    if (mayBeAnothers) return;
    try {
      await lockKinds[this.kind].release(this.#ctx, this.key, this.lockId);
    } catch (error) {
      this.#ctx.log.warn({ err: error, key: this.key }, "a lock could not be released and ends with its lease");
    }
  }

  /** The process is about to end: no renewal from now on, and at most a minute until others may go on. */
  async lower(): Promise<void> {
    if (this.#state !== "held") return;
    this.#stopRenewing();
    if (lockKinds[this.kind].anonymous && this.#doubtful()) return this.#lose("its lease may be over");
    const before = this.#ctx.clock.monotonic();
    const lowered = await lockKinds[this.kind].lower(this.#ctx, this.key, this.lockId);
    if (!lowered || this.#state !== "held") return;
    this.#state = "lowered";
    const end = Math.min(this.#confirmedAt + this.#lease, before + LOWERED_LEASE);
    this.#lease = Math.min(this.#lease, LOWERED_LEASE);
    this.#confirmedAt = end - this.#lease;
    this.#guard.abort();
    this.#guard = new AbortController();
    void this.#watch();
  }

  async #renew(): Promise<void> {
    if (this.#state !== "held") return;
    const kind = lockKinds[this.kind];
    if (kind.anonymous && this.#doubtful()) return this.#lose("its lease may be over");
    const before = this.#ctx.clock.monotonic();
    try {
      const answer = await kind.renew(this.#ctx, this.key, this.lockId, this.#lease);
      if (this.#state !== "held") return;
      if (answer.ok) this.#confirmedAt = before;
      else this.#lose(answer.reason);
    } catch (error) {
      this.#ctx.log.warn({ err: error, key: this.key }, "a lock could not be renewed");
    }
  }

  /** Sleeps until the lease becomes doubtful; renewals meanwhile move that moment away. */
  async #watch(): Promise<void> {
    const { signal } = this.#guard;
    for (;;) {
      const left = this.#confirmedAt + DOUBTFUL_AFTER * this.#lease - this.#ctx.clock.monotonic();
      if (left <= 0) return this.#lose("no renewal came through in time");
      if (!(await this.#ctx.clock.sleep(left, signal))) return;
    }
  }

  #doubtful(): boolean {
    return this.#ctx.clock.monotonic() - this.#confirmedAt >= DOUBTFUL_AFTER * this.#lease;
  }

  #lose(reason: string): void {
    if (this.#state === "lost" || this.#state === "released") return;
    this.#state = "lost";
    this.#stopTimers();
    this.#ctx.log.warn({ key: this.key, reason }, "a lock was lost");
    this.#lost.abort();
  }

  #stopTimers(): void {
    this.#stopRenewing();
    this.#guard.abort();
  }
}

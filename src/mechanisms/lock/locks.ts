import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import type { Catalogue, KeyName } from "../../kernel/keyspace/index.ts";
import { lockErrors } from "./errors.ts";
import { HeldLock, type Lock } from "./held.ts";
import { OWNER_LEASE } from "./keys.ts";
import { LOWERED_LEASE, lockKinds } from "./kinds.ts";
import type { AcquireAnswer } from "./scripts.ts";

const OWNER_RENEWAL = 30;
const SPIN_INTERVAL = 0.1;
const OLD_LOCK = 3600;
const VERY_OLD_LOCK = 21_600;

type LocksContext = Pick<KernelContext, "clock" | "redis" | "log" | "alerts" | "metrics" | "hostname">;

/** The kind of the lock and its lease in seconds. Owner-aware locks are always leased for 120 s and renewed. */
export type LockLease =
  | { readonly kind: "owner" }
  /** `renew: false` for work that cannot outlive the lease. */
  | { readonly kind: "basic" | "token"; readonly ttl: number; readonly renew?: boolean };

export type LockOptions = LockLease & {
  /** `fail` raises `lock_held` at once; `spin` asks again every 100 ms. */
  readonly wait: "fail" | "spin";
  /** Seconds to spin; without it, until the lock is free or the process shuts down. */
  readonly timeout?: number;
  /** `proceed` runs the work without the lock when the time is over, for requests that must answer. */
  readonly onTimeout?: "fail" | "proceed";
  /** Ends the wait. */
  readonly signal?: AbortSignal;
};

/**
 * The locks of one process: how they are taken, and the register of those it holds. Two tasks of one process contend
 * here and never ask Redis, because to Redis they would look like a dead process and its successor on the same host.
 * There is one of these per process, and shutdown goes through it.
 */
export class Locks {
  readonly #ctx: LocksContext;
  readonly #catalogue: Catalogue | undefined;
  readonly #held = new Map<string, HeldLock | "being acquired">();
  readonly #shutdown = new AbortController();

  constructor(ctx: LocksContext, catalogue?: Catalogue) {
    this.#ctx = ctx;
    this.#catalogue = catalogue;
  }

  /** The locks that this process holds now. */
  get held(): readonly HeldLock[] {
    return [...this.#held.values()].filter((lock) => lock instanceof HeldLock);
  }

  /** Runs `work` under the lock, renews it meanwhile, and releases it whatever comes of the work. */
  async withLock<T>(key: KeyName<"string">, options: LockOptions, work: (lock: Lock) => Promise<T>): Promise<T> {
    const lock = await this.#wait(key, options);
    if (!lock) return work(absentLock(key));
    try {
      return await work(lock);
    } finally {
      await lock.release();
      if (this.#held.get(key) === lock) this.#held.delete(key);
    }
  }

  /**
   * From now on nothing is renewed: basic and owner-aware locks live at most 60 s more, so that even a process that is
   * killed before its work ends delays the next one by no more. Waiting tasks stop waiting.
   */
  async shutdown(): Promise<void> {
    this.#shutdown.abort();
    await Promise.allSettled(this.held.map((lock) => lock.lower()));
  }

  async #wait(key: KeyName<"string">, options: LockOptions): Promise<HeldLock | undefined> {
    const { clock } = this.#ctx;
    const started = clock.monotonic();
    const deadline = options.timeout === undefined ? Number.POSITIVE_INFINITY : started + options.timeout;
    let interrupted: AbortSignal | undefined;
    const warned = new Set<string>();
    let refusal: AcquireAnswer | "this process";
    for (;;) {
      const attempt = await this.#attempt(key, options, warned);
      if (attempt instanceof HeldLock) {
        this.#observe(key, clock.monotonic() - started);
        return attempt;
      }
      refusal = attempt;
      const left = deadline - clock.monotonic();
      const waiting = options.wait === "spin" && left > 0;
      interrupted ??= AbortSignal.any([this.#shutdown.signal, ...(options.signal ? [options.signal] : [])]);
      if (waiting && (await clock.sleep(Math.min(SPIN_INTERVAL, left), interrupted))) continue;
      if (waiting || options.wait === "fail" || options.onTimeout !== "proceed") break;
      this.#observe(key, clock.monotonic() - started);
      return undefined;
    }
    const holder = refusal === "this process" ? refusal : refusal.holder;
    throw lockErrors.lock_held({ message: `${this.#patternOf(key)} is held${holder ? ` by ${holder}` : ""}` });
  }

  async #attempt(
    key: KeyName<"string">,
    options: LockOptions,
    warned: Set<string>,
  ): Promise<HeldLock | AcquireAnswer | "this process"> {
    if (this.#held.has(key)) return "this process";
    this.#held.set(key, "being acquired");
    let lock: HeldLock | undefined;
    try {
      const ending = this.#shutdown.signal.aborted;
      const fullLease = options.kind === "owner" ? OWNER_LEASE : options.ttl;
      const lease = ending && options.kind !== "token" ? Math.min(fullLease, LOWERED_LEASE) : fullLease;
      const lockId = randomToken();
      const confirmedAt = this.#ctx.clock.monotonic();
      const answer = await lockKinds[options.kind].acquire(this.#ctx, key, lockId, lease);
      this.#warn(key, answer, warned);
      if (answer.outcome !== "acquired" && answer.outcome !== "already_held") return answer;
      const renewEvery = ending ? undefined : renewalOf(options);
      lock = new HeldLock(this.#ctx, { key, lockId, kind: options.kind, lease, renewEvery, confirmedAt });
      // Shutdown may have begun while the answer was under way; it did not see this lock yet.
      if (!ending && this.#shutdown.signal.aborted) await lock.lower();
      return lock;
    } finally {
      if (lock) this.#held.set(key, lock);
      else this.#held.delete(key);
    }
  }

  #warn(key: string, answer: AcquireAnswer, warned: Set<string>): void {
    const warning = warningOf(answer);
    if (!warning || warned.has(warning.identifier)) return;
    warned.add(warning.identifier);
    this.#ctx.alerts.warning(warning.identifier, `${this.#patternOf(key)}: ${warning.text}`, {
      urgent: warning.urgent ?? false,
    });
  }

  #observe(key: string, seconds: number): void {
    this.#ctx.metrics
      .histogram("carillon_lock_wait_seconds", "How long work waited for its lock.", ["key_pattern"])
      .observe({ key_pattern: this.#patternOf(key) }, seconds);
  }

  /** The declared pattern rather than the name: a label set must stay small, and names may hold what is private. */
  #patternOf(key: string): string {
    return this.#catalogue ? (this.#catalogue.match(key)?.entry.pattern ?? "undeclared") : key;
  }
}

function warningOf(answer: AcquireAnswer): { identifier: string; text: string; urgent?: boolean } | undefined {
  const { outcome, holder, age = 0 } = answer;
  if (outcome === "already_held")
    return { identifier: "lock:already_held", text: "the reply to the first attempt was lost; the lock is ours" };
  if (outcome === "same_host")
    return { identifier: "lock:same_host", text: `an earlier process of ${holder} died; free within 60 s` };
  if (outcome === "malformed")
    return { identifier: "lock:malformed", text: "its value is not a lock; it ends within 300 s" };
  const text = `held by ${holder} for ${Math.round(age)} s`;
  if (outcome === "other_host" && age > VERY_OLD_LOCK) return { identifier: "lock:very_old", text, urgent: true };
  if (outcome === "other_host" && age > OLD_LOCK) return { identifier: "lock:old", text };
  return undefined;
}

function renewalOf(lease: LockLease): number | undefined {
  if (lease.kind === "owner") return OWNER_RENEWAL;
  return lease.renew === false ? undefined : lease.ttl / 3;
}

/** Stands in for the lock that did not come in time: it fences everything off, because its id is in no key. */
function absentLock(key: string): Lock {
  return { key, held: false, signal: new AbortController().signal, fence: { key, lockId: randomToken() } };
}

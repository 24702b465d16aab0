import type { KernelContext } from "../../kernel/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { isConnectionLoss, type RedisConnection } from "../../kernel/redis/index.ts";
import type { Limit } from "./limit.ts";
import { type Call, callFor, type Refusals } from "./scripts.ts";

/** `retryAfter` in seconds; over HTTP a refusal is 429 with `Retry-After: ceil(retryAfter)`. */
export type LimitResult =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly retryAfter: number; readonly reason: string };

export type LimitContext = Pick<KernelContext, "redis" | "clock" | "alerts">;

/** Limits in one script call; more are sent as several calls. */
const MAX_LIMITS = 500;
/** Calls on the way at once. What arrives meanwhile forms the next one, so a rush becomes few large calls. */
const MAX_IN_FLIGHT = 2;
/** What a caller is told to wait when Redis cannot be asked and the family is closed then. */
const UNREACHABLE_RETRY = 5;

const ALLOWED: LimitResult = { allowed: true };

type Action = readonly Limit[];

interface Waiting {
  readonly limits: Action;
  resolve(result: LimitResult): void;
  reject(error: unknown): void;
}

/**
 * Asks whether one action may happen, under one or more limits: all are checked before any is recorded, and the first
 * that refuses names the reason. All keys must be of one family.
 *
 * Actions under the same rules that are asked for in the same moment travel together in one call.
 */
export function attempt(ctx: LimitContext, limits: Action): Promise<LimitResult> {
  if (limits.length === 0) return Promise.resolve(ALLOWED);
  return new Promise((resolve, reject) => groupOf(ctx, limits).add({ limits, resolve, reject }));
}

/** The same for N actions, in order: each sees what the ones before it recorded. */
export async function attemptMany(ctx: LimitContext, actions: readonly Action[]): Promise<readonly LimitResult[]> {
  const results: LimitResult[] = [];
  for (let start = 0; start < actions.length; ) {
    const first = actions[start]!;
    const rules = signature(first);
    const room = roomFor(first);
    let end = start + 1;
    while (end < actions.length && end - start < room && signature(actions[end]!) === rules) end += 1;
    const run = actions.slice(start, end);
    for (const result of first.length === 0 ? run.map(() => ALLOWED) : await groupOf(ctx, first).send(run))
      results.push(result);
    start = end;
  }
  return results;
}

/** Actions with equal signatures can share a call. */
function signature(limits: Action): string {
  return limits.length === 1 ? limits[0]!.rule.text : limits.map(({ rule }) => rule.text).join("|");
}

function roomFor(limits: Action): number {
  return Math.max(1, Math.floor(MAX_LIMITS / Math.max(1, limits.length)));
}

/** All actions of one connection under the same rules. Puts those together that come while earlier ones are on their way. */
class Group {
  readonly #ctx: LimitContext;
  readonly #call: Call;
  readonly #room: number;
  #waiting: Waiting[] = [];
  #inFlight = 0;
  #scheduled = false;
  readonly #flush = () => {
    this.#scheduled = false;
    while (this.#waiting.length > 0 && this.#inFlight < MAX_IN_FLIGHT) this.#deliver(this.#take());
  };

  constructor(ctx: LimitContext, example: Action) {
    this.#ctx = ctx;
    this.#call = callFor(example.map(({ rule }) => rule));
    this.#room = roomFor(example);
  }

  add(waiting: Waiting): void {
    this.#waiting.push(waiting);
    if (this.#scheduled || this.#inFlight >= MAX_IN_FLIGHT) return;
    // Alone, an action goes at once; the next ones of the same moment are gathered.
    if (this.#inFlight === 0) this.#deliver(this.#take());
    else {
      this.#scheduled = true;
      queueMicrotask(this.#flush);
    }
  }

  /** One script call. */
  send(actions: readonly Action[]): Promise<readonly LimitResult[]> {
    const { redis, clock } = this.#ctx;
    // A connection known to be lost would hold the command back until it is there again; nobody waits that long here.
    if (isLost(redis)) return Promise.resolve(actions.map(unreachable));
    return this.#call(redis, clock, actions).then(
      (refusals) => this.#results(actions, refusals),
      (error) => {
        if (wasUnreachable(error)) return actions.map(unreachable);
        throw error;
      },
    );
  }

  #take(): Waiting[] {
    if (this.#waiting.length > this.#room) return this.#waiting.splice(0, this.#room);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }

  #deliver(batch: readonly Waiting[]): void {
    this.#inFlight += 1;
    this.send(batch.map(({ limits }) => limits)).then(
      (results) => {
        this.#landed();
        for (let index = 0; index < batch.length; index++) batch[index]!.resolve(results[index]!);
      },
      (error) => {
        this.#landed();
        for (const { reject } of batch) reject(error);
      },
    );
  }

  #landed(): void {
    this.#inFlight -= 1;
    if (this.#waiting.length > 0) this.#flush();
  }

  #results(actions: readonly Action[], { refused, healed }: Refusals): readonly LimitResult[] {
    const results = new Array<LimitResult>(actions.length).fill(ALLOWED);
    for (const { action, failed, retryAfter } of refused)
      results[action] = { allowed: false, retryAfter, reason: actions[action]![failed]!.rule.reason };
    if (healed.length > 0) {
      const limits = actions.flat();
      for (const position of healed)
        this.#ctx.alerts.warning(
          "rate_limit:not_a_number",
          `the limit ${limits[position]!.rule.reason} held something else than a number; it counts as empty`,
        );
    }
    return results;
  }
}

const groups = new WeakMap<RedisConnection, Map<string, Group>>();

function groupOf(ctx: LimitContext, limits: Action): Group {
  const rules = signature(limits);
  let own = groups.get(ctx.redis);
  let group = own?.get(rules);
  if (group) return group;
  own ??= new Map();
  group = new Group(ctx, limits);
  groups.set(ctx.redis, own.set(rules, group));
  return group;
}

function unreachable(limits: Action): LimitResult {
  const closed = limits.some(({ rule }) => rule.whenUnreachable === "closed");
  return closed ? { allowed: false, retryAfter: UNREACHABLE_RETRY, reason: "limiter_unreachable" } : ALLOWED;
}

function isLost(redis: RedisConnection): boolean {
  const { status } = redis.commands;
  return status === "reconnecting" || status === "close" || status === "end";
}

function wasUnreachable(error: unknown): boolean {
  return (
    isConnectionLoss(error) ||
    kernelErrors.outcome_unknown.matches(error) ||
    kernelErrors.redis_unavailable.matches(error)
  );
}

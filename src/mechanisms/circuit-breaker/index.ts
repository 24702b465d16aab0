import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { defineScript } from "../../kernel/redis/index.ts";

/**
 * Stops calling a provider that keeps failing.
 *
 * Closed: calls go through, errors are noted in Redis. Open, from `threshold` errors within `window`: nobody calls, the
 * fallback answers. Nothing closes it but time: errors leave the window and calls go through again. All processes see
 * the same errors; a crash loses at most the note of one.
 */
export interface CircuitBreaker {
  readonly key: KeyName<"zset">;
  /** Seconds; default 300. */
  readonly window?: number;
  /** Errors within the window that open it; default 10. */
  readonly threshold?: number;
  /** Seconds a guarded call may take before it counts as an error; default 5. */
  readonly timeout?: number;
}

type BreakerContext = Pick<KernelContext, "redis" | "clock">;

const DEFAULT_WINDOW = 300;
const DEFAULT_THRESHOLD = 10;
const DEFAULT_TIMEOUT = 5;

const recordScript = defineScript({
  name: "circuit_breaker.record",
  file: new URL("./scripts/record.lua", import.meta.url),
  keys: ["errors"],
  args: ["now", "window_ms", "...ids"],
  // The ids are the same in a repeat, so an error is noted once.
  idempotent: true,
  reply: (raw: number) => raw,
});

const countScript = defineScript({
  name: "circuit_breaker.count",
  file: new URL("./scripts/count.lua", import.meta.url),
  keys: ["errors"],
  args: ["now", "window_ms"],
  idempotent: true,
  reply: (raw: number) => raw,
});

const windowOf = (breaker: CircuitBreaker) => Math.round((breaker.window ?? DEFAULT_WINDOW) * 1000);
const thresholdOf = (breaker: CircuitBreaker) => breaker.threshold ?? DEFAULT_THRESHOLD;

/** Notes errors that just happened; answers whether the circuit is open now. */
export async function recordErrors(ctx: BreakerContext, breaker: CircuitBreaker, count = 1): Promise<boolean> {
  const ids = Array.from({ length: count }, randomToken);
  const now = ctx.clock.now().toFixed(6);
  return (await ctx.redis.run(recordScript, [breaker.key], [now, windowOf(breaker), ...ids])) >= thresholdOf(breaker);
}

export async function isOpen(ctx: BreakerContext, breaker: CircuitBreaker): Promise<boolean> {
  return (await recentErrors(ctx, breaker)) >= thresholdOf(breaker);
}

/** How many errors are in the window now. */
export function recentErrors(ctx: BreakerContext, breaker: CircuitBreaker): Promise<number> {
  return ctx.redis.run(countScript, [breaker.key], [ctx.clock.now().toFixed(6), windowOf(breaker)]);
}

/**
 * Calls the provider unless the circuit is open. An error, or an answer that takes longer than the timeout, is noted
 * and then thrown; the call gets a signal that fires at its timeout. While open, the fallback answers.
 */
export async function guarded<T>(
  ctx: BreakerContext,
  breaker: CircuitBreaker,
  call: (signal: AbortSignal) => Promise<T>,
  fallback: () => Promise<T> | T,
): Promise<T> {
  if (await isOpen(ctx, breaker)) return fallback();
  const answered = new AbortController();
  const late = new AbortController();
  const timeout = breaker.timeout ?? DEFAULT_TIMEOUT;
  const timedOut = ctx.clock.sleep(timeout, answered.signal).then((passed) => {
    if (!passed) return new Promise<never>(() => {});
    const error = new DOMException(`no answer within ${timeout} s`, "TimeoutError");
    late.abort(error);
    throw error;
  });
  try {
    return await Promise.race([call(late.signal), timedOut]);
  } catch (error) {
    await recordErrors(ctx, breaker);
    throw error;
  } finally {
    answered.abort();
  }
}

import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { defineScript } from "../../kernel/redis/index.ts";
import { apiSpacingErrors } from "./errors.ts";

export { apiSpacingErrors } from "./errors.ts";

/**
 * Calls to a paid or slow API, kept apart across all processes. Redis holds the one authoritative fact, the last slot
 * given away; a caller takes the slot after it, sleeps until then, and calls. A caller that dies or is stopped while it
 * sleeps wastes its slot and nothing else: nobody has to give anything back.
 */
export interface SpacedApi {
  /** `pexels`: what metrics and errors call it. */
  readonly name: string;
  readonly key: KeyName<"string">;
  /** The longest interval that any call of this API uses: how long the last slot has to be remembered. */
  readonly longestInterval: number;
}

export interface SpacingOptions {
  /** Seconds after the previous slot, whatever interval that one had. */
  readonly interval: number;
  /** Seconds; default 600. */
  readonly maxWait?: number;
  /** Ends the wait early; the slot is wasted. */
  readonly signal?: AbortSignal;
}

export type Reservation =
  | { readonly ok: true; readonly slot: number }
  | { readonly ok: false; readonly reason: "busy"; readonly slot: number };

type SpacingContext = Pick<KernelContext, "redis" | "clock" | "alerts" | "metrics">;

const DEFAULT_MAX_WAIT = 600;

const reserveScript = defineScript({
  name: "api_limiter.reserve",
  file: new URL("./scripts/reserve.lua", import.meta.url),
  keys: ["slot"],
  args: ["now", "interval", "max_wait", "longest"],
  // A repeat would take a second slot.
  idempotent: false,
  reply: (raw: [number, string, number]) => ({ reserved: raw[0] === 1, slot: Number(raw[1]), healed: raw[2] === 1 }),
});

/** Takes the next slot, or says when it would be if that is too far ahead. */
export async function reserve(
  ctx: SpacingContext,
  api: SpacedApi,
  options: Omit<SpacingOptions, "signal">,
): Promise<Reservation> {
  const { reserved, slot, healed } = await ctx.redis.run(
    reserveScript,
    [api.key],
    [
      ctx.clock.now().toFixed(6),
      options.interval,
      options.maxWait ?? DEFAULT_MAX_WAIT,
      Math.max(api.longestInterval, options.interval),
    ],
  );
  if (healed)
    ctx.alerts.warning(
      "api_limiter:not_a_number",
      `the last slot of ${api.name} was not a number; it counts as never used`,
    );
  return reserved ? { ok: true, slot } : { ok: false, reason: "busy", slot };
}

/** Reserves, waits, calls. Raises `api_busy` when the wait is too long, and the signal's reason when it is cut short. */
export async function callSpaced<T>(
  ctx: SpacingContext,
  api: SpacedApi,
  options: SpacingOptions,
  call: () => Promise<T>,
): Promise<T> {
  const reservation = await reserve(ctx, api, options);
  const wait = Math.max(0, reservation.slot - ctx.clock.now());
  if (!reservation.ok)
    throw apiSpacingErrors.api_busy({
      message: `the next free slot of ${api.name} is ${Math.ceil(wait)} s ahead`,
      retryAfter: wait,
      detail: { api: api.name, slot: reservation.slot },
    });
  ctx.metrics
    .histogram("carillon_api_limiter_wait_seconds", "How long callers waited for their slot.", ["api"])
    .observe({ api: api.name }, wait);
  if (wait > 0 && !(await ctx.clock.sleep(wait, options.signal))) options.signal?.throwIfAborted();
  return call();
}

import type { KernelContext } from "../../kernel/context.ts";
import { callSpaced, type SpacedApi, type SpacingOptions } from "../../mechanisms/api-spacing/index.ts";
import { type CallOf, intervalsOf, longestIntervalOf, type SpacedApiName, spacedApiNames } from "./apis.ts";
import { keys } from "./keys.ts";

export { apiSpacingErrors } from "../../mechanisms/api-spacing/index.ts";
export { isTransientAnswer, SPACED_API_RETRY, SPACED_APIS, type SpacedApiName } from "./apis.ts";

type SpacingContext = Pick<KernelContext, "redis" | "clock" | "alerts" | "metrics">;

export interface SpacedCallOptions<Api extends SpacedApiName> extends Omit<SpacingOptions, "interval"> {
  /** Which of the API's declared intervals holds, or another number of seconds. */
  readonly interval: CallOf<Api> | number;
}

export interface LimiterState {
  readonly api: SpacedApiName;
  readonly intervals: Readonly<Record<string, number>>;
  /** The last used or reserved moment; null when it is so long ago that nothing waits for it. */
  readonly last_used_at: number | null;
  /** From when on every kind of call is free. */
  readonly next_free_at: number;
}

export const externalApis = {
  /**
   * Calls a third party no sooner than its interval allows, counted over all processes. Raises `api_busy` when the free
   * moment is more than `maxWait` (600 s) ahead: jobs bounce, HTTP answers 503 with Retry-After.
   */
  call<Api extends SpacedApiName, T>(
    ctx: SpacingContext,
    api: Api,
    options: SpacedCallOptions<Api>,
    call: () => Promise<T>,
  ): Promise<T> {
    const { interval, ...rest } = options;
    const seconds = typeof interval === "number" ? interval : intervalsOf(api)[interval]!;
    return callSpaced(ctx, spacedApi(api), { ...rest, interval: seconds }, call);
  },
};

/** Where every spaced API stands, for operators. */
export async function limiterStates(ctx: Pick<KernelContext, "redis" | "clock">): Promise<LimiterState[]> {
  const { commands, topology } = ctx.redis;
  const names = spacedApiNames.map((api) => topology.key(keys.limiter({ api })));
  const slots = await commands.mget(...names);
  return spacedApiNames.map((api, index) => {
    const last = Number(slots[index] ?? Number.NaN);
    const known = Number.isFinite(last);
    return {
      api,
      intervals: intervalsOf(api),
      last_used_at: known ? last : null,
      next_free_at: known ? Math.max(ctx.clock.now(), last + longestIntervalOf(api)) : ctx.clock.now(),
    };
  });
}

function spacedApi(api: SpacedApiName): SpacedApi {
  return { name: api, key: keys.limiter({ api }), longestInterval: longestIntervalOf(api) };
}

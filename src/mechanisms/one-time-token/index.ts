import type { KernelContext } from "../../kernel/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { defineScript, isConnectionLoss, type RedisConnection } from "../../kernel/redis/index.ts";
import { tokenErrors } from "./errors.ts";

export { tokenErrors } from "./errors.ts";

/**
 * Tokens that count once, ids that were seen, tokens that were revoked, and the tokens a holder has.
 *
 * Redis alone knows; nothing is kept in the process. Without Redis every check here raises `token_check_unavailable`:
 * a token is refused rather than accepted unseen. A crash after a token was consumed costs its holder a new one.
 */
type TokenContext = Pick<KernelContext, "redis" | "clock">;

/** Seconds that a note about a token outlives the token, so that clocks may differ. */
const MARGIN = 60;
const MAX_COLLISIONS = 5;

const useScript = defineScript({
  name: "one_time_token.use",
  file: new URL("./scripts/use.lua", import.meta.url),
  keys: ["token"],
  args: ["now", "used_field", "expires_field"],
  // A repeat would find the token used by the call itself.
  idempotent: false,
  reply: (raw: number): UseResult =>
    raw === 1 ? { ok: true } : { ok: false, reason: raw === -1 ? "unknown" : raw === -2 ? "used" : "expired" },
});

const enlistScript = defineScript({
  name: "one_time_token.enlist",
  file: new URL("./scripts/enlist.lua", import.meta.url),
  keys: ["live"],
  args: ["now", "cap", "...tokens"],
  idempotent: true,
  reply: (raw: string[]) => raw,
});

export type UseResult = { readonly ok: true } | { readonly ok: false; readonly reason: "unknown" | "used" | "expired" };

const milliseconds = (seconds: number) => Math.max(1, Math.ceil(seconds * 1000));

/** Raises the closed answer for everything that leaves the state of a token unknown. */
async function closed<T>(redis: RedisConnection, work: () => Promise<T>): Promise<T> {
  const { status } = redis.commands;
  // A connection known to be lost would hold the command back; whoever waits for a token check needs an answer now.
  if (status === "reconnecting" || status === "close" || status === "end") throw tokenErrors.token_check_unavailable();
  try {
    return await work();
  } catch (error) {
    if (
      isConnectionLoss(error) ||
      kernelErrors.outcome_unknown.matches(error) ||
      kernelErrors.redis_unavailable.matches(error)
    )
      throw tokenErrors.token_check_unavailable({ cause: error });
    throw error;
  }
}

/** Keeps a value under a fresh code; a code that exists already is drawn again. Answers the code. */
export async function issue(
  ctx: TokenContext,
  plan: {
    readonly code: () => string;
    readonly key: (code: string) => KeyName<"string">;
    readonly value: string | Buffer;
    readonly ttl: number;
  },
): Promise<string> {
  return closed(ctx.redis, async () => {
    for (let tries = 0; tries < MAX_COLLISIONS; tries++) {
      const code = plan.code();
      const key = ctx.redis.topology.key(plan.key(code));
      if (await ctx.redis.commands.set(key, plan.value, "PX", milliseconds(plan.ttl), "NX")) return code;
    }
    throw new Error(`${MAX_COLLISIONS} codes in a row were taken: the codes have too little randomness`);
  });
}

/** Takes the value; the first caller gets it, all others undefined. */
export function consume(ctx: TokenContext, key: KeyName<"string">): Promise<Buffer | undefined> {
  return closed(
    ctx.redis,
    async () => (await ctx.redis.commands.getdelBuffer(ctx.redis.topology.key(key))) ?? undefined,
  );
}

/** Uses a token kept as a hash; its expiry field decides, not the key's TTL. */
export function use(
  ctx: TokenContext,
  key: KeyName<"hash">,
  fields: { readonly used: "used" | "already_used"; readonly expires?: string },
): Promise<UseResult> {
  return closed(ctx.redis, () =>
    ctx.redis.run(useScript, [key], [ctx.clock.now().toFixed(6), fields.used, fields.expires ?? ""]),
  );
}

const noteSeconds = (ctx: TokenContext, expiry: number) => Math.max(1, Math.ceil(expiry - ctx.clock.now()) + MARGIN);

/** Notes that an id was seen; `first` for one caller only, until a minute after the token has expired. */
export function markSeen(ctx: TokenContext, key: KeyName<"string">, expiry: number): Promise<"first" | "already_seen"> {
  return closed(ctx.redis, async () => {
    const rendered = ctx.redis.topology.key(key);
    const set = await ctx.redis.commands.set(rendered, "1", "EX", noteSeconds(ctx, expiry), "NX");
    return set ? "first" : "already_seen";
  });
}

/** Notes that a token no longer counts, until a minute after it has expired. */
export function revoke(ctx: TokenContext, key: KeyName<"string">, expiry: number): Promise<void> {
  return closed(ctx.redis, async () => {
    await ctx.redis.commands.set(ctx.redis.topology.key(key), "1", "EX", noteSeconds(ctx, expiry));
  });
}

export function isRevoked(ctx: TokenContext, key: KeyName<"string">): Promise<boolean> {
  return closed(ctx.redis, async () => (await ctx.redis.commands.exists(ctx.redis.topology.key(key))) === 1);
}

/** Adds tokens to those a holder has; answers the ids that had to go because there were too many. */
export function enlist(
  ctx: TokenContext,
  live: KeyName<"zset">,
  tokens: readonly { readonly jti: string; readonly expiry: number }[],
  options: { readonly cap: number },
): Promise<string[]> {
  const pairs = tokens.flatMap(({ jti, expiry }) => [expiry, jti]);
  return closed(ctx.redis, () =>
    ctx.redis.run(enlistScript, [live], [ctx.clock.now().toFixed(6), options.cap, ...pairs]),
  );
}

/** Whether a holder's token still counts. */
export function isLive(ctx: TokenContext, live: KeyName<"zset">, jti: string): Promise<boolean> {
  return closed(ctx.redis, async () => {
    const expiry = await ctx.redis.commands.zscore(ctx.redis.topology.key(live), jti);
    return expiry !== null && Number(expiry) > ctx.clock.now();
  });
}

/** Takes one token from a holder; false when it had it no longer. */
export function delist(ctx: TokenContext, live: KeyName<"zset">, jti: string): Promise<boolean> {
  return closed(ctx.redis, async () => (await ctx.redis.commands.zrem(ctx.redis.topology.key(live), jti)) === 1);
}

/** Takes all tokens from a holder. */
export function delistAll(ctx: TokenContext, live: KeyName<"zset">): Promise<void> {
  return closed(ctx.redis, async () => {
    await ctx.redis.commands.del(ctx.redis.topology.key(live));
  });
}

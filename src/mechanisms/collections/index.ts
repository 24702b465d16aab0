import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { defineScript } from "../../kernel/redis/index.ts";

/**
 * Lists that keep their newest items, rankings that keep their highest members, and contents that are swapped whole.
 * A lifetime starts anew with every write and never with a read.
 */
type CollectionContext = Pick<KernelContext, "redis">;

export interface Bounds {
  readonly cap: number;
  /** Seconds; absent = never expires. */
  readonly ttl?: number;
}

const ttlMs = (ttl: number | undefined) => (ttl === undefined ? 0 : Math.max(1, Math.round(ttl * 1000)));

const pushCappedScript = defineScript({
  name: "collections.push_capped",
  file: new URL("./scripts/push_capped.lua", import.meta.url),
  keys: ["list"],
  args: ["cap", "ttl_ms", "newest", "...items"],
  idempotent: false,
  reply: (raw: number) => raw,
});

const bumpScript = defineScript({
  name: "collections.bump",
  file: new URL("./scripts/bump.lua", import.meta.url),
  keys: ["ranking"],
  args: ["cap", "ttl_ms", "...bumps"],
  idempotent: false,
  reply: (raw: string[]) => raw.map((score) => (score === "" ? undefined : Number(score))),
});

const replaceScript = defineScript({
  name: "collections.replace",
  file: new URL("./scripts/replace.lua", import.meta.url),
  keys: ["key"],
  args: ["type", "ttl_ms", "...items"],
  idempotent: true,
  reply: (raw: number) => raw,
});

/** Adds items, oldest first, and trims; answers the length. */
export function pushCapped(
  ctx: CollectionContext,
  list: KeyName<"list">,
  items: readonly (string | Buffer)[],
  bounds: Bounds & { readonly newest: "left" | "right" },
): Promise<number> {
  return ctx.redis.run(pushCappedScript, [list], [bounds.cap, ttlMs(bounds.ttl), bounds.newest, ...items]);
}

/** Raises members; answers their new scores, undefined for one that fell below the cap at once. */
export function bump(
  ctx: CollectionContext,
  ranking: KeyName<"zset">,
  members: readonly { readonly member: string; readonly by: number }[],
  bounds: Bounds,
): Promise<(number | undefined)[]> {
  const bumps = members.flatMap(({ member, by }) => [member, by]);
  return ctx.redis.run(bumpScript, [ranking], [bounds.cap, ttlMs(bounds.ttl), ...bumps]);
}

export type Replacement =
  | { readonly type: "list"; readonly key: KeyName<"list">; readonly items: readonly (string | Buffer)[] }
  | { readonly type: "set"; readonly key: KeyName<"set">; readonly items: readonly (string | Buffer)[] }
  | {
      readonly type: "zset";
      readonly key: KeyName<"zset">;
      readonly items: readonly { readonly member: string; readonly score: number }[];
    }
  | { readonly type: "hash"; readonly key: KeyName<"hash">; readonly items: Readonly<Record<string, string | Buffer>> };

/** Swaps the whole content in one step; answers how many items there are now. */
export function replace(
  ctx: CollectionContext,
  replacement: Replacement,
  options: { readonly ttl?: number } = {},
): Promise<number> {
  return ctx.redis.run(
    replaceScript,
    [replacement.key],
    [replacement.type, ttlMs(options.ttl), ...flattened(replacement)],
  );
}

function flattened(replacement: Replacement): (string | number | Buffer)[] {
  switch (replacement.type) {
    case "list":
    case "set":
      return [...replacement.items];
    case "zset":
      return replacement.items.flatMap(({ member, score }) => [score, member]);
    case "hash":
      return Object.entries(replacement.items).flat();
  }
}

/** The highest members, ties in the order of their names. */
export async function top(
  ctx: CollectionContext,
  ranking: KeyName<"zset">,
  count: number,
): Promise<{ member: string; score: number }[]> {
  if (count < 1) return [];
  // Redis breaks ties downwards when it reads from the highest, so members that share the last score are all fetched.
  const key = ctx.redis.topology.key(ranking);
  const highest = await ctx.redis.commands.zrevrange(key, 0, count - 1, "WITHSCORES");
  if (highest.length === 0) return [];
  const lowest = highest[highest.length - 1]!;
  const all = await ctx.redis.commands.zrangebyscore(key, lowest, "+inf", "WITHSCORES");
  const members: { member: string; score: number }[] = [];
  for (let at = 0; at < all.length; at += 2) members.push({ member: all[at]!, score: Number(all[at + 1]) });
  // The sort is stable and Redis gave equal scores by name.
  return members.sort((a, b) => b.score - a.score).slice(0, count);
}

import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { defineScript } from "../../kernel/redis/index.ts";

/**
 * Two small facts. A cursor says how far a walk over something long has come, so that the next run goes on there; it
 * moves only from the position its reader saw. A set-once marker says that something happened, and the first to say so
 * is remembered.
 */
type MarkerContext = Pick<KernelContext, "redis">;

const advanceScript = defineScript({
  name: "marker.advance",
  file: new URL("./scripts/advance.lua", import.meta.url),
  keys: ["cursor"],
  args: ["expected", "next"],
  // A repeat after a lost reply would answer 0 for a step that was made.
  idempotent: false,
  reply: (raw: number) => raw === 1,
});

/** Where the walk goes on; undefined = from the beginning. */
export async function readCursor(ctx: MarkerContext, cursor: KeyName<"string">): Promise<string | undefined> {
  return (await ctx.redis.commands.get(ctx.redis.topology.key(cursor))) ?? undefined;
}

/** Moves the cursor; `undefined` means the beginning, before as well as after. False: somebody else moved it. */
export function advanceCursor(
  ctx: MarkerContext,
  cursor: KeyName<"string">,
  from: string | undefined,
  to: string | undefined,
): Promise<boolean> {
  return ctx.redis.run(advanceScript, [cursor], [from ?? "", to ?? ""]);
}

export type MarkResult = { readonly first: true } | { readonly first: false; readonly value: string };

/** Sets the marker unless it is set; whoever comes later gets what the first one wrote. */
export async function markOnce(
  ctx: MarkerContext,
  marker: KeyName<"string">,
  value = "1",
  options: { readonly ttl?: number } = {},
): Promise<MarkResult> {
  const key = ctx.redis.topology.key(marker);
  const held =
    options.ttl === undefined
      ? await ctx.redis.commands.set(key, value, "NX", "GET")
      : await ctx.redis.commands.set(key, value, "PX", Math.max(1, Math.round(options.ttl * 1000)), "NX", "GET");
  return held === null ? { first: true } : { first: false, value: held };
}

export async function isMarked(ctx: MarkerContext, marker: KeyName<"string">): Promise<boolean> {
  return (await ctx.redis.commands.exists(ctx.redis.topology.key(marker))) === 1;
}

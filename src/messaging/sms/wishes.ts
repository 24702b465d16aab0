import type { Context, JobContext } from "../../jobs/context.ts";
import type { StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { optIn, optOut } from "../contacts/service.ts";
import { nudgeByName } from "./enqueue.ts";
import { heldWish } from "./entries.ts";
import { keys } from "./keys.ts";
import { settleWishes } from "./scripts.ts";

const PAGE = 500;

/**
 * STOP and START.
 *
 *   said ──SQL is there──▶ followed
 *   said ──SQL is away, or an earlier wish of the number is held──▶ held ──next run──▶ followed
 *
 * SQL is authoritative for what was followed, `sms:wishes` for what was not. Whoever is held with STOP counts as
 * suppressed for the sender. A number has one held wish, the newest, and as long as it has one every further wish goes
 * the same way, so that none overtakes another. A process that dies before a wish is held has not answered, and the
 * provider tells the sender of the text that it failed.
 */
export async function followOrHold(ctx: Context, number: string, wish: "stop" | "start"): Promise<void> {
  const wishes = ctx.redis.topology.key(keys.wishes());
  // Without Redis nothing can be held; SQL alone decides then.
  const held = await ctx.redis.commands.hexists(wishes, number).catch(() => 0);
  if (held === 0) {
    try {
      await follow(ctx, wish, [number]);
      return;
    } catch (error) {
      ctx.alerts.error(error, `a text that says ${wish.toUpperCase()} could not be followed at once`);
    }
  }
  await ctx.redis.commands.hset(wishes, number, heldWish.encode({ wish, said_at: ctx.clock.now() }));
  nudgeByName(ctx, "runners.sms.follow_wishes");
}

async function follow(ctx: Context, wish: "stop" | "start", numbers: readonly string[]): Promise<void> {
  if (numbers.length === 0) return;
  await (wish === "stop" ? optOut(ctx, numbers) : optIn(ctx, numbers));
}

/** Which of these numbers said STOP without anybody having followed it yet. */
export async function heldStops(ctx: Pick<Context, "redis">, numbers: readonly string[]): Promise<ReadonlySet<string>> {
  if (numbers.length === 0) return new Set();
  const raws = await ctx.redis.commands.hmgetBuffer(ctx.redis.topology.key(keys.wishes()), ...numbers);
  return new Set(numbers.filter((_, at) => raws[at] != null && wishOf(raws[at]) === "stop"));
}

/** What cannot be read counts as STOP: a text too few is the smaller mistake. */
function wishOf(raw: Buffer): "stop" | "start" {
  try {
    return heldWish.decode(raw).wish;
  } catch {
    return "stop";
  }
}

/** Follows what was held, a page at a time. */
export async function followWishes(ctx: JobContext): Promise<StopReason> {
  const wishes = ctx.redis.topology.key(keys.wishes());
  for (;;) {
    let [cursor, left] = ["0", 0];
    do {
      if (ctx.shuttingDown()) return "signal";
      if (ctx.budget.exhausted()) return "time_exhausted";
      const [next, flat] = await ctx.redis.commands.hscanBuffer(wishes, cursor, "COUNT", PAGE);
      cursor = next.toString();
      const held = Array.from({ length: flat.length / 2 }, (_, at) => ({
        number: flat[2 * at]!.toString(),
        raw: flat[2 * at + 1]!,
      }));
      if (held.length === 0) continue;
      const of = (wish: "stop" | "start") => held.filter(({ raw }) => wishOf(raw) === wish).map(({ number }) => number);
      await follow(ctx, "stop", of("stop"));
      await follow(ctx, "start", of("start"));
      const pairs = held.flatMap(({ number, raw }) => [number, raw]);
      left += held.length - (await ctx.redis.run(settleWishes, [keys.wishes()], pairs));
    } while (cursor !== "0");
    // What changed while it was followed is followed again.
    if (left === 0) return "list_exhausted";
  }
}

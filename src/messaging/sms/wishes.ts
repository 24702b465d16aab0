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
 *   said ──▶ held ──next run, at once──▶ followed
 *
 * `sms:wishes` is authoritative for what was said, SQL for what was followed. Whoever waits for an answer waits for Redis
 * alone. Whoever is held with STOP counts as suppressed for the sender, so it is honoured from the answer on. A number has
 * one held wish, the newest. A process that dies before a wish is held has not answered, and the provider notes that the
 * text failed; one that dies after it leaves the wish to the next run.
 */
export async function holdWish(ctx: Context, number: string, wish: "stop" | "start"): Promise<void> {
  const held = heldWish.encode({ wish, said_at: ctx.clock.now() });
  await ctx.redis.commands.hset(ctx.redis.topology.key(keys.wishes()), number, held);
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

import type { Context } from "../../jobs/context.ts";
import { keys } from "./keys.ts";
import { openDays } from "./open-days.ts";
import { type AbandonOutcome, abandon, type PersistOutcome, queuePersist as queuePersistScript } from "./scripts.ts";
import { settings } from "./settings.ts";
import { linkStats } from "./stats.ts";

type FateContext = Pick<Context, "redis" | "clock" | "config">;

const GROUP = 500;

async function inGroups<T>(codes: readonly string[], work: (group: readonly string[]) => Promise<readonly T[]>) {
  const outcomes: T[] = [];
  for (let start = 0; start < codes.length; start += GROUP)
    outcomes.push(...(await work(codes.slice(start, start + GROUP))));
  return outcomes;
}

/** Their message arrived: they are stored some time later, when most of their first clicks are there too. */
export function queuePersist(ctx: FateContext, codes: readonly string[]): Promise<readonly PersistOutcome[]> {
  return inGroups(codes, (group) => {
    const days = openDays(ctx);
    return ctx.redis.run(
      queuePersistScript,
      [keys.buffer(), keys.toPersist(), keys.persistPurgatory(), linkStats.earliest(), ...days.keys],
      [String(ctx.clock.now() + ctx.config.get(settings.persistDelay)), ...days.args, ...group],
    );
  });
}

/** Which of these links wait in the buffer. */
export async function waitingAmong(
  { redis: { commands, topology } }: Pick<Context, "redis">,
  codes: readonly string[],
): Promise<ReadonlySet<string>> {
  if (codes.length === 0) return new Set();
  const scores = await commands.zmscore(topology.key(keys.buffer()), ...codes);
  return new Set(codes.filter((_, at) => scores[at] !== null));
}

/** Their message failed: nobody has them, and they are forgotten. */
export function abandonLinks(ctx: FateContext, codes: readonly string[]): Promise<readonly AbandonOutcome[]> {
  return inGroups(codes, (group) => {
    const days = openDays(ctx);
    return ctx.redis.run(
      abandon,
      [keys.buffer(), keys.toPersist(), keys.persistPurgatory(), linkStats.earliest(), ...days.keys],
      [...days.args, ...group],
    );
  });
}

import type { Context } from "../../jobs/context.ts";
import { declaredScripts } from "../../kernel/redis/script.ts";
import { pingSql } from "../../kernel/sql/index.ts";

/** Which of the parts that every request needs work right now. */
export interface Readiness {
  readonly redis: boolean;
  readonly sql: boolean;
  readonly scripts: boolean;
  readonly subscriber: boolean;
}

const PATIENCE = 2;

/** Asks each part; one that does not answer within two seconds counts as away. */
export async function checkReadiness(ctx: Context): Promise<Readiness> {
  const [redis, sql, scripts] = await Promise.all([
    answers(ctx, () => ctx.redis.commands.ping()),
    answers(ctx, () => pingSql(ctx.sql)),
    answers(ctx, () => knowsEveryScript(ctx)),
  ]);
  return { redis, sql, scripts, subscriber: ctx.subscriber.healthy };
}

export function isReady(readiness: Readiness): boolean {
  return Object.values(readiness).every(Boolean);
}

async function knowsEveryScript(ctx: Context): Promise<boolean> {
  const shas = declaredScripts().map((script) => script.sha);
  if (shas.length === 0) return true;
  const known = (await ctx.redis.commands.script("EXISTS", ...shas)) as number[];
  return known.every((flag) => flag === 1);
}

async function answers(ctx: Context, ask: () => Promise<unknown>): Promise<boolean> {
  const enough = new AbortController();
  const patience = ctx.clock.sleep(PATIENCE, enough.signal).then(() => false);
  const answer = Promise.resolve()
    .then(ask)
    .then((value) => value !== false)
    .catch(() => false);
  const answered = await Promise.race([answer, patience]);
  enough.abort();
  return answered;
}

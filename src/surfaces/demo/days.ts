import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { calendarOf, isoDate, parseIsoDate } from "../../mechanisms/dated-counters/index.ts";
import { touchSendStats as touches } from "../../messaging/touch/stats.ts";

/** Days that follow each other and have no history yet, both included. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

export interface DaysThere {
  readonly gaps: readonly Gap[];
  /** How many of the days that were asked for have a history already. */
  readonly there: number;
  readonly today: number;
}

/**
 * Which of the latest days the house has lived through, really or in a demo: those on which touches were counted. Today is
 * one of the days.
 */
export async function daysWithoutHistory(ctx: Context, days: number): Promise<DaysThere> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const first = today - days + 1;
  const { rows } = await sql<{ day: string }>`
    select retrieved_for as day from ${sql.table(touches.table)} where retrieved_for >= ${isoDate(first)}`.execute(
    ctx.sql.tables(),
  );
  const known = new Set(rows.map(({ day }) => parseIsoDate(day)));
  const open = await firstOpenDay(ctx);
  const isThere = (date: number) => known.has(date) || (open !== undefined && date >= open);
  const gaps: { from: number; to: number }[] = [];
  let there = 0;
  for (let date = first; date <= today; date++) {
    const last = gaps.at(-1);
    if (isThere(date)) there += 1;
    else if (last && last.to === date - 1) last.to = date;
    else gaps.push({ from: date, to: date });
  }
  return { gaps, there, today };
}

/** The earliest day whose touches are still counted in Redis. */
async function firstOpenDay({ redis }: Pick<Context, "redis">): Promise<number | undefined> {
  const held = await redis.commands.get(redis.topology.key(touches.earliest()));
  return held === null ? undefined : Number(held);
}

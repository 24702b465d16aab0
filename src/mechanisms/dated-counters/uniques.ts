import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { type Holding, isoDate, isoMonth, type StatisticsCalendar } from "./calendar.ts";
import type { RotateResult } from "./rotate.ts";
import { dropMonthsScript, retireSetScript } from "./scripts.ts";

/**
 * Who was seen in a day or month, as a set; SQL keeps how many. The larger of the row's number and the set's size is
 * stored, then one script deletes the set: a crash in between stores the same number again.
 */
export interface UniqueStats extends Holding {
  readonly name: string;
  readonly table: string;
  readonly period: "day" | "month";
  members(period: number): KeyName<"set">;
  earliest(): KeyName<"string">;
}

type UniqueContext = Pick<KernelContext, "redis" | "sql" | "clock" | "alerts">;

export async function rotateUniques(
  ctx: UniqueContext,
  plan: UniqueStats,
  options: { readonly calendar: StatisticsCalendar; readonly signal?: AbortSignal },
): Promise<RotateResult> {
  const dates: number[] = [];
  const { redis } = ctx;
  const earliest = await redis.commands.get(redis.topology.key(plan.earliest()));
  if (earliest === null) return { stop: "uninitialized", dates };
  const last =
    plan.period === "day"
      ? options.calendar.newestRotatableDate(ctx.clock.now(), plan)
      : options.calendar.newestRotatableMonth(ctx.clock.now(), plan.grace);
  for (let period = Number(earliest); period <= last; period++) {
    if (options.signal?.aborted) return { stop: "signal", dates };
    const size = await redis.commands.scard(redis.topology.key(plan.members(period)));
    const retrievedFor = plan.period === "day" ? isoDate(period) : isoMonth(period);
    const { rows } = await sql<{ inserted: boolean }>`
      insert into ${sql.table(plan.table)} (retrieved_for, retrieved_at, total)
      values (${retrievedFor}, ${timestamp(ctx.clock.now())}, ${size})
      on conflict (retrieved_for) do update set total = greatest(${sql.ref(`${plan.table}.total`)}, excluded.total)
      returning (xmax = 0) as inserted`.execute(ctx.sql.tables());
    if (!rows[0]?.inserted)
      ctx.alerts.warning(
        "stats:row_exists",
        `${plan.name} of ${retrievedFor} was stored before; the larger number stays`,
      );
    await redis.run(retireSetScript, [plan.members(period), plan.earliest()], [period]);
    dates.push(period);
  }
  return { stop: "list_exhausted", dates };
}

export interface MonthlyCounters {
  month(month: number): KeyName<"string">;
  earliest(): KeyName<"string">;
}

/** Deletes the counters of past months, which are shown and never stored; answers how many there were. */
export async function dropMonths(
  ctx: Pick<KernelContext, "redis" | "clock">,
  counters: MonthlyCounters,
  calendar: StatisticsCalendar,
): Promise<number> {
  const earliest = await ctx.redis.commands.get(ctx.redis.topology.key(counters.earliest()));
  const current = calendar.unixMonth(ctx.clock.now());
  if (earliest === null || Number(earliest) >= current) return 0;
  const past = Array.from({ length: current - Number(earliest) }, (_, index) =>
    counters.month(Number(earliest) + index),
  );
  return ctx.redis.run(dropMonthsScript, [counters.earliest(), ...past], [current]);
}

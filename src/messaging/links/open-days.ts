import type { KernelContext } from "../../kernel/context.ts";
import { calendarOf, type StatisticsCalendar } from "../../mechanisms/dated-counters/index.ts";
import { linkStats } from "./stats.ts";

/** First instants of days are found by search; a calendar asks for the same few all day long. */
const starts = new WeakMap<StatisticsCalendar, Map<number, number>>();

function startOf(calendar: StatisticsCalendar, date: number): number {
  const known = starts.get(calendar) ?? new Map<number, number>();
  starts.set(calendar, known);
  const start = known.get(date) ?? calendar.startOf(date);
  if (known.size > 8) known.clear();
  known.set(date, start);
  return start;
}

/**
 * The days on which a script may count, the newest first. Only the script sees when a link was made, so it is told of
 * all open days and picks one.
 */
export function openDays(ctx: Pick<KernelContext, "clock" | "config">): {
  readonly keys: readonly string[];
  readonly args: readonly number[];
} {
  const calendar = calendarOf(ctx);
  const now = ctx.clock.now();
  const oldest = calendar.oldestOpenDate(now, linkStats);
  const dates: number[] = [];
  for (let date = calendar.unixDate(now); date >= oldest; date--) dates.push(date);
  return {
    keys: dates.map((date) => linkStats.day(date)),
    args: dates.flatMap((date) => [date, startOf(calendar, date)]),
  };
}

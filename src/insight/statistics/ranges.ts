import type { Context } from "../../jobs/context.ts";
import {
  calendarOf,
  type DayCounts,
  isoDate,
  isoMonth,
  monthOfDate,
  parseIsoDate,
  readCounts,
  type StatsFamily,
} from "../../mechanisms/dated-counters/index.ts";
import { type Chart, drawChart } from "./charts.ts";
import { errors } from "./errors.ts";

export const GROUPS = ["day", "week", "month"] as const;
export type Group = (typeof GROUPS)[number];

/** Ten years: what lies further back is for SQL itself. */
const MOST_DAYS = 3_660;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4;

/** The days from `from` to `to`, both included, wherever their counts are; today's are as they are now. */
export async function readRange(
  ctx: Pick<Context, "redis" | "sql" | "clock" | "config">,
  family: StatsFamily,
  { from, to, group }: { readonly from: string; readonly to: string; readonly group: Group },
): Promise<Chart> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const [first, last] = [from, to].map((iso) => Math.min(dateOf(iso), today)) as [number, number];
  if (first > last || last - first >= MOST_DAYS)
    throw errors.bad_range({ message: `From ${from} to ${to} are no days, or more than ${MOST_DAYS}.` });
  const { days } = await readCounts(ctx, family, first, last + 1);
  if (group === "day") return drawChart(family, days);
  const labelOf = group === "week" ? mondayOf : monthOfDate;
  const grouped = new Map<number, DayCounts>();
  for (const [date, day] of days) {
    const label = labelOf(date);
    const held = grouped.get(label);
    grouped.set(label, held ? together(held, day, family.computed) : day);
  }
  const chart = drawChart(family, grouped);
  const labels = [...grouped.keys()].sort((one, other) => one - other);
  return { ...chart, labels: labels.map(group === "week" ? isoDate : isoMonth) };
}

function dateOf(iso: string): number {
  const date = parseIsoDate(iso);
  if (!Number.isFinite(date) || isoDate(date) !== iso) throw errors.bad_date({ message: `${iso} is not a date.` });
  return date;
}

function mondayOf(date: number): number {
  return date - ((((date - FIRST_MONDAY) % 7) + 7) % 7);
}

/** Counts are added; what was looked up at the end of a day is that of the later day. */
function together(one: DayCounts, later: DayCounts, computed: readonly string[]): DayCounts {
  const sum = (left: Readonly<Record<string, number>>, right: Readonly<Record<string, number>>) => {
    const total: Record<string, number> = { ...left };
    for (const [name, count] of Object.entries(right))
      total[name] = computed.includes(name) ? count : (total[name] ?? 0) + count;
    return total;
  };
  const events = new Set([...Object.keys(one.breakdowns), ...Object.keys(later.breakdowns)]);
  return {
    counts: sum(one.counts, later.counts),
    breakdowns: Object.fromEntries(
      [...events].map((event) => [event, sum(one.breakdowns[event] ?? {}, later.breakdowns[event] ?? {})]),
    ),
  };
}

import type { Context } from "../../jobs/context.ts";
import { calendarOf, readCounts, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { unpack } from "./chart-copies.ts";
import { deskOf } from "./chart-desk.ts";
import { type Chart, DEFAULT_SPAN, drawDay } from "./charts.ts";

export { forgetCharts } from "./chart-copies.ts";

/** The chart of the latest finished days: from a copy, or built. */
export async function readChart(ctx: Context, family: StatsFamily, days = DEFAULT_SPAN): Promise<Chart> {
  const { blob } = await deskOf(ctx).chart(family, days);
  return JSON.parse(unpack(blob)!.toString("utf8")) as Chart;
}

type Day = ReturnType<typeof drawDay>;

/** The days that may still change, today first. */
export type PartialRead = { readonly today: Day; readonly checked_at: number } & Readonly<Record<string, Day | number>>;

const NAMES = ["today", "yesterday", "two_days_ago", "three_days_ago"];

export async function readPartial(
  ctx: Pick<Context, "redis" | "sql" | "clock" | "config">,
  family: StatsFamily,
): Promise<PartialRead> {
  const now = ctx.clock.now();
  const today = calendarOf(ctx).unixDate(now);
  // What is looked up when a day ends is not known before.
  const { days } = await readCounts(ctx, { ...family, computed: [] }, today - family.held + 1, today + 1);
  const named = Array.from({ length: family.held }, (_, ago) => [
    NAMES[ago] ?? `${ago}_days_ago`,
    drawDay(days.get(today - ago)!),
  ]);
  return { ...Object.fromEntries(named), checked_at: now } as PartialRead;
}

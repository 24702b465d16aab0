import {
  type DayCounts,
  isoDate,
  type ReadCounts,
  type StatisticsCalendar,
  type StatsFamily,
} from "../../mechanisms/dated-counters/index.ts";

/** The spans that charts may have, in days. */
export const SPANS = [30, 90, 182, 365] as const;
export const DEFAULT_SPAN = 90;

/** Days from `start` up to and without `end`. */
export interface ChartSpan {
  readonly start: number;
  readonly end: number;
}

type Series = readonly number[];

/** A chart as it is written: a label a day, then a number a day for each event and each key of its breakdown. */
export type Chart = { readonly labels: readonly string[] } & Readonly<
  Record<string, readonly string[] | Series | Readonly<Record<string, Series | Readonly<Record<string, number>>>>>
>;

/** A chart ends before the days that may still change. */
export function chartSpan(calendar: StatisticsCalendar, now: number, family: StatsFamily, days: number): ChartSpan {
  const end = calendar.unixDate(now) - family.held + 1;
  return { start: end - days, end };
}

/**
 * Whether the chart may still change: its last day is not moved to SQL yet, or could still be counted on. Such a chart
 * would, if it were kept, show a wrong last day until midnight.
 */
export function isProvisional(
  calendar: StatisticsCalendar,
  now: number,
  family: StatsFamily,
  read: Pick<ReadCounts, "earliest" | "settled">,
  { end }: ChartSpan,
): boolean {
  if (!read.settled || calendar.newestRotatableDate(now, family) < end - 1) return true;
  return read.earliest !== undefined && read.earliest < end;
}

export function drawChart(family: StatsFamily, days: ReadonlyMap<number, DayCounts>): Chart {
  const dates = [...days.keys()].sort((one, other) => one - other);
  const ordered = dates.map((date) => days.get(date)!);
  const columns = [...Object.keys(family.events), ...family.computed];
  const series = columns.map((column) => [column, ordered.map(({ counts }) => counts[column] ?? 0)] as const);
  const breakdowns = Object.entries(family.events)
    .filter(([, { by }]) => by !== undefined)
    .map(([event, { sparse }]) => {
      const parts = ordered.map((day) => day.breakdowns[event] ?? {});
      const keys = [...new Set(parts.flatMap((part) => Object.keys(part)))].sort();
      const drawn = keys.map(
        (key) => [key, sparse ? seldom(parts, key) : parts.map((part) => part[key] ?? 0)] as const,
      );
      return [`${event}_breakdown`, Object.fromEntries(drawn)] as const;
    });
  return { labels: dates.map(isoDate), ...Object.fromEntries([...series, ...breakdowns]) };
}

/** By the index of the label, for keys that most days do not have. */
function seldom(parts: readonly Readonly<Record<string, number>>[], key: string): Record<string, number> {
  return Object.fromEntries(parts.flatMap((part, index) => (part[key] ? [[String(index), part[key]] as const] : [])));
}

/** One day as an object: each event, and beside it its breakdown. */
export function drawDay({ counts, breakdowns }: DayCounts): Record<string, number | Readonly<Record<string, number>>> {
  const parts = Object.entries(breakdowns).map(([event, part]) => [`${event}_breakdown`, part] as const);
  return { ...counts, ...Object.fromEntries(parts) };
}

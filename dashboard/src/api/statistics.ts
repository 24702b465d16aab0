import { useQueries } from "@tanstack/react-query";
import { now } from "../app/clock.ts";
import type { ChartRow } from "../parts/chart-card.tsx";
import { carillon } from "./carillon.ts";
import { dateAt } from "./dates.ts";
import { CALM, keyOf, LIVE, type Read } from "./reads.ts";
import { useStatisticsTimezone } from "./session.ts";

const PARTIAL = "/api/1/admin/stats/{family}/partial";
const RANGE = "/api/1/admin/stats/{family}/range";

type Counts = Readonly<Record<string, unknown>>;

/** A sum over the events of one day. */
export function countOf(counts: Counts | undefined, ...events: readonly string[]): number {
  return events.reduce((sum, event) => sum + Number(counts?.[event] ?? 0), 0);
}

/** `2026-11-16`: today in a timezone, or so many days ago. */
export const dateIn = (timezone: string, daysAgo = 0) => dateAt(now(), timezone, daysAgo);

export interface Today<F extends string> {
  readonly today: Readonly<Record<F, Counts | undefined>>;
  readonly reads: readonly Read<unknown>[];
}

/** What several families of statistics have counted today, live. */
export function useToday<const F extends string>(families: readonly F[]): Today<F> {
  const reads = useQueries({
    queries: families.map((family) => ({
      queryKey: keyOf(PARTIAL, { path: { family } }),
      queryFn: ({ signal }: { signal: AbortSignal }) => carillon.get(PARTIAL, { path: { family }, signal }),
      refetchInterval: LIVE * 1000,
    })),
  });
  const today = Object.fromEntries(families.map((family, index) => [family, reads[index]?.data?.today]));
  return { today: today as Today<F>["today"], reads };
}

type Chart = { readonly labels: readonly string[] } & Readonly<Record<string, unknown>>;

/** Even a house of yesterday shows as many days, so that a chart looks like one. */
const FEWEST_DAYS = 14;

/** How many of the latest days are worth a look: from the first on which any of these counted anything. */
export function daysCounted(...charts: readonly (Chart | undefined)[]): number {
  const spans = charts.map((chart) => {
    const days = chart?.labels.length ?? 0;
    const counts = Object.entries(chart ?? {}).filter(([name]) => name !== "labels");
    const firsts = counts.map(([, numbers]) => (Array.isArray(numbers) ? numbers.findIndex((count) => count > 0) : -1));
    return Math.max(Math.min(FEWEST_DAYS, days), ...firsts.map((first) => (first < 0 ? 0 : days - first)));
  });
  return Math.max(0, ...spans);
}

export interface Days<F extends string> {
  /** Days, oldest first, today last; undefined until all families are there. None from before anything was counted. */
  readonly labels: readonly string[] | undefined;
  /** `90 days`: how many there are. */
  readonly span: string;
  /** A number a day: the sum of these events of a family. */
  readonly series: (family: F, ...events: readonly string[]) => readonly number[];
  readonly read: Pick<Read<unknown>, "error" | "refetch">;
}

/** Several families of statistics over the days past, today included. */
export function useDays<const F extends string>(families: readonly F[], days = 90): Days<F> {
  const timezone = useStatisticsTimezone();
  const query = { from: dateIn(timezone, days - 1), to: dateIn(timezone) };
  const reads = useQueries({
    queries: families.map((family) => ({
      queryKey: keyOf(RANGE, { path: { family }, query }),
      queryFn: ({ signal }: { signal: AbortSignal }) => carillon.get(RANGE, { path: { family }, query, signal }),
      refetchInterval: CALM * 1000,
    })),
  });
  const failed = reads.find(({ error }) => error !== null);
  const isWhole = reads.every(({ data }) => data !== undefined);
  const counted = isWhole ? daysCounted(...reads.map(({ data }) => data as Chart | undefined)) : days;
  return {
    labels: isWhole ? reads[0]?.data?.labels.slice(-counted) : undefined,
    span: `${counted} days`,
    series: (family, ...events) => {
      const chart = reads[families.indexOf(family)]?.data;
      const sums = (chart?.labels ?? []).map((_, day) =>
        events.reduce((sum, event) => sum + Number((chart?.[event] as readonly number[] | undefined)?.[day] ?? 0), 0),
      );
      return sums.slice(-counted);
    },
    read: {
      error: failed?.error ?? null,
      refetch: (failed ?? reads[0]!).refetch as Read<unknown>["refetch"],
    },
  };
}

/** Series of numbers as rows of a chart. */
export function rowsOf(
  labels: readonly string[] | undefined,
  columns: Readonly<Record<string, readonly number[]>>,
): readonly ChartRow[] | undefined {
  return labels?.map((label, day) => ({
    label,
    ...Object.fromEntries(Object.entries(columns).map(([name, numbers]) => [name, numbers[day] ?? 0])),
  }));
}

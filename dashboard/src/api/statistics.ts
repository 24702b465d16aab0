import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { now } from "../app/clock.ts";
import type { ChartRow } from "../parts/chart-rows.ts";
import { carillon } from "./carillon.ts";
import { dateAt } from "./dates.ts";
import { type Days, daysCounted, type FinishedDays, joinDays, type OpenDays } from "./days.ts";
import { CALM, keyOf, LIVE, type Read } from "./reads.ts";
import { useStatisticsTimezone } from "./session.ts";

const PARTIAL = "/api/1/admin/stats/{family}/partial";
const DAILY = "/api/1/admin/stats/{family}/daily";

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

const partialOf = (family: string, every: number) => ({
  queryKey: keyOf(PARTIAL, { path: { family } }),
  queryFn: ({ signal }: { signal: AbortSignal }) => carillon.get(PARTIAL, { path: { family }, signal }),
  refetchInterval: every * 1000,
});

/** What several families of statistics have counted today, live. */
export function useToday<const F extends string>(families: readonly F[]): Today<F> {
  const reads = useQueries({ queries: families.map((family) => partialOf(family, LIVE)) });
  const today = Object.fromEntries(families.map((family, index) => [family, reads[index]?.data?.today]));
  return { today: today as Today<F>["today"], reads };
}

/** The spans that the server keeps charts of. */
export type Span = 30 | 90 | 182 | 365;

export interface Charts<F extends string> {
  /** Undefined until all families are there. */
  readonly charts: Readonly<Record<F, Days>> | undefined;
  readonly read: Pick<Read<unknown>, "error" | "refetch">;
}

/**
 * Several families of statistics over the days past, today included. Days that are over come as one answer, which the
 * server builds once a day and says "not modified" about until there is another. Only the few days that may still change
 * are counted anew each time.
 */
export function useCharts<const F extends string>(families: readonly F[], days: Span = 90): Charts<F> {
  const timezone = useStatisticsTimezone();
  const query = { days: `${days}` } as const;
  const finished = useQueries({
    queries: families.map((family) => ({
      queryKey: keyOf(DAILY, { path: { family }, query }),
      queryFn: ({ signal }: { signal: AbortSignal }) => carillon.get(DAILY, { path: { family }, query, signal }),
      refetchInterval: CALM * 1000,
      // Whoever chooses another span keeps looking at the one before until it is there.
      placeholderData: keepPreviousData,
    })),
  });
  const open = useQueries({ queries: families.map((family) => partialOf(family, CALM)) });
  const reads = [...finished, ...open];
  const failed = reads.find(({ error, data }) => error !== null && data === undefined);
  const isWhole = reads.every(({ data }) => data !== undefined);
  const join = (at: number) => joinDays(finished[at]?.data as FinishedDays, open[at]?.data as OpenDays, timezone, days);
  const joined = isWhole ? Object.fromEntries(families.map((family, at) => [family, join(at)])) : undefined;
  return {
    charts: joined as Charts<F>["charts"],
    read: {
      error: failed?.error ?? null,
      refetch: (failed ?? reads[0]!).refetch as Read<unknown>["refetch"],
    },
  };
}

export interface Sums<F extends string> {
  /** Days, oldest first, today last; undefined until all families are there. None from before anything was counted. */
  readonly labels: readonly string[] | undefined;
  /** So many of the last days may still change in one of these families, or in any. */
  readonly open: (...of: readonly F[]) => number;
  /** `90 days`: how many there are. */
  readonly span: string;
  /** A number a day: the sum of these events of a family. */
  readonly series: (family: F, ...events: readonly string[]) => readonly number[];
  /** The same for each key of an event's breakdown. */
  readonly breakdown: (family: F, event: string) => Readonly<Record<string, readonly number[]>>;
  readonly read: Charts<F>["read"];
}

/** Sums of events of several families over the days past. */
export function useDays<const F extends string>(families: readonly F[], days: Span = 90): Sums<F> {
  const { charts, read } = useCharts(families, days);
  const all: readonly Days[] = Object.values(charts ?? {});
  const counted = charts ? daysCounted(...all) : days;
  return {
    labels: all[0]?.labels.slice(-counted),
    open: (...of) => Math.max(0, ...(of.length === 0 ? families : of).map((family) => charts?.[family].open ?? 0)),
    span: `${counted} days`,
    series: (family, ...events) => {
      const chart = charts?.[family];
      const sums = (chart?.labels ?? []).map((_, day) =>
        events.reduce((sum, event) => sum + (chart?.events[event]?.[day] ?? 0), 0),
      );
      return sums.slice(-counted);
    },
    breakdown: (family, event) =>
      Object.fromEntries(
        Object.entries(charts?.[family].breakdowns[event] ?? {}).map(([key, numbers]) => [
          key,
          numbers.slice(-counted).map((count) => count ?? 0),
        ]),
      ),
    read,
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

import { dateAt } from "./dates.ts";

/** A number a day; null where it is not known before the day is over. */
export type Numbers = readonly (number | null)[];

/** The days of one family of statistics, oldest first, today last. */
export interface Days {
  readonly labels: readonly string[];
  /** So many of the last days may still change. */
  readonly open: number;
  readonly events: Readonly<Record<string, Numbers>>;
  /** By event, then by the key of its breakdown. */
  readonly breakdowns: Readonly<Record<string, Readonly<Record<string, Numbers>>>>;
}

/** Days that are over, as the server keeps them until midnight: a number for each label, or by its index. */
export type FinishedDays = { readonly labels: readonly string[] } & Readonly<Record<string, unknown>>;
/** Days that may still change, as they are now: today, yesterday and so on. */
export type OpenDays = { readonly checked_at: number } & Readonly<Record<string, unknown>>;

const AGO = ["today", "yesterday", "two_days_ago", "three_days_ago"];
const BREAKDOWN = "_breakdown";

/**
 * The last so many days: those that are over, and after them those that may still change. Around midnight one of the two
 * was asked before and the other after it; then a day that is in both is told as the finished one.
 */
export function joinDays(finished: FinishedDays, open: OpenDays, timezone: string, days: number): Days {
  const last = finished.labels.at(-1) ?? "";
  const added = openDays(open, timezone).filter(({ label }) => label > last);
  const all = [...finished.labels, ...added.map(({ label }) => label)];
  const first = Math.max(0, all.length - days);
  const whole = finished.labels.length;
  const numbers = (of: unknown, opened: (day: Readonly<Record<string, unknown>>) => number | null): Numbers => {
    const over = finished.labels.map((_, at) => Number((of as Readonly<Record<number, number>>)[at] ?? 0));
    return [...over, ...added.map(({ counts }) => opened(counts))].slice(first);
  };
  const names = Object.keys(finished).filter((name) => name !== "labels");
  const events = names.filter((name) => !name.endsWith(BREAKDOWN));
  return {
    labels: all.slice(first),
    open: all.length - Math.max(whole, first),
    events: Object.fromEntries(
      events.map((event) => {
        // What is looked up when a day ends is not among the counts of an open one.
        const opened = (counts: Readonly<Record<string, unknown>>) => (event in counts ? Number(counts[event]) : null);
        return [event, numbers(finished[event], opened)];
      }),
    ),
    breakdowns: Object.fromEntries(
      names
        .filter((name) => name.endsWith(BREAKDOWN))
        .map((name) => {
          const over = finished[name] as Readonly<Record<string, unknown>>;
          const partsOf = (counts: Readonly<Record<string, unknown>>) => (counts[name] ?? {}) as Record<string, number>;
          const keys = new Set([...Object.keys(over), ...added.flatMap(({ counts }) => Object.keys(partsOf(counts)))]);
          const columns = [...keys].map((key) => {
            const opened = (counts: Readonly<Record<string, unknown>>) => partsOf(counts)[key] ?? 0;
            return [key, numbers(over[key] ?? [], opened)] as const;
          });
          return [name.slice(0, -BREAKDOWN.length), Object.fromEntries(columns)];
        }),
    ),
  };
}

/** Oldest first. */
function openDays(open: OpenDays, timezone: string) {
  const found: { readonly label: string; readonly counts: Readonly<Record<string, unknown>> }[] = [];
  for (let ago = 0; ; ago++) {
    const counts = open[AGO[ago] ?? `${ago}_days_ago`];
    if (counts === undefined) return found.reverse();
    found.push({ label: dateAt(open.checked_at, timezone, ago), counts: counts as Readonly<Record<string, unknown>> });
  }
}

/** Even a house of yesterday shows as many days, so that a chart looks like one. */
const FEWEST_DAYS = 14;

/** How many of the latest days are worth a look: from the first on which any of these counted anything. */
export function daysCounted(...charts: readonly Days[]): number {
  const spans = charts.map(({ labels: { length }, events }) => {
    const firsts = Object.values(events).map((numbers) => numbers.findIndex((count) => (count ?? 0) > 0));
    return Math.max(Math.min(FEWEST_DAYS, length), ...firsts.map((first) => (first < 0 ? 0 : length - first)));
  });
  return Math.max(0, ...spans);
}

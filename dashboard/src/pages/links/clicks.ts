import { CALM, dateIn, daysCounted, useRead, useStatisticsTimezone } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import type { ChartSeries } from "../../parts/index.ts";

/** How clicks can be told apart. */
export const DIMENSIONS = [
  { value: "all", label: "All" },
  { value: "page", label: "By page" },
  { value: "who", label: "By who" },
  { value: "kind", label: "By kind" },
] as const;
export type Dimension = (typeof DIMENSIONS)[number]["value"];

const CLICKS = ["clicks_buffered", "clicks_direct_to_db", "clicks_delayed"] as const;
const COLORS = [SERIES.click, SERIES.push, SERIES.sms, SERIES.email, SERIES.good];
const KINDS: Readonly<Record<string, string>> = { on_click: "click", post_login: "sign-in after a click" };

const UNTOLD = "not told apart";

type Numbers = readonly number[];
type Chart = { readonly labels: readonly string[] } & Readonly<Record<string, unknown>>;

/** `on_click:home:vis=True:user=False` as what it is called in one dimension. */
function wordOf(key: string, dimension: Dimension): string {
  const [kind = "", page = "", visitor = "", user = ""] = key.split(":");
  if (dimension === "page") return page || "unknown";
  if (dimension === "kind") return KINDS[kind] ?? kind;
  if (dimension === "all") return "Clicks";
  if (user === "user=True") return "signed in";
  return visitor === "vis=True" ? "known visitor" : "nobody known";
}

/** `agent:bot` as people would say it. */
export const ruleText = (rule: string) => rule.replaceAll(":", ": ").replaceAll("_", " ");

interface Drawn {
  readonly rows: readonly ({ readonly label: string } & Readonly<Record<string, number | string>>)[] | undefined;
  readonly series: readonly ChartSeries[];
}

/** Rows and series for the sums of some words a day, the largest first; what has no colour is one of the others. */
function drawn(labels: readonly string[] | undefined, counted: number, sums: ReadonlyMap<string, number[]>): Drawn {
  const total = (numbers: Numbers) => numbers.reduce((sum, number) => sum + number, 0);
  const words = [...sums].sort(([, one], [, other]) => total(other) - total(one));
  const shown = words.slice(0, COLORS.length);
  const rest = words.slice(COLORS.length).map(([, numbers]) => numbers);
  // Fields have names of their own: words come from elsewhere and may hold anything.
  const series: ChartSeries[] = shown.map(([label], at) => ({
    name: `s${at}`,
    label,
    color: label === UNTOLD ? SERIES.other : COLORS[at]!,
  }));
  if (rest.length > 0) series.push({ name: "rest", label: `${rest.length} others`, color: SERIES.other });
  const rows = labels?.map((label, day) => ({
    label,
    ...Object.fromEntries(shown.map(([, numbers], at) => [`s${at}`, numbers[day] ?? 0])),
    ...(rest.length > 0 ? { rest: rest.reduce((sum, numbers) => sum + (numbers[day] ?? 0), 0) } : {}),
  }));
  return { rows: rows?.slice(-counted), series };
}

/** Clicks of people and uses by programs over the days past. */
export function useClicks(dimension: Dimension, days = 90) {
  const timezone = useStatisticsTimezone();
  const query = { from: dateIn(timezone, days - 1), to: dateIn(timezone) };
  const read = useRead(
    "/api/1/admin/stats/{family}/range",
    { path: { family: "touch_links" }, query },
    { every: CALM },
  );
  const chart = read.data as Chart | undefined;
  const add = (into: Map<string, number[]>, word: string, numbers: Numbers) => {
    const sums = into.get(word) ?? (chart?.labels ?? []).map(() => 0);
    for (const [day, number] of numbers.entries()) sums[day] = (sums[day] ?? 0) + number;
    into.set(word, sums);
  };
  const people = new Map<string, number[]>();
  const programs = new Map<string, number[]>();
  for (const event of CLICKS) {
    if (dimension === "all") add(people, "Clicks", (chart?.[event] ?? []) as Numbers);
    else
      for (const [key, numbers] of Object.entries((chart?.[`${event}_breakdown`] ?? {}) as Record<string, Numbers>))
        add(people, wordOf(key, dimension), numbers);
  }
  // Days whose clicks were stored without telling them apart still count.
  if (dimension !== "all") {
    const whole = (chart?.labels ?? []).map((_, day) =>
      CLICKS.reduce((sum, event) => sum + Number((chart?.[event] as Numbers | undefined)?.[day] ?? 0), 0),
    );
    const told = [...people.values()];
    const untold = whole.map((all, day) => all - told.reduce((sum, numbers) => sum + (numbers[day] ?? 0), 0));
    if (untold.some((count) => count > 0)) add(people, UNTOLD, untold);
  }
  for (const [rule, numbers] of Object.entries((chart?.robots_breakdown ?? {}) as Record<string, Numbers>))
    add(programs, ruleText(rule), numbers);
  const counted = chart ? daysCounted(chart) : days;
  return {
    read,
    span: `${counted} days`,
    people: drawn(chart?.labels, counted, people),
    programs: drawn(chart?.labels, counted, programs),
  };
}

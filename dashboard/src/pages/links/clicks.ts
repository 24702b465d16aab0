import { daysCounted, type Numbers, useCharts } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { type Drawn, drawLargest } from "../../parts/largest.ts";

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

/** Clicks of people and uses by programs over the days past. */
export function useClicks(dimension: Dimension) {
  const { charts, read } = useCharts(["touch_links"]);
  const days = charts?.touch_links;
  if (!days) return { read, span: "90 days", open: 0, people: undefined, programs: undefined };
  const add = (into: Map<string, number[]>, word: string, numbers: Numbers) => {
    const sums = into.get(word) ?? days.labels.map(() => 0);
    for (const [day, number] of numbers.entries()) sums[day] = (sums[day] ?? 0) + (number ?? 0);
    into.set(word, sums);
  };
  const people = new Map<string, number[]>();
  const programs = new Map<string, number[]>();
  for (const event of CLICKS) {
    if (dimension === "all") add(people, "Clicks", days.events[event] ?? []);
    else
      for (const [key, numbers] of Object.entries(days.breakdowns[event] ?? {}))
        add(people, wordOf(key, dimension), numbers);
  }
  // Days whose clicks were stored without telling them apart still count.
  if (dimension !== "all") {
    const whole = days.labels.map((_, day) => CLICKS.reduce((sum, event) => sum + (days.events[event]?.[day] ?? 0), 0));
    const told = [...people.values()];
    const untold = whole.map((all, day) => all - told.reduce((sum, numbers) => sum + (numbers[day] ?? 0), 0));
    if (untold.some((count) => count > 0)) add(people, UNTOLD, untold);
  }
  for (const [rule, numbers] of Object.entries(days.breakdowns.robots ?? {})) add(programs, ruleText(rule), numbers);
  const counted = daysCounted(days);
  const drawn = (sums: ReadonlyMap<string, number[]>): Drawn =>
    drawLargest(
      days.labels.slice(-counted),
      [...sums].map(([label, numbers]) => ({ label, numbers: numbers.slice(-counted) })),
      {
        most: COLORS.length,
        colorsOf: (shown) => shown.map(({ label }, at) => (label === UNTOLD ? SERIES.other : COLORS[at]!)),
        other: SERIES.other,
      },
    );
  return { read, span: `${counted} days`, open: days.open, people: drawn(people), programs: drawn(programs) };
}

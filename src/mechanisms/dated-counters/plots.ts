import type { EventPlan } from "./daily-stats.ts";

/** What a page draws of a family: some events over the days, or one event by the keys of its breakdown. */
export type Plot = { readonly title: string; readonly type: "line" | "bars" | "stacked" } & (
  | { readonly series: readonly string[] }
  | { readonly breakdown: string }
);

type Events = Readonly<Record<string, EventPlan>>;

/** The plots of a family, checked; a family that names none gets its events as lines and each breakdown stacked. */
export function plotsOf(
  family: string,
  events: Events,
  computed: readonly string[],
  plots: readonly Plot[] | undefined,
  title: string,
): readonly Plot[] {
  const broken = Object.keys(events).filter((event) => events[event]!.by !== undefined);
  if (!plots)
    return [
      { title, type: "line", series: [...Object.keys(events), ...computed] },
      ...broken.map((event): Plot => ({ title: `${title}: ${event}`, type: "stacked", breakdown: event })),
    ];
  for (const plot of plots) {
    const strange =
      "breakdown" in plot
        ? broken.includes(plot.breakdown)
          ? []
          : [plot.breakdown]
        : plot.series.filter((event) => !(event in events) && !computed.includes(event));
    if (strange.length > 0)
      throw new TypeError(`${family}: "${plot.title}" draws ${strange.join(", ")}, which it has not`);
  }
  return plots;
}

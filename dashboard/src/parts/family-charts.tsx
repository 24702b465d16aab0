import { SegmentedControl, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";
import { type Days, type Span, useCharts, useRead } from "../api/index.ts";
import { SERIES } from "../app/theme.ts";
import { ChartCard } from "./chart-card.tsx";
import { sentence } from "./figures.tsx";
import { type Drawn, drawLargest } from "./largest.ts";
import { EmptyState, ErrorState, LoadingState } from "./states.tsx";

/** What a page draws of a family of statistics, as the server declares it. */
interface Plot {
  readonly title: string;
  readonly type: "line" | "bars" | "stacked";
  readonly series?: readonly string[];
  readonly breakdown?: string;
}
interface Family {
  readonly name: string;
  readonly title: string;
  readonly charts: { readonly plots: readonly Plot[] };
}
const SPANS = [30, 90, 365] as const;
/** In the order in which they are taken; whoever comes after the last is one of the others. */
const PALETTE = [SERIES.push, SERIES.email, SERIES.sms, SERIES.click, SERIES.bad, SERIES.good] as const;
const COLORS = { most: PALETTE.length, other: SERIES.other } as const;
/** Names of events that say how it went. */
const TELLING = [
  [/^(succeeded|accepted|delivered|found|received$)/, SERIES.good],
  [/^(failed|abandoned|bounced|error|unknown|unprocessable|signature|deleted)/, SERIES.bad],
] as const;

/** Every plot that these families declare, over a span of days that the viewer chooses. */
export function FamilyCharts({ families }: { readonly families: readonly string[] }) {
  const [span, setSpan] = useState<Span>(90);
  const declared = useRead("/api/1/admin/stats");
  const known = (declared.data?.items ?? []) as unknown as readonly Family[];
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label="How many days"
        value={String(span)}
        onChange={(value) => setSpan(Number(value) as Span)}
        data={SPANS.map((days) => ({ value: String(days), label: `${days} days` }))}
        w="fit-content"
      />
      {!declared.data &&
        (declared.error ? (
          <ErrorState error={declared.error} retry={() => void declared.refetch()} />
        ) : (
          <LoadingState lines={8} />
        ))}
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
        {families.flatMap((name) => {
          const family = known.find((each) => each.name === name);
          return family ? [<FamilyPlots key={name} family={family} span={span} />] : [];
        })}
      </SimpleGrid>
    </Stack>
  );
}

function FamilyPlots({ family, span }: { readonly family: Family; readonly span: Span }) {
  const { charts, read } = useCharts([family.name], span);
  const days = charts?.[family.name];
  return family.charts.plots.map((plot) => {
    const drawn = days && drawPlot(plot, days);
    return (
      <ChartCard
        key={plot.title}
        title={plot.title}
        description={sentence(family.title)}
        type={plot.type === "line" ? "lines" : "stacked"}
        height={200}
        rows={drawn?.rows}
        open={days?.open ?? 0}
        series={drawn?.series ?? []}
        folded={drawn?.folded}
        read={read}
        empty={
          <EmptyState title="None in these days">It is drawn here as soon as there is something to count.</EmptyState>
        }
      />
    );
  });
}

/** The name of an event is ours, and says how it went; a breakdown's key is what others sent, and is shown as it is. */
function drawPlot(plot: Plot, { labels, events, breakdowns }: Days): Drawn {
  if (plot.breakdown !== undefined) {
    const parts = Object.entries(breakdowns[plot.breakdown] ?? {});
    const columns = parts.map(([label, numbers]) => ({ label, numbers }));
    return drawLargest(labels, columns, { ...COLORS, colorsOf: () => PALETTE });
  }
  const columns = (plot.series ?? []).map((event) => ({
    event,
    label: sentence(event.replaceAll("_", " ")),
    numbers: events[event] ?? [],
    isLevel: event === "total",
  }));
  return drawLargest(labels, columns, {
    ...COLORS,
    colorsOf: (shown) => colorsOf(shown.map(({ event }) => event)),
  });
}

/** The first that went well is green, the first that went badly red; everything else takes the next colour. */
function colorsOf(names: readonly string[]): readonly string[] {
  const told = new Map<string, string>();
  for (const [pattern, color] of TELLING) {
    const first = names.find((name) => pattern.test(name));
    if (first !== undefined) told.set(first, color);
  }
  const free = PALETTE.filter((color) => ![...told.values()].includes(color)).values();
  return names.map((name) => told.get(name) ?? free.next().value ?? SERIES.other);
}

import { SegmentedControl, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";
import { CALM, dateIn, useRead, useStatisticsTimezone } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { ChartCard, type ChartSeries, EmptyState, ErrorState } from "../index.ts";

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
type Chart = { readonly labels: readonly string[] } & Readonly<Record<string, unknown>>;
type Numbers = readonly number[] | Readonly<Record<string, number>>;

const SPANS = [30, 90, 365] as const;
/** In the order in which they are taken; whoever comes after the last is one of the others. */
const PALETTE = [SERIES.push, SERIES.email, SERIES.sms, SERIES.click, SERIES.bad, SERIES.good] as const;
/** Names of events that say how it went. */
const TELLING = [
  [/^(succeeded|accepted|delivered|found|received$)/, SERIES.good],
  [/^(failed|abandoned|bounced|error|unknown|unprocessable|signature|deleted)/, SERIES.bad],
] as const;

/** Every plot that the families of a channel declare, over a span of days that the viewer chooses. */
export function FamilyCharts({ families }: { readonly families: readonly string[] }) {
  const [span, setSpan] = useState<number>(90);
  const declared = useRead("/api/1/admin/stats");
  const known = (declared.data?.items ?? []) as unknown as readonly Family[];
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label="How many days"
        value={String(span)}
        onChange={(value) => setSpan(Number(value))}
        data={SPANS.map((days) => ({ value: String(days), label: `${days} days` }))}
        w="fit-content"
      />
      {declared.error && !declared.data && <ErrorState error={declared.error} retry={() => void declared.refetch()} />}
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
        {families.flatMap((name) => {
          const family = known.find((each) => each.name === name);
          return family ? [<FamilyPlots key={name} family={family} span={span} />] : [];
        })}
      </SimpleGrid>
    </Stack>
  );
}

function FamilyPlots({ family, span }: { readonly family: Family; readonly span: number }) {
  const timezone = useStatisticsTimezone();
  const read = useRead(
    "/api/1/admin/stats/{family}/range",
    { path: { family: family.name }, query: { from: dateIn(timezone, span - 1), to: dateIn(timezone) } },
    { every: CALM },
  );
  const chart = read.data as Chart | undefined;
  return family.charts.plots.map((plot) => {
    const { rows, series } = drawn(plot, chart);
    return (
      <ChartCard
        key={plot.title}
        title={plot.title}
        description={sentence(family.title)}
        type={plot.type === "line" ? "lines" : "stacked"}
        height={200}
        rows={rows}
        series={series}
        read={read}
        empty={
          <EmptyState title="None in these days">It is drawn here as soon as there is something to count.</EmptyState>
        }
      />
    );
  });
}

/** Rows and series of a plot. Fields have names of their own: a breakdown's key may be any text, with dots in it. */
function drawn(plot: Plot, chart: Chart | undefined) {
  if (!chart) return { rows: undefined, series: [] };
  const parts = plot.breakdown === undefined ? undefined : (chart[`${plot.breakdown}_breakdown`] as object | undefined);
  const named: readonly (readonly [string, Numbers])[] =
    plot.series?.map((event) => [event, (chart[event] as Numbers | undefined) ?? []] as const) ??
    Object.entries(parts ?? {});
  const columns = named
    .map(([name, numbers]) => ({ name, numbers: chart.labels.map((_, day) => Number(numbers[day as never] ?? 0)) }))
    .map((column) => ({ ...column, total: column.numbers.reduce((sum, count) => sum + count, 0) }))
    .filter(({ total }) => total > 0)
    .sort((one, other) => other.total - one.total);
  const shown = columns.slice(0, PALETTE.length);
  const rest = columns.slice(PALETTE.length);
  // The keys of a breakdown tell nothing by their names.
  const colors = plot.breakdown === undefined ? colorsOf(shown.map(({ name }) => name)) : PALETTE;
  const series: ChartSeries[] = shown.map(({ name }, at) => ({
    name: `s${at}`,
    // The name of an event is ours; a breakdown's key is what others sent, and is shown as it is.
    label: plot.breakdown === undefined ? sentence(name.replaceAll("_", " ")) : name,
    color: colors[at]!,
    isLevel: name === "total",
  }));
  if (rest.length > 0) series.push({ name: "rest", label: `${rest.length} others`, color: SERIES.other });
  const rows = chart.labels.map((label, day) => ({
    label,
    ...Object.fromEntries(shown.map(({ numbers }, at) => [`s${at}`, numbers[day] ?? 0])),
    ...(rest.length > 0 ? { rest: rest.reduce((sum, { numbers }) => sum + (numbers[day] ?? 0), 0) } : {}),
  }));
  return { rows, series };
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

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

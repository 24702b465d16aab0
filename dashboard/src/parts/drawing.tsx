import "@mantine/charts/styles.layer.css";
import { AreaChart, ChartTooltip } from "@mantine/charts";
import type { ChartCardProps, ChartRow, ChartSeries } from "./chart-card.tsx";
import { numberText } from "./figures.tsx";

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });

/** Marks of the axis are exact: 1.65K, not 1.7K. */
const tick = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 2 });

/** `2026-11-16` as people write it; anything else as it is. */
function dayText(label: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(label) ? day.format(new Date(`${label}T00:00:00Z`)) : label;
}

interface DrawingProps {
  readonly rows: readonly ChartRow[];
  readonly series: readonly ChartSeries[];
  readonly type: NonNullable<ChartCardProps["type"]>;
  /** The last row is a day that is not over. */
  readonly isOpen: boolean;
}

/** The chart itself, apart from its card because of the weight of what draws it. */
export default function Drawing({ rows, series, type, isOpen }: DrawingProps) {
  const last = isOpen ? rows.at(-1) : undefined;
  // The curve ends with the last whole day; the open one keeps its place on the axis.
  const data = last ? [...rows.slice(0, -1), { label: last.label }] : [...rows];
  return (
    <AreaChart
      h="100%"
      data={data as (ChartRow & Record<string, unknown>)[]}
      dataKey="label"
      type={type === "stacked" ? "stacked" : "default"}
      curveType="linear"
      connectNulls={false}
      withDots={false}
      // Parts of a whole have no outline: that of a part of nothing would hide the part below it.
      strokeWidth={type === "stacked" ? 0 : 1.75}
      fillOpacity={type === "stacked" ? 0.75 : 0.08}
      gridAxis="x"
      tickLine="none"
      series={series.map(({ name, label, color }) => ({ name, label, color }))}
      xAxisProps={{ tickFormatter: dayText, minTickGap: 40, padding: { right: 8 } }}
      yAxisProps={{ width: 56, allowDecimals: false, tickFormatter: (value: number) => tick.format(value) }}
      areaProps={{ isAnimationActive: false }}
      referenceDots={last ? marksOf(last, series, type) : []}
      tooltipProps={{
        filterNull: false,
        content: ({ label }) => {
          const row = rows.find((each) => each.label === label);
          return row ? <Told row={row} series={series} isOpen={row === last} /> : null;
        },
      }}
    />
  );
}

/** What there is of the open day so far: a ring each, as high as the curve would be if the day ended now. */
function marksOf(row: ChartRow, series: readonly ChartSeries[], type: DrawingProps["type"]) {
  let below = 0;
  return series.flatMap(({ name, color }) => {
    const value = Number(row[name] ?? 0);
    below += value;
    // A part of nothing would hide the ring of the part below it.
    if (value === 0) return [];
    const y = type === "stacked" ? below : value;
    return { x: row.label, y, r: 3.5, fill: "var(--surface)", stroke: color, ifOverflow: "extendDomain" as const };
  });
}

function Told({
  row,
  series,
  isOpen,
}: {
  readonly row: ChartRow;
  readonly series: readonly ChartSeries[];
  readonly isOpen: boolean;
}) {
  return (
    <ChartTooltip
      label={isOpen ? `${dayText(row.label)}, so far` : dayText(row.label)}
      payload={series.map(({ name, color }) => ({ name, dataKey: name, color, payload: row }))}
      series={series.map(({ name, label, color }) => ({ name, label, color }))}
      valueFormatter={(value) => numberText(value)}
    />
  );
}

import "@mantine/charts/styles.layer.css";
import { AreaChart, ChartTooltip } from "@mantine/charts";
import type { ChartCardProps } from "./chart-card.tsx";
import { type ChartRow, type ChartSeries, openNote } from "./chart-rows.ts";
import { numberText } from "./figures.tsx";

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });

/** Marks of the axis are exact: 1.65K, not 1.7K. */
const tick = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 2 });

/** `2026-11-16` as people write it; anything else as it is. */
function dayText(label: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(label) ? day.format(new Date(`${label}T00:00:00Z`)) : label;
}

interface DrawingProps extends Pick<ChartCardProps, "series" | "open"> {
  readonly rows: readonly ChartRow[];
  readonly type: NonNullable<ChartCardProps["type"]>;
}

/** How the field is called that has a series on the days that may still change. */
const OPEN = " open";

/** The chart itself, apart from its card because of the weight of what draws it. */
export default function Drawing({ rows, series, type, open }: DrawingProps) {
  const last = open > 0 ? rows.at(-1) : undefined;
  const lighter = (last ? series : []).map((each) => ({ ...each, name: each.name + OPEN }));
  return (
    <AreaChart
      h="100%"
      data={rows.map((row, at) => shaded(row, series, at - (rows.length - open)))}
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
      series={[...series, ...lighter].map(({ name, label, color }) => ({ name, label, color }))}
      xAxisProps={{ tickFormatter: dayText, minTickGap: 40, padding: { right: 8 } }}
      yAxisProps={{ width: 56, allowDecimals: false, tickFormatter: (value: number) => tick.format(value) }}
      areaProps={({ name }) => ({
        isAnimationActive: false,
        ...(name.endsWith(OPEN) ? (type === "stacked" ? { ...LIGHT, stackId: OPEN } : { ...LIGHT, ...DASHED }) : {}),
      })}
      referenceDots={last ? marksOf(last, series, type) : []}
      tooltipProps={{
        filterNull: false,
        content: ({ label }) => {
          const at = rows.findIndex((each) => each.label === label);
          const row = rows[at];
          return row ? <Told row={row} series={series} note={openNote(at, rows.length, open)} /> : null;
        },
      }}
    />
  );
}

const LIGHT = { fillOpacity: 0.45, strokeOpacity: 0.6 } as const;
const DASHED = { strokeDasharray: "3 3" } as const;

/** Days that may still change are series of their own; the last whole day is in both, so that one begins where the other ends. */
function shaded(row: ChartRow, series: readonly ChartSeries[], since: number): Record<string, number | string> {
  const values: Record<string, number | string> = { label: row.label };
  for (const { name } of series) {
    const value = row[name];
    if (value === undefined) continue;
    if (since < 0) values[name] = value;
    if (since >= -1) values[name + OPEN] = value;
  }
  return values;
}

/** What there is of today so far: a ring each, as high as the curve would be if the day ended now. */
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
  note,
}: {
  readonly row: ChartRow;
  readonly series: readonly ChartSeries[];
  readonly note: string | undefined;
}) {
  return (
    <ChartTooltip
      label={note ? `${dayText(row.label)}, ${note}` : dayText(row.label)}
      payload={series.map(({ name, color }) => ({ name, dataKey: name, color, payload: row }))}
      series={series.map(({ name, label, color }) => ({ name, label, color }))}
      valueFormatter={(value) => numberText(value)}
    />
  );
}

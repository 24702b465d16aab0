import "@mantine/charts/styles.layer.css";
import { AreaChart } from "@mantine/charts";
import type { ChartCardProps, ChartRow, ChartSeries } from "./chart-card.tsx";
import { numberText } from "./figures.tsx";

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });

/** `2026-11-16` as people write it; anything else as it is. */
function dayText(label: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(label) ? day.format(new Date(`${label}T00:00:00Z`)) : label;
}

interface DrawingProps {
  readonly rows: readonly ChartRow[];
  readonly series: readonly ChartSeries[];
  readonly type: NonNullable<ChartCardProps["type"]>;
  readonly height: number;
}

/** The chart itself, apart from its card because of the weight of what draws it. */
export default function Drawing({ rows, series, type, height }: DrawingProps) {
  return (
    <AreaChart
      h={height}
      data={rows as ChartRow[] & Record<string, unknown>[]}
      dataKey="label"
      type={type === "stacked" ? "stacked" : "default"}
      curveType="monotone"
      withDots={false}
      strokeWidth={1.5}
      fillOpacity={type === "stacked" ? 0.55 : 0.08}
      gridAxis="x"
      tickLine="none"
      series={series.map(({ name, label, color }) => ({ name, label, color }))}
      valueFormatter={(value) => numberText(value)}
      xAxisProps={{ tickFormatter: dayText, minTickGap: 40 }}
      yAxisProps={{ width: 44, tickFormatter: (value: number) => numberText(value, "short") }}
      areaProps={{ isAnimationActive: false }}
    />
  );
}

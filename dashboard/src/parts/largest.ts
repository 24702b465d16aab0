import type { Numbers } from "../api/days.ts";
import type { ChartRow, ChartSeries } from "./chart-rows.ts";

export interface ChartColumn {
  readonly label: string;
  /** A number for each label of the chart; null where it is not known. */
  readonly numbers: Numbers;
  readonly isLevel?: boolean;
}

export interface Drawn {
  readonly rows: readonly ChartRow[];
  readonly series: readonly ChartSeries[];
  /** What the last series has together, one by one. */
  readonly folded: readonly ChartSeries[];
}

const totalOf = ({ numbers }: ChartColumn) => numbers.reduce<number>((sum, number) => sum + (number ?? 0), 0);

interface Palette<C> {
  /** So many have a colour of their own. */
  readonly most: number;
  readonly colorsOf: (shown: readonly C[]) => readonly string[];
  /** The colour of all others together. */
  readonly other: string;
}

/** The largest columns as rows and series of a chart, as many as there are colours; all others are one more. */
export function drawLargest<C extends ChartColumn>(
  labels: readonly string[],
  columns: readonly C[],
  { most, colorsOf, other }: Palette<C>,
): Drawn {
  const counted = columns.filter((column) => totalOf(column) > 0);
  const ordered = counted.sort((one, next) => totalOf(next) - totalOf(one));
  const colors = colorsOf(ordered.slice(0, most));
  // Fields have names of their own: what others sent may be any text, with dots in it.
  const all = ordered.map(({ label, isLevel }, at) => ({
    name: `s${at}`,
    label,
    color: colors[at] ?? other,
    isLevel,
  }));
  const folded = all.slice(most);
  const rest = { name: "rest", label: `${folded.length} others`, color: other };
  const rows = labels.map((label, day) => {
    const row: Record<string, number | string> & { label: string } = { label };
    for (const [at, { numbers }] of ordered.entries()) {
      const number = numbers[day] ?? null;
      if (number !== null) row[`s${at}`] = number;
      if (at >= most) row.rest = Number(row.rest ?? 0) + (number ?? 0);
    }
    return row;
  });
  return { rows, series: [...all.slice(0, most), ...(folded.length > 0 ? [rest] : [])], folded };
}

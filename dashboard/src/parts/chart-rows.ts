export interface ChartSeries {
  /** The field of each row that holds its numbers. */
  readonly name: string;
  readonly label: string;
  /** One of `SERIES` of the theme. */
  readonly color: string;
  /** A level that stays from day to day, whose days must not be added up: the latest is told. */
  readonly isLevel?: boolean;
}

/** A day with its numbers; one that is not known yet is left out. */
export type ChartRow = { readonly label: string } & Readonly<Record<string, number | string>>;

/** What is to be said about a day, where so many of the last days may still change: today is not over, those before it are not final. */
export function openNote(at: number, days: number, open: number): string | undefined {
  if (at < days - open) return undefined;
  return at === days - 1 ? "so far" : "not final";
}

interface Charted {
  readonly rows: readonly ChartRow[];
  readonly series: readonly ChartSeries[];
  /** What the last series has together, where it is several. */
  readonly folded: readonly ChartSeries[];
  readonly open: number;
}

/** What a chart shows as rows of a file: nothing folded, and days that may still change marked. */
export function tableOf({ rows, series, folded, open }: Charted): readonly (readonly (string | number)[])[] {
  const columns = folded.length > 0 ? [...series.slice(0, -1), ...folded] : series;
  return [
    ["date", ...columns.map(({ label }) => label), "open"],
    ...rows.map((row, at) => [
      row.label,
      ...columns.map(({ name }) => (row[name] === undefined ? "" : Number(row[name]))),
      openNote(at, rows.length, open) ?? "",
    ]),
  ];
}

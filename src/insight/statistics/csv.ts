import type { Chart } from "./charts.ts";

/** A program for tables would take such a cell for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A chart as a table: a row a day, a column for each event and, named `event:key`, for each key of its breakdown. */
export function csvOf({ labels, ...rest }: Chart): string {
  const columns = Object.entries(rest).flatMap(([name, values]): [string, (at: number) => number][] => {
    if (Array.isArray(values)) return [[name, (at) => Number(values[at] ?? 0)]];
    const event = name.replace(/_breakdown$/, "");
    return Object.entries(values).map(([key, part]) => {
      const counts = part as Readonly<Record<number, number>>;
      return [`${event}:${key}`, (at) => counts[at] ?? 0];
    });
  });
  const rows = labels.map((label, at) => [label, ...columns.map(([, valueAt]) => String(valueAt(at)))]);
  return [["date", ...columns.map(([name]) => cell(name))], ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

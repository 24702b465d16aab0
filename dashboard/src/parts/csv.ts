/** A program for tables would take such a cell for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cellOf(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A table as a file that programs for tables read: RFC 4180, and no cell of it a formula. */
export function csvOf(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cellOf).join(",")}\r\n`).join("");
}

/** `messages-over-90-days.csv`: what a file about this is called. */
export function csvName(title: string): string {
  const words = title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ["chart"];
  return `${words.join("-")}.csv`;
}

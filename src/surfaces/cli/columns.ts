/** Rows as text in columns; the last column is as wide as it needs to be. */
export function columns(rows: readonly (readonly string[])[], indent = ""): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  return rows.map((row) =>
    `${indent}${row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index]!))).join("  ")}`.trimEnd(),
  );
}

/** Unix seconds as people write times, in UTC. */
export function readableTime(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "never";
  return `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

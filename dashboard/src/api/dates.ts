/** `2026-11-16`: the date of a moment in a timezone, or so many days before. Days are counted, not hours: not all have 24. */
export function dateAt(unixSeconds: number, timezone: string, daysAgo = 0): string {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
  const midnight = new Date(`${format.format(unixSeconds * 1000)}T00:00:00Z`);
  midnight.setUTCDate(midnight.getUTCDate() - daysAgo);
  return midnight.toISOString().slice(0, 10);
}

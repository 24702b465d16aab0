import { type RawBuilder, sql } from "kysely";

/**
 * Times are `timestamptz` in SQL and unix seconds everywhere else. Reading needs no call: the engines' parsers use
 * `parseTimestamp`. Writing and comparing go through `timestamp`.
 */
export function timestamp(unixSeconds: number): RawBuilder<number> {
  return sql<number>`to_timestamp(${unixSeconds}::float8)`;
}

/** The text Postgres sends for a timestamptz, such as `2026-03-08 10:00:00.123456+00`, as unix seconds. */
export function parseTimestamp(text: string): number {
  const found = /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?([+-]\d\d)(?::(\d\d))?$/.exec(text);
  if (!found) return Date.parse(text) / 1000;
  const [, year, month, day, hour, minute, second, fraction = "0", offsetHours, offsetMinutes = "0"] = found;
  const offset = Number(offsetHours) * 3600 + Math.sign(Number(`${offsetHours}1`)) * Number(offsetMinutes) * 60;
  const whole = Date.UTC(+year!, +month! - 1, +day!, +hour!, +minute!, +second!) / 1000 - offset;
  return Number((whole + Number(fraction)).toFixed(6));
}

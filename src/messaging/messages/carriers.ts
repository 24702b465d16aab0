import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { calendarOf, isoDate } from "../../mechanisms/dated-counters/index.ts";

/** What one provider did with the messages of a channel on one day. */
export interface Carried {
  readonly date: string;
  readonly channel: string;
  readonly provider: string;
  /** How often each step was noted: `accepted`, `failed`, and whatever else a channel tells of its provider. */
  readonly steps: Readonly<Record<string, number>>;
}

/**
 * Who carried what on the latest days of the statistics, today included, as far as it reached SQL. Counted from the stories
 * of messages; a step that is stored twice counts once.
 */
export async function carriedBy(
  ctx: Pick<Context, "sql" | "clock" | "config">,
  days: number,
): Promise<readonly Carried[]> {
  const calendar = calendarOf(ctx);
  const today = calendar.unixDate(ctx.clock.now());
  const dates = Array.from({ length: days }, (_, at) => today - days + 1 + at);
  const { rows } = await sql<{ date: number; channel: string; provider: string; step: string; count: number }>`
    select day.date, noted.channel, noted.provider, noted.step, count(distinct (noted.uid, noted.at))::float8 as count
    from unnest(
      ${dates}::integer[], ${dates.map((date) => calendar.startOf(date))}::float8[],
      ${dates.map((date) => calendar.startOf(date + 1))}::float8[]
    ) as day (date, begins, ends)
    join message_steps as noted on noted.at >= to_timestamp(day.begins) and noted.at < to_timestamp(day.ends)
    where noted.provider is not null
    group by 1, 2, 3, 4 order by 1 desc, 2, 3, 4`.execute(ctx.sql.tables());
  const carried = new Map<string, Carried & { readonly steps: Record<string, number> }>();
  for (const { date, channel, provider, step, count } of rows) {
    const name = `${date} ${channel} ${provider}`;
    const held = carried.get(name) ?? { date: isoDate(date), channel, provider, steps: {} };
    held.steps[step] = count;
    carried.set(name, held);
  }
  return [...carried.values()];
}

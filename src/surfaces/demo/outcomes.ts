import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";

export interface Outcome {
  readonly channel: string;
  /** The last step of a message: delivered, failed, abandoned. A fast provider confirms before we noted that it accepted. */
  readonly outcome: string;
  readonly count: number;
}

/** What became of the messages of a time, by channel. */
export async function outcomesBetween(
  ctx: Pick<Context, "sql">,
  from: number,
  to: number,
): Promise<readonly Outcome[]> {
  const { rows } = await sql<Outcome>`
    select channel, step as outcome, count(*)::integer as count from (
      select distinct on (uid) uid, channel, step from message_steps
      where channel <> 'touch' and at >= to_timestamp(${from}::float8) and at < to_timestamp(${to}::float8)
      order by uid, step in ('queued', 'accepted'), at desc
    ) as last group by channel, step order by channel, count desc`.execute(ctx.sql.tables());
  return rows;
}

import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";

export interface Outcome {
  readonly channel: string;
  /** The last step of a message: delivered, failed, abandoned. */
  readonly outcome: string;
  readonly count: number;
}

/** Steps that are not the last: where time skips, a message may take several of them in one moment. */
const ON_THE_WAY = ["queued", "dispatched", "accepted", "retried", "updated", "receipt_due"];

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
      order by uid, step = any(${ON_THE_WAY}::text[]), at desc
    ) as last group by channel, step order by channel, count desc`.execute(ctx.sql.tables());
  return rows;
}

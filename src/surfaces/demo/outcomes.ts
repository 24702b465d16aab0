import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";

export interface Outcome {
  readonly channel: string;
  /** The last step of a message, or for one that just ended, how: delivered, sent, failed, abandoned. */
  readonly outcome: string;
  readonly count: number;
}

/** Steps that are not the last, in their order: where time skips, a message may take several of them in one moment. */
const ON_THE_WAY = ["queued", "dispatched", "accepted", "retried", "updated"];

/** What became of the messages of a time, by channel. */
export async function outcomesBetween(
  ctx: Pick<Context, "sql">,
  from: number,
  to: number,
): Promise<readonly Outcome[]> {
  const { rows } = await sql<Outcome>`
    select channel, outcome, count(*)::integer as count from (
      select distinct on (uid) uid, channel, case step when 'ended' then split_part(detail, ' ', 1) else step end as outcome
      from message_steps
      where channel <> 'touch' and at >= to_timestamp(${from}::float8) and at < to_timestamp(${to}::float8)
      order by uid, step = any(${ON_THE_WAY}::text[]), at desc, array_position(${ON_THE_WAY}::text[], step) desc
    ) as last group by channel, outcome order by channel, count desc`.execute(ctx.sql.tables());
  return rows;
}

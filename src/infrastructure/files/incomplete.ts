import { sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import type { StopReason } from "./sweep.ts";
import type { FileTables } from "./tables.ts";
import { announceOrLeave, ENDED } from "./uploads.ts";

const BATCH = 10;
/** A request that completed an upload needs some seconds to queue its job; after a minute it must have died. */
const QUEUEING_TAKES_AT_MOST = 60;
const LEFT_OVER_AFTER = 86_400;

/** Ends uploads whose time is over, queues jobs that a dead process did not, and removes uploads that nobody removed. */
export async function sweepIncompleteUploads(
  ctx: JobContext,
  deleteUploads: (uids: readonly string[]) => Promise<void>,
): Promise<StopReason> {
  for (const step of [expireBatch, announceBatch, leftOverBatches(deleteUploads)]) {
    let after = 0;
    for (;;) {
      if (ctx.shuttingDown()) return "signal";
      if (ctx.budget.exhausted()) return "time_exhausted";
      const last = await step(ctx, after);
      if (last === undefined) break;
      after = last;
    }
  }
  return "list_exhausted";
}

/** Handles the next few uploads with an id above `after`; answers the last id, or nothing when there was none. */
type Step = (ctx: JobContext, after: number) => Promise<number | undefined>;

const expireBatch: Step = async (ctx, after) => {
  const now = ctx.clock.now();
  const expired = await ctx.sql
    .tables<FileTables>()
    .updateTable("s3_file_uploads")
    .set({ outcome: "expired", completed_at: timestamp(now) })
    .where("id", "in", (query) =>
      query
        .selectFrom("s3_file_uploads")
        .select("id")
        .where("completed_at", "is", null)
        .where("expires_at", "<", timestamp(now))
        .where("id", ">", after)
        .orderBy("id")
        .limit(BATCH)
        .forUpdate(),
    )
    .returning(ENDED)
    .execute();
  await announceOrLeave(ctx, expired);
  return lastId(expired);
};

const announceBatch: Step = async (ctx, after) => {
  const forgotten = await ctx.sql
    .tables<FileTables>()
    .selectFrom("s3_file_uploads")
    .select(ENDED)
    .where("completed_at", "<", timestamp(ctx.clock.now() - QUEUEING_TAKES_AT_MOST))
    .where("job_enqueued_at", "is", null)
    .where("id", ">", after)
    .orderBy("id")
    .limit(BATCH)
    .execute();
  await announceOrLeave(ctx, forgotten);
  return lastId(forgotten);
};

function leftOverBatches(deleteUploads: (uids: readonly string[]) => Promise<void>): Step {
  return async (ctx, after) => {
    const leftOver = await ctx.sql
      .tables<FileTables>()
      .selectFrom("s3_file_uploads")
      .select([
        "id",
        "uid",
        "outcome",
        sql<string>`case outcome when 'completed' then success_job_name else failure_job_name end`.as("job"),
      ])
      .where("completed_at", "<", timestamp(ctx.clock.now() - LEFT_OVER_AFTER))
      .where("job_enqueued_at", "is not", null)
      .where("id", ">", after)
      .orderBy("id")
      .limit(BATCH)
      .execute();
    for (const { uid, outcome, job } of leftOver)
      ctx.alerts.warning("files:upload_left_over", `${uid} (${outcome}) is a day old, and ${job} did not remove it`);
    if (leftOver.length > 0) await deleteUploads(leftOver.map(({ uid }) => uid));
    return lastId(leftOver);
  };
}

function lastId(rows: readonly { readonly id: number }[]): number | undefined {
  return rows.length === 0 ? undefined : Math.max(...rows.map(({ id }) => id));
}

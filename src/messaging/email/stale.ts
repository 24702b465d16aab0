import type { Context, JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { Pending } from "../../mechanisms/pending-set/index.ts";
import { type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { failureJob } from "./callbacks.ts";
import type { PendingMail } from "./entries.ts";
import { keys } from "./keys.ts";
import { awaiting } from "./line.ts";
import { closeStale } from "./scripts.ts";
import { settings } from "./settings.ts";

const BATCH = 100;

/**
 * Gives up on mails without a receipt. Nothing is held between reading and closing, and closing asks whether the mail is
 * still the one that was read: a run that dies between the two leaves everything to the next.
 */
export async function detectStale(ctx: JobContext): Promise<StopReason> {
  const report = await startRun<"abandoned">(ctx, keys.staleReport);
  const before = report.startedAt - ctx.config.get(settings.receiptTimeout);
  let abandoned = 0;
  const stopReason = await (async (): Promise<StopReason> => {
    for (;;) {
      if (ctx.shuttingDown()) return "signal";
      if (ctx.budget.exhausted()) return "time_exhausted";
      const members = await ctx.redis.commands.zrangebyscore(
        ctx.redis.topology.key(keys.pending()),
        "-inf",
        before,
        "LIMIT",
        0,
        BATCH,
      );
      if (members.length === 0) return "list_exhausted";
      // Members without a sound hash are cleared away here, and told of.
      const { results } = await awaiting.get(ctx, members);
      abandoned += await closeMails(
        ctx,
        results.flatMap((one) => one ?? []),
      );
    }
  })();
  await report.finish({ stopReason, counts: { abandoned } });
  return stopReason;
}

/** Ends the waiting of these mails, and tells their failure jobs. Answers how many it ended. */
export async function closeMails(
  ctx: Pick<Context, "redis" | "clock">,
  mails: readonly Pending<PendingMail>[],
): Promise<number> {
  if (mails.length === 0) return 0;
  const now = ctx.clock.now();
  const info = { step: "receipt", error_identifier: "ReceiptTimeout", retryable: false, extra: null } as const;
  const items = mails.flatMap(({ member, dueAt, value }) => [
    member,
    String(dueAt),
    value.uid,
    failureJob(value, info, now),
  ]);
  const closed = await ctx.redis.run(closeStale, [keys.pending(), jobKeys.hot()], items);
  return closed.filter((code) => code === 1).length;
}

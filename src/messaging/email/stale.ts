import type { Context, JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
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
  const { commands, topology } = ctx.redis;
  let abandoned = 0;
  /** Mails that could not be closed: later pages begin behind them. */
  let stuck = 0;
  const stopReason = await (async (): Promise<StopReason> => {
    for (;;) {
      if (ctx.shuttingDown()) return "signal";
      if (ctx.budget.exhausted()) return "time_exhausted";
      const set = topology.key(keys.pending());
      const members = await commands.zrangebyscore(set, "-inf", before, "LIMIT", stuck, BATCH);
      if (members.length === 0) return "list_exhausted";
      // Members without a sound hash are cleared away here, and told of.
      const { results } = await awaiting.get(ctx, members);
      const closed = await closeMails(
        ctx,
        results.flatMap((one) => one ?? []),
      );
      abandoned += closed.abandoned;
      stuck += closed.stuck;
    }
  })();
  await report.finish({ stopReason, counts: { abandoned } });
  return stopReason;
}

/** Ends the waiting of these mails, and tells their failure jobs. Answers how many it ended, and how many it cannot. */
export async function closeMails(
  ctx: Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts">,
  mails: readonly Pending<PendingMail>[],
): Promise<{ readonly abandoned: number; readonly stuck: number }> {
  const now = ctx.clock.now();
  const info = { step: "receipt", error_identifier: "ReceiptTimeout", retryable: false, extra: null } as const;
  const closable: Pending<PendingMail>[] = [];
  const items: string[] = [];
  for (const mail of mails)
    try {
      items.push(mail.member, String(mail.dueAt), mail.value.uid, failureJob(mail.value, info, now));
      closable.push(mail);
    } catch (error) {
      ctx.alerts.error(error, `the mail ${mail.value.uid} awaits a receipt and cannot be given up`);
    }
  const stuck = mails.length - closable.length;
  if (closable.length === 0) return { abandoned: 0, stuck };
  const codes = await ctx.redis.run(closeStale, [keys.pending(), jobKeys.hot()], items);
  const closed = closable.filter((_, at) => codes[at] === 1);
  noteSteps(
    ctx,
    closed.map(({ value: { uid } }) => ({ channel: "email", uid, at: now, step: "timed_out" })),
  );
  return { abandoned: closed.length, stuck };
}

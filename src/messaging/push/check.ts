import { runAlone } from "../../jobs/alone.ts";
import type { JobContext } from "../../jobs/context.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { type Entry, purgatoryQueue } from "../../mechanisms/purgatory-queue/index.ts";
import { MAX_PUSH_RECEIPTS, type ReceiptOutcome } from "../../providers/push.ts";
import { type CheckEntry, checkEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { MOST_HELD, NoKwargs, runLine } from "./line.ts";
import { failureEvent } from "./settlement.ts";
import { pushReceiptStats, type ReceiptEvent } from "./stats.ts";
import { failureJob, successJob } from "./story.ts";

/**
 * Asking what became of notifications.
 *
 *   cold ──rested──▶ hot ──claim──▶ purgatory ──request──▶ receipt ──settle──▶ success job
 *    ▲                                              └────▶ failure ──settle──▶ failure job ──▶ given up
 *    └──────────────────────────retry──────────────────────────────────────────────┘
 *
 * Asking has no effect on anybody's device, so a run that dies is simply repeated from its purgatory: every callback is queued by the
 * step that takes its ticket out of there, and so once.
 */
export const checkQueue = purgatoryQueue({
  queue: keys.hot(),
  purgatory: keys.ticketPurgatory(),
  codec: checkEntry,
});

export const checkReceipts: Runner<typeof NoKwargs> = defineRunner({
  name: "runners.push.check",
  category: 2,
  kwargs: NoKwargs,
  doc: "Asks the provider what became of notifications whose ticket has rested, and queues their callbacks.",
  async run(ctx) {
    await runAlone(ctx, checkReceipts, { lock: keys.checkLock(), queues: [keys.hot()], work: checkHot });
  },
});

function checkHot(ctx: JobContext, lock: Lock) {
  return runLine<CheckEntry, ReceiptOutcome, ReceiptEvent>(ctx, lock, {
    runner: checkReceipts.name,
    queue: checkQueue,
    report: keys.checkReport,
    handledCount: "num_checked",
    stats: pushReceiptStats,
    groupSize: Math.min(MAX_PUSH_RECEIPTS, MOST_HELD / 2),
    ask: (group) => receiptsOf(ctx, group),
    handle({ raw, value }, outcome) {
      const { uid, attempt_initially_queued_at: queuedAt, provider } = value;
      if (outcome.ok) {
        const becomes = { job: successJob(ctx, value, outcome.receipt) };
        const note = { uid, step: "confirmed", provider };
        return { outcome: "succeeded", settled: { raw, queuedAt, becomes, event: "succeeded", note } };
      }
      if (outcome.credentials) return "refused";
      const becomes = { job: failureJob(ctx, value, outcome) };
      const event = failureEvent(pushReceiptStats, outcome.identifier);
      const note = { uid, step: "failed", provider, detail: outcome.identifier };
      return {
        outcome: outcome.retryable ? "failed_transiently" : "failed_permanently",
        settled: { raw, queuedAt, becomes, event, note },
      };
    },
  });
}

/** One request per provider that took any of these; entries with the same ticket share its receipt. */
async function receiptsOf(ctx: JobContext, group: readonly Entry<CheckEntry>[]): Promise<ReceiptOutcome[]> {
  const idsOf = new Map<string | null, Set<string>>();
  for (const { value } of group) {
    const provider = value.provider ?? null;
    idsOf.set(provider, (idsOf.get(provider) ?? new Set()).add(value.push_ticket.id));
  }
  const found = new Map(
    await Promise.all(
      [...idsOf].map(
        async ([provider, ids]) => [provider, await ctx.providers.push.receipts([...ids], provider)] as const,
      ),
    ),
  );
  return group.map(({ value }) => {
    const outcome = found.get(value.provider ?? null)?.get(value.push_ticket.id);
    return outcome ?? { ...NOT_READY };
  });
}

const NOT_READY: ReceiptOutcome = {
  ok: false,
  identifier: "NotReadyYet",
  subidentifier: null,
  retryable: true,
  extra: null,
  receipt: null,
};

import { runAlone } from "../../jobs/alone.ts";
import type { JobContext } from "../../jobs/context.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { type Lock, unlessFenced } from "../../mechanisms/lock/index.ts";
import { MAX_ITEMS_PER_CALL } from "../../mechanisms/purgatory-queue/index.ts";
import { type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { checkReceipts } from "./check.ts";
import { keys } from "./keys.ts";
import { NoKwargs } from "./line.ts";
import { type Cursor, coldToHot } from "./scripts.ts";
import { settings } from "./settings.ts";

const START: Cursor = { score: "-inf", skip: 0 };
/** Seconds that the clock of whoever queued a ticket may be ahead of ours. */
const MOST_SKEW = 300;

/** The name is historical: tickets go from cold to hot, never the other way. */
export const ticketHotToCold: Runner<typeof NoKwargs> = defineRunner({
  name: "runners.push.ticket_hot_to_cold",
  category: 2,
  kwargs: NoKwargs,
  doc: "Makes tickets hot that have rested long enough for their receipt to be there.",
  async run(ctx) {
    let moved = 0;
    await runAlone(ctx, ticketHotToCold, {
      lock: keys.coldToHotLock(),
      async work(run, lock) {
        const walked = await moveRested(run, lock);
        moved = walked.moved;
        return walked.stopReason;
      },
    });
    if (moved > 0) ctx.jobs.nudge(checkReceipts, {});
  },
});

/**
 * Walks the cold set once, from its oldest score to the cutoff. Tickets that came back keep their old score but rest anew, so
 * they are looked at and left; the cursor counts how many, and no payload leaves Redis.
 */
async function moveRested(
  ctx: JobContext,
  lock: Lock,
): Promise<{ readonly moved: number; readonly stopReason: StopReason }> {
  const run = await startRun(ctx, keys.coldToHotReport);
  const cutoff = (run.startedAt - ctx.config.get(settings.receiptDelay)).toFixed(6);
  const latest = (run.startedAt + MOST_SKEW).toFixed(6);
  let cursor = START;
  let moved = 0;
  let stopReason: StopReason | undefined;
  while (stopReason === undefined) {
    if (ctx.shuttingDown()) stopReason = "signal";
    else if (ctx.budget.exhausted()) stopReason = "time_exhausted";
    else {
      const stretch = unlessFenced(
        await ctx.redis.run(
          coldToHot,
          [keys.cold(), keys.hot(), lock.fence.key],
          [lock.fence.lockId, cutoff, latest, MAX_ITEMS_PER_CALL, cursor.score, cursor.skip],
        ),
      );
      moved += stretch.moved;
      cursor = stretch.cursor;
      if (stretch.looked < MAX_ITEMS_PER_CALL) stopReason = "list_exhausted";
    }
  }
  // After a lost lock the report is the next holder's.
  if (!lock.signal.aborted) await run.finish({ stopReason, counts: { num_moved: moved } });
  return { moved, stopReason };
}

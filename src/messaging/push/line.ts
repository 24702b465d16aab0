import { z } from "zod";
import type { JobContext } from "../../jobs/context.ts";
import type { StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { type Lock, unlessFenced } from "../../mechanisms/lock/index.ts";
import { type Entry, type PurgatoryQueue, runBatches, Standing } from "../../mechanisms/purgatory-queue/index.ts";
import { type ReportKey, type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { type Pace, sendThroughWindow } from "../../mechanisms/settling-window/index.ts";
import { settings } from "./settings.ts";
import { type Settled, settleAll } from "./settlement.ts";

export const NoKwargs = z.strictObject({});
/** The most entries that a run holds at once. */
export const MOST_HELD = 600;

/** What an answer means for its entry. `refused`: the provider refuses us, so the entry goes back where it came from. */
export type Handled<Event extends string> = { readonly outcome: Outcome; readonly settled: Settled<Event> } | "refused";
type Outcome = "succeeded" | "failed_permanently" | "failed_transiently";

/** A job that takes entries from a queue, asks the provider about them, and settles each by the answer. */
export interface LinePlan<T, Answer, Event extends string> {
  readonly runner: string;
  readonly queue: PurgatoryQueue<T>;
  readonly report: ReportKey;
  /** What the report calls the number of entries that were asked about. */
  readonly handledCount: string;
  readonly stats: StatsFamily<Readonly<Record<Event, object>>>;
  /** The most entries in one request. */
  readonly groupSize: number;
  readonly pace?: Pace;
  ask(group: readonly Entry<T>[]): Promise<readonly Answer[]>;
  handle(entry: Entry<T>, answer: Answer): Handled<Event>;
}

/**
 * One run under its lock: entries go through the window, the next ones while the last are being settled, until the queue is
 * empty, the time is over or the provider refuses us. Whatever was not handed out then returns to the head of the queue in order. A run whose lock is lost
 * (its context says `shuttingDown` then) asks nothing more, settles what was asked, and leaves the rest where it lies.
 */
export async function runLine<T, Answer, Event extends string>(
  ctx: JobContext,
  lock: Lock,
  plan: LinePlan<T, Answer, Event>,
): Promise<StopReason> {
  const { queue } = plan;
  const run = await startRun(ctx, plan.report);
  const limit = ctx.config.get(settings.maxPerRun) || Number.POSITIVE_INFINITY;
  const counts = { succeeded: 0, failed_permanently: 0, failed_transiently: 0 };
  let asked = 0;
  let taken = 0;
  let refused = false;
  const spent = () => ctx.budget.exhausted() || asked >= limit;

  const { stopReason } = await runBatches(ctx, {
    runner: plan.runner,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: spent,
    claim: (first) => queue.claimBatch(ctx, lock.fence, first, Math.min(MOST_HELD, limit - asked)),
    async handle({ size }) {
      const items = await queue.read(ctx, 0, size);
      const standing = new Standing(items);
      taken += size;
      const { unsent } = await sendThroughWindow<Entry<T>, Handled<Event>>(ctx, {
        items,
        window: ctx.config.get(settings.window),
        groupSize: plan.groupSize,
        perSecond: plan.pace,
        stop: () => refused || ctx.shuttingDown() || ctx.budget.exhausted(),
        // What follows from an answer is worked out as it comes, while those before it are still being settled.
        send: async (group) => {
          const answers = await plan.ask(group);
          return answers.map((answer, at) => plan.handle(group[at]!, answer));
        },
        refill: {
          below: (MOST_HELD * 2) / 3,
          async fetch() {
            if (taken >= limit) return "none";
            const more = await queue.fetchMore(ctx, lock.fence, MOST_HELD, limit - taken);
            // Whoever lost the lock settles what was asked; the rest is the next holder's.
            if (!more.ok || more.moved === 0) return "none";
            taken += more.moved;
            standing.join(more.entries);
            return more.entries;
          },
        },
        async settle(pairs) {
          const settled: Settled<Event>[] = [];
          const leaving: Entry<T>[] = [];
          for (const { item, answer: handled } of pairs)
            if (handled === "refused") refused = true;
            else {
              asked += 1;
              counts[handled.outcome] += 1;
              settled.push(handled.settled);
              leaving.push(item);
            }
          const lastOfHead = standing.lastOfHead(leaving)?.raw;
          const place = { purgatory: queue.purgatory, fence: lock.fence, lastOfHead };
          await settleAll(ctx, place, plan.stats, settled);
          standing.leave(leaving);
        },
      });
      if (!refused && unsent.length === 0) return undefined;
      // What a lost lock leaves in the purgatory is the next holder's, who begins with it.
      if (lock.signal.aborted) return "signal";
      unlessFenced(await queue.putBack(ctx, lock.fence));
      if (refused) return "credentials";
      return ctx.shuttingDown() ? "signal" : "time_exhausted";
    },
  });
  // So is the report.
  if (lock.signal.aborted) return stopReason;
  const named = Object.entries(counts).map(([outcome, count]) => [`num_${outcome}`, count]);
  await run.finish({ stopReason, counts: { [plan.handledCount]: asked, ...Object.fromEntries(named) } });
  return stopReason;
}

import type { Context } from "../../jobs/context.ts";
import { type DailyStats, Tally } from "../../mechanisms/dated-counters/index.ts";
import { DECISION_MS } from "../../mechanisms/decision/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import { type CheckEntry, checkEntry, type SendEntry, sendEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { decideTries } from "./scripts.ts";
import { sendPush } from "./send.ts";
import { settings } from "./settings.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";
import type { FailureStory } from "./story.ts";

/** What a failed try leads to. `final`: it could not have been tried again. */
export type Verdict = "retry" | "abandon" | "final";

type PolicyContext = Pick<Context, "redis" | "clock" | "config" | "alerts" | "log" | "metrics" | "jobs">;

const STEPS = { retry: "retried", abandon: "abandoned" } as const;

/** What both stages count of tries. */
type TryStats = DailyStats<{ readonly retried: Record<never, never>; readonly abandoned: Record<never, never> }>;

interface Wish {
  readonly uid: string;
  readonly decision: "retry" | "abandon";
  readonly flag: string;
  readonly next: string | Buffer;
  readonly score: number;
  readonly queuedAt: number;
}

/**
 * Tries again or gives up, as every failure job has to do for failures that may pass. Repeating the call for the same try
 * changes nothing and answers what was decided then. At most 500 failures.
 */
export async function retryOrAbandon(
  ctx: PolicyContext,
  failures: readonly Pick<FailureStory, "attempt" | "failure_info">[],
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = failures.map(() => "final");
  const open = failures.map(({ attempt, failure_info }, at) => ({ attempt, at, retryable: failure_info.retryable }));
  const sends = open.flatMap(({ attempt, at, retryable }) =>
    retryable && attempt.aud === "send" ? [{ at, wish: sendAgain(ctx, attempt, at) }] : [],
  );
  const checks = open.flatMap(({ attempt, at, retryable }) =>
    retryable && attempt.aud === "check" ? [{ at, wish: checkAgain(ctx, attempt) }] : [],
  );
  const decide = async (waiting: string, stats: TryStats, wishes: readonly { at: number; wish: Wish }[]) => {
    const decided = await decideAll(
      ctx,
      waiting,
      stats,
      wishes.map(({ wish }) => wish),
    );
    for (const [index, { at }] of wishes.entries()) verdicts[at] = decided[index]!;
  };
  await Promise.all([decide(keys.retrying(), pushTicketStats, sends), decide(keys.cold(), pushReceiptStats, checks)]);
  const due = sends.flatMap(({ wish }) => (wish.decision === "retry" ? [wish.score] : []));
  if (due.length > 0) await ctx.jobs.enqueue(sendPush, {}, { delay: Math.max(0, Math.min(...due) - ctx.clock.now()) });
  return verdicts;
}

/** Between two notifications that failed together: Redis orders equal scores by their bytes, and nobody may overtake. */
const APART = 0.000_001;

function sendAgain(ctx: PolicyContext, attempt: SendEntry, place: number): Wish {
  const now = ctx.clock.now();
  const delays = ctx.config.get(settings.retryDelays);
  const delay = delays[attempt.retry];
  const young = now - attempt.initially_queued_at <= ctx.config.get(settings.maxAge);
  return {
    decision: delay !== undefined && young ? "retry" : "abandon",
    uid: attempt.uid,
    flag: flagOf(attempt, "send"),
    next: sendEntry.encode({ ...attempt, retry: attempt.retry + 1, last_queued_at: now }),
    score: now + (delay ?? 0) + place * APART,
    queuedAt: attempt.initially_queued_at,
  };
}

/** It keeps its place in the cold set, and rests anew. */
function checkAgain(ctx: PolicyContext, attempt: CheckEntry): Wish {
  const now = ctx.clock.now();
  const young = now - attempt.attempt_initially_queued_at <= ctx.config.get(settings.maxAge);
  return {
    decision: attempt.retry < ctx.config.get(settings.receiptRetries) && young ? "retry" : "abandon",
    uid: attempt.uid,
    flag: flagOf(attempt, "check"),
    next: checkEntry.encode({ ...attempt, retry: attempt.retry + 1, last_queued_at: now }),
    score: attempt.initially_queued_at,
    queuedAt: attempt.attempt_initially_queued_at,
  };
}

function flagOf({ uid, retry }: SendEntry | CheckEntry, stage: "send" | "check"): string {
  return keys.decided({ message_uid: uid, stage, try: retry });
}

async function decideAll(
  ctx: PolicyContext,
  waiting: string,
  stats: TryStats,
  wishes: readonly Wish[],
): Promise<readonly Verdict[]> {
  if (wishes.length === 0) return [];
  const tally = new Tally(ctx);
  const args = wishes.flatMap(({ decision, next, score, queuedAt: at }) => [
    decision,
    next,
    score,
    ...tally.block((counting) => counting.incr(stats, decision === "retry" ? "retried" : "abandoned", { at })),
  ]);
  const decided = await ctx.redis.run(
    decideTries,
    [waiting, ...wishes.map(({ flag }) => flag), ...tally.keys],
    [DECISION_MS, wishes.length, ...args],
  );
  noteSteps(
    ctx,
    decided.flatMap(({ fresh, decision }, at): Note[] =>
      fresh ? [{ channel: "push", uid: wishes[at]!.uid, step: STEPS[decision] }] : [],
    ),
  );
  return decided.map(({ decision }) => decision);
}

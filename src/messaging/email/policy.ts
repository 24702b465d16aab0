import type { Context } from "../../jobs/context.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { DECISION_MS } from "../../mechanisms/decision/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import { type EmailFailure, suppressAfterFailure } from "../contacts/service.ts";
import type { FailureStory } from "./callbacks.ts";
import { nudgeByName } from "./enqueue.ts";
import { type Attempt, attemptEntry, LONGEST_ENTRY } from "./entries.ts";
import { keys } from "./keys.ts";
import { laneOf } from "./line.ts";
import { decide } from "./scripts.ts";
import { settings } from "./settings.ts";
import { emailSendStats } from "./stats.ts";

type PolicyContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts" | "jobs">;

export interface Verdict {
  /** The mail gets another try. */
  readonly wantedToRetry: boolean;
}

/**
 * Decides failures: again or given up. What is not retryable is decided already and changes nothing here. A repeated
 * callback gets the verdict of the first one. At most 500 stories, in one script.
 */
export async function decideFailures(
  ctx: PolicyContext,
  stories: readonly FailureStory[],
): Promise<readonly Verdict[]> {
  const verdicts = stories.map((): Verdict => ({ wantedToRetry: false }));
  const tries = stories.flatMap(({ email, info }, at) =>
    info.retryable && email.aud === "send" ? [{ at, attempt: email as Attempt }] : [],
  );
  if (tries.length === 0) return verdicts;
  const now = ctx.clock.now();
  const delays = ctx.config.get(settings.retryDelays);
  const maxAge = ctx.config.get(settings.retryAge);
  const tally = new Tally(ctx);
  let soonest = Number.POSITIVE_INFINITY;
  const items = tries.flatMap(({ attempt }) => {
    const due = now + (delays[attempt.retry] ?? 0);
    const last_queued_at = Math.max(now, attempt.initially_queued_at);
    const next = attemptEntry.encode({ ...attempt, retry: attempt.retry + 1, last_queued_at });
    const again =
      attempt.retry < delays.length &&
      now - attempt.initially_queued_at <= maxAge &&
      // An entry that others wrote may only just have fitted.
      Buffer.byteLength(next) <= LONGEST_ENTRY;
    if (again) soonest = Math.min(soonest, due);
    const block = tally.block((stats) =>
      stats.incr(emailSendStats, again ? "retried" : "abandoned", { at: attempt.initially_queued_at }),
    );
    return [again ? "retry" : "abandon", laneOf(attempt), again ? next : "", due.toFixed(6), ...block];
  });
  const flags = tries.map(({ attempt }) =>
    keys.decided({ message_uid: attempt.uid, stage: "send", try: attempt.retry }),
  );
  const decided = await ctx.redis.run(
    decide,
    [keys.retrying(), keys.urgentRetrying(), ...flags, ...tally.keys],
    [tries.length, DECISION_MS, ...items],
  );
  if (soonest <= now) nudgeByName(ctx, "runners.emails.send");
  for (const [index, { decision }] of decided.entries())
    verdicts[tries[index]!.at] = { wantedToRetry: decision === "retry" };
  noteSteps(
    ctx,
    decided.flatMap(({ fresh, decision }, index) => {
      const { uid, retry } = tries[index]!.attempt;
      const step = decision === "retry" ? "retried" : "abandoned";
      return fresh ? [{ channel: "email" as const, uid, at: now, step, detail: `try ${retry + 1}` }] : [];
    }),
  );
  return verdicts;
}

/**
 * What every failure job owes: the decision about another try, and the suppression of addresses that bounced or complained.
 * Both may be repeated without harm.
 */
export async function handleFailures(ctx: Context, stories: readonly FailureStory[]): Promise<readonly Verdict[]> {
  const verdicts = await decideFailures(ctx, stories);
  await suppressAfterFailure(ctx, stories.flatMap(receiptFailureOf));
  return verdicts;
}

function receiptFailureOf({ email, info }: FailureStory): readonly EmailFailure[] {
  const type = info.error_identifier;
  if (email.aud !== "pending" || (type !== "Bounce" && type !== "Complaint")) return [];
  const { message_id: messageId, email: address } = email as { message_id: string; email: string };
  return [{ type, email: address, messageId, ...(info.extra === null ? {} : { extra: info.extra }) }];
}

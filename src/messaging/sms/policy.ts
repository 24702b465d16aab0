import type { Context } from "../../jobs/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { DECISION_MS } from "../../mechanisms/decision/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import type { FailureStory, PendingObject } from "./callbacks.ts";
import { nudgeByName, nudgeSend } from "./enqueue.ts";
import { type SmsEntry, smsEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { decidePending, decideSend } from "./scripts.ts";
import { settings } from "./settings.ts";
import { smsPollingStats, smsSendStats } from "./stats.ts";

type PolicyContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts" | "jobs">;

const STEPS = { retry: "retried", abandon: "abandoned" } as const;

/** Failures that leave open whether the provider took the text: a gateway's 504 says no more than a cut line does. */
const UNANSWERED = new Set(["NetworkError", "ServerError"]);

/** How often a silent message is asked about before it is given up. */
const MAX_SILENCES = 4;

export interface Verdict {
  /** The text gets another try, or another question to the provider. */
  readonly wantedToRetry: boolean;
  /** False: newer information came in between, so this failure means nothing any more. */
  readonly succeeded: boolean;
}

/**
 * Decides failures: again or given up. What is not retryable is decided already and changes nothing here. A repeated
 * callback gets the verdict of the first one. At most 500 stories, one script a stage.
 */
export async function decideFailures(
  ctx: PolicyContext,
  stories: readonly FailureStory[],
): Promise<readonly Verdict[]> {
  const verdicts = stories.map((): Verdict => ({ wantedToRetry: false, succeeded: true }));
  const sends: { at: number; entry: SmsEntry; unanswered: boolean }[] = [];
  const silences: { at: number; pending: PendingObject }[] = [];
  for (const [at, { sms, failure_info }] of stories.entries()) {
    if (!failure_info.retryable) continue;
    if (sms.aud === "send") sends.push({ at, entry: sms, unanswered: UNANSWERED.has(failure_info.identifier) });
    else silences.push({ at, pending: sms });
  }
  for (const [index, verdict] of (await decideSends(ctx, sends)).entries()) verdicts[sends[index]!.at] = verdict;
  for (const [index, verdict] of (await decideSilences(ctx, silences)).entries())
    verdicts[silences[index]!.at] = verdict;
  return verdicts;
}

async function decideSends(
  ctx: PolicyContext,
  sends: readonly { readonly entry: SmsEntry; readonly unanswered: boolean }[],
): Promise<readonly Verdict[]> {
  if (sends.length === 0) return [];
  const now = ctx.clock.now();
  const delays = ctx.config.get(settings.retryDelays);
  const maxAge = ctx.config.get(settings.retryAge);
  const tally = new Tally(ctx);
  let soonest = Number.POSITIVE_INFINITY;
  const items = sends.flatMap(({ entry, unanswered }) => {
    const again = entry.retry < delays.length && now - entry.initially_queued_at <= maxAge;
    const due = now + (delays[entry.retry] ?? 0);
    if (again) soonest = Math.min(soonest, due);
    const next: SmsEntry = {
      ...entry,
      retry: entry.retry + 1,
      last_queued_at: now,
      ...(unanswered ? { unanswered_since: entry.unanswered_since ?? entry.last_queued_at } : {}),
    };
    const block = tally.block((stats) =>
      stats.incr(smsSendStats, again ? "retried" : "abandoned", { at: entry.initially_queued_at }),
    );
    return [again ? "retry" : "abandon", again ? smsEntry.encode(next) : "", due.toFixed(6), ...block];
  });
  const flags = sends.map(({ entry }) => keys.decided({ message_uid: entry.uid, stage: "send", try: entry.retry }));
  const decided = await ctx.redis.run(
    decideSend,
    [keys.retrying(), ...flags, ...tally.keys],
    [sends.length, DECISION_MS, ...items],
  );
  noteSteps(
    ctx,
    decided.flatMap(({ fresh, decision }, at): Note[] =>
      fresh ? [{ channel: "sms", uid: sends[at]!.entry.uid, step: STEPS[decision] }] : [],
    ),
  );
  if (soonest <= now) nudgeSend(ctx);
  return decided.map(({ decision }) => ({ wantedToRetry: decision === "retry", succeeded: true }));
}

async function decideSilences(
  ctx: PolicyContext,
  silences: readonly { readonly pending: PendingObject }[],
): Promise<readonly Verdict[]> {
  if (silences.length === 0) return [];
  const now = ctx.clock.now();
  const maxAge = ctx.config.get(settings.retryAge);
  const tally = new Tally(ctx);
  const items = silences.flatMap(({ pending }) => {
    const again = pending.num_failures < MAX_SILENCES && now - pending.send_initially_queued_at <= maxAge;
    const block = tally.block((stats) =>
      stats.incr(smsPollingStats, again ? "queued_for_recovery" : "abandoned", {
        extra: String(pending.num_failures - 1),
        at: pending.send_initially_queued_at,
      }),
    );
    return [again ? "retry" : "abandon", pending.message_resource.sid, pending.num_changes, ...block];
  });
  const flags = silences.map(({ pending }) =>
    keys.decided({ message_uid: pending.uid, stage: "pending", try: pending.num_failures }),
  );
  const decided = await ctx.redis.run(
    decidePending,
    [keys.pending(), quarantineOf(keys.pending()), keys.recovery(), ...flags, ...tally.keys],
    ["num_changes", "", keys.pending(), now.toFixed(6), randomToken(), silences.length, DECISION_MS, ...items],
  );
  noteSteps(
    ctx,
    decided.flatMap(({ fresh, decision }, at): Note[] =>
      fresh
        ? [
            {
              channel: "sms",
              uid: silences[at]!.pending.uid,
              step: decision === "retry" ? "asked_about" : STEPS[decision],
            },
          ]
        : [],
    ),
  );
  if (decided.some(({ applied, decision }) => applied && decision === "retry"))
    nudgeByName(ctx, "runners.sms.receipt_recovery");
  return decided.map(({ applied, decision }) => ({
    wantedToRetry: applied && decision === "retry",
    succeeded: applied,
  }));
}

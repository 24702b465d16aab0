import type { Context } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { ScriptArgument } from "../../kernel/redis/index.ts";
import { type Counting, Kinds } from "../../mechanisms/dated-counters/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import type { Entry } from "../../mechanisms/purgatory-queue/index.ts";
import type { SmsFailure, SmsOutcome } from "../../providers/sms.ts";
import { statusCallbackUrl } from "./addresses.ts";
import { failureJob, resourceOf, successJob } from "./callbacks.ts";
import { type PendingSms, pendingHash, SID, type SmsEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { sendQueue } from "./line.ts";
import type { Delivery } from "./look-up.ts";
import { commitSend } from "./scripts.ts";
import { settings } from "./settings.ts";
import { smsSendStats } from "./stats.ts";

type SettleContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts">;

export interface Sent extends Delivery {
  readonly entry: Entry<SmsEntry>;
}

/** Beyond the age at which a text is still tried: a sid that old is looked for by nobody. */
const SID_GRACE = 3_600;

export type SendCount = "pending" | "succeeded" | "failed_permanently" | "failed_transiently";

/** Writes down what the provider said to texts, in one script. Answers what to count for the run's report. */
export async function settleSent(ctx: SettleContext, sent: readonly Sent[]): Promise<readonly SendCount[]> {
  if (sent.length === 0) return [];
  const now = ctx.clock.now();
  const first = statusCallbackUrl(ctx.config) === undefined ? settings.silenceWithoutCallbacks : settings.silence;
  const due = now + ctx.config.get(first);
  const dueText = due.toFixed(6);
  const kinds = new Kinds(ctx);
  const items: ScriptArgument[] = [];
  for (const { entry: one, sid = "", unansweredSince, outcome: told } of sent) {
    const { raw, value } = one;
    const outcome = usable(told);
    const kind = kinds.of(kindOf(outcome), value.initially_queued_at, (stats) => countOutcome(stats, value, outcome));
    if (outcome.ok && outcome.state === "pending") {
      const hash = pendingHash.encode(pendingOf(value, outcome, now));
      items.push(raw, "pending", outcome.resource.sid, dueText, kind, hash.length);
      for (const part of hash) items.push(part);
      items.push("");
    } else {
      const entry = unansweredSince === undefined ? value : { ...value, unanswered_since: unansweredSince };
      items.push(raw, "job", sid, 0, kind, 0, callbackOf(entry, outcome, now));
    }
  }
  const forgetBefore = now - ctx.config.get(settings.retryAge) - SID_GRACE;
  const results = await ctx.redis.run(
    commitSend,
    [keys.sendPurgatory(), keys.pending(), jobKeys.hot(), keys.recentSids(), ...kinds.keys],
    [now.toFixed(6), forgetBefore.toFixed(6), kinds.count, ...kinds.blocks, ...items],
  );
  const twice = sent.filter((_, at) => results[at] === -2);
  if (twice.length > 0) {
    const reason = "the provider gave it the sid of another message";
    ctx.alerts.error(new Error(`${twice.length} texts: ${reason}`));
    await sendQueue.quarantine(
      ctx,
      twice.map(({ entry }) => ({ raw: entry.raw, reason })),
    );
  }
  const applied = sent.filter((_, at) => results[at] === 1);
  noteSteps(ctx, applied.map(stepOf));
  return applied.map(({ outcome }) => countOf(usable(outcome)));
}

function stepOf({ entry, outcome: told, provider = null }: Sent): Note {
  const outcome = usable(told);
  const note = { channel: "sms", uid: entry.value.uid, provider } as const;
  if (outcome.ok) {
    const step = outcome.state === "pending" ? "accepted" : "ended";
    return { ...note, step, detail: outcome.resource.status };
  }
  const { identifier, subidentifier } = outcome;
  return { ...note, step: "failed", detail: subidentifier === null ? identifier : `${identifier} ${subidentifier}` };
}

/** A message whose sid has no known form cannot be followed: that is an answer which nobody understands. */
function usable(outcome: SmsOutcome): SmsOutcome {
  if (!outcome.ok || outcome.state !== "pending" || SID.test(outcome.resource.sid)) return outcome;
  const extra = "the provider took the text under a sid of unknown form";
  return { ok: false, identifier: "InternalError", subidentifier: null, retryable: false, extra };
}

function countOf(outcome: SmsOutcome): SendCount {
  if (outcome.ok) return outcome.state === "pending" ? "pending" : "succeeded";
  return outcome.retryable ? "failed_transiently" : "failed_permanently";
}

function pendingOf(entry: SmsEntry, outcome: SmsOutcome & { ok: true }, now: number): PendingSms {
  const resource = resourceOf(outcome.resource);
  return {
    aud: "pending",
    uid: entry.uid,
    send_initially_queued_at: entry.initially_queued_at,
    message_resource_created_at: now,
    message_resource_last_updated_at: now,
    message_resource_sid: resource.sid,
    message_resource_status: resource.status,
    message_resource_error_code: resource.error_code,
    message_resource_date_updated: resource.date_updated,
    failure_job_last_called_at: null,
    num_failures: 0,
    num_changes: 0,
    phone_number: entry.phone_number,
    body: entry.body,
    failure_job: entry.failure_job,
    success_job: entry.success_job,
  };
}

function callbackOf(entry: SmsEntry, outcome: SmsOutcome, now: number): string {
  if (outcome.ok)
    return successJob(entry, { createdAt: now, succeededAt: now, resource: resourceOf(outcome.resource) }, now);
  const { identifier, subidentifier, retryable, extra } = outcome;
  return failureJob(entry, { action: "send", identifier, subidentifier, retryable, extra }, now);
}

/** Outcomes of one kind count the same. */
const kindOf = (outcome: SmsOutcome): string =>
  outcome.ok ? `${outcome.state} ${outcome.resource.status}` : `failed ${outcome.identifier} ${outcome.subidentifier}`;

function countOutcome(stats: Counting, { initially_queued_at: at }: SmsEntry, outcome: SmsOutcome): void {
  if (outcome.ok) {
    const extra = outcome.resource.status;
    stats.incr(smsSendStats, outcome.state === "pending" ? "succeeded_pending" : "succeeded_immediate", { extra, at });
  } else countFailure(stats, outcome, at);
}

function countFailure(stats: Counting, { identifier, subidentifier }: SmsFailure, at: number): void {
  const extra = subidentifier ?? "none";
  switch (identifier) {
    case "ApplicationErrorRatelimit":
      stats.incr(smsSendStats, "failed_due_to_application_error_ratelimit", { extra, at });
      break;
    case "ApplicationErrorOther":
      stats.incr(smsSendStats, "failed_due_to_application_error_other", { extra, at });
      break;
    case "ClientError404":
      stats.incr(smsSendStats, "failed_due_to_client_error_other", { extra: "404", at });
      break;
    case "ClientErrorOther":
      stats.incr(smsSendStats, "failed_due_to_client_error_other", { extra, at });
      break;
    case "ServerError":
      stats.incr(smsSendStats, "failed_due_to_server_error", { extra, at });
      break;
    case "ClientError429":
      stats.incr(smsSendStats, "failed_due_to_client_error_429", { at });
      break;
    case "InternalError":
      stats.incr(smsSendStats, "failed_due_to_internal_error", { at });
      break;
    case "NetworkError":
      stats.incr(smsSendStats, "failed_due_to_network_error", { at });
      break;
    default:
      identifier satisfies never;
  }
}

import type { Context } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { type Counting, Kinds } from "../../mechanisms/dated-counters/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import type { Entry, Head, Malformed } from "../../mechanisms/purgatory-queue/index.ts";
import type { EmailOutcome } from "../../providers/email.ts";
import { errorText } from "../../providers/failure.ts";
import type { Carried } from "../../providers/provider-chain.ts";
import { failureJob } from "./callbacks.ts";
import type { Unwritten } from "./compose.ts";
import { type Attempt, newsEntry, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { awaiting, lanes } from "./line.ts";
import { commitSend } from "./scripts.ts";
import { closeMails } from "./stale.ts";
import { emailSendStats } from "./stats.ts";

type SettleContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts">;

/** A mail with what became of it: not written, refused, or taken. */
export interface Sent {
  readonly entry: Entry<Attempt>;
  readonly outcome: Carried<EmailOutcome> | Unwritten;
}

export type SendCount = "attempted" | "templated" | "accepted" | "failed_permanently" | "failed_transiently";

/** The provider gave the id of a mail that still waits for its receipt to another one. */
const CONFLICT = -2;

/**
 * Writes down what became of mails, in one script. Answers what to count for the run's report. Mails that stand at the head
 * of the purgatory need not be named; if others stand there by now, they are.
 */
export async function settleSent(
  ctx: SettleContext,
  sent: readonly Sent[],
  head?: Head,
): Promise<readonly SendCount[]> {
  const now = Number(ctx.clock.now().toFixed(6));
  const { sound, args, counters } = await encoded(ctx, sent, now, head);
  if (sound.length === 0) return [];
  const { key, lockId } = head?.fence ?? NO_LOCK;
  const results = await ctx.redis.run(
    commitSend,
    [keys.sendPurgatory(), keys.pending(), keys.event(), jobKeys.hot(), key, ...counters],
    [lockId, head ? sound.length : 0, head?.last ?? "", ...args],
  );
  if (results === "another head") return settleSent(ctx, sound);
  const settled = sound.filter((_, at) => results[at] === 1);
  noteSteps(
    ctx,
    settled.map((one) => noteOf(one, now)),
  );
  const counts = settled.flatMap(({ outcome }) => countsOf(outcome));
  const conflicts = sound.filter((_, at) => results[at] === CONFLICT);
  if (conflicts.length === 0) return counts;
  // The older mail will never hear its receipt: the id means the newer one now.
  const ids = conflicts.flatMap(({ outcome }) => (outcome.ok ? [outcome.messageId] : []));
  ctx.alerts.warning("emails:message_id_twice", `${ids.length} mails got the id of a mail that awaits its receipt`);
  const { results: held } = await awaiting.get(ctx, ids);
  await closeMails(
    ctx,
    held.flatMap((one) => one ?? []),
  );
  return [...counts, ...(await settleSent(ctx, conflicts))];
}

type Argument = string | number | Buffer;
const PENDING_FIELDS = Object.keys(pendingHash.fields);

/** Who settles without a head says nothing of a lock. */
const NO_LOCK = { key: keys.sendLock(), lockId: "" };

/** The arguments of the script. A mail whose outcome cannot be written is set aside alone: its neighbours were sent. */
async function encoded(ctx: SettleContext, sent: readonly Sent[], now: number, head: Head | undefined) {
  const kinds = new Kinds(ctx);
  const sound: Sent[] = [];
  const items: Argument[] = [];
  const unwritable: Malformed[] = [];
  for (const one of sent) {
    const before = items.length;
    try {
      items.push(head ? "" : one.entry.raw);
      write(items, one, kinds, now);
      sound.push(one);
    } catch (error) {
      items.length = before;
      unwritable.push({ raw: one.entry.raw, reason: `its outcome cannot be written: ${errorText(error)}` });
    }
  }
  if (unwritable.length > 0) await lanes.ordinary.quarantine(ctx, unwritable);
  const args: [number, number, ...Argument[]] = [
    kinds.count,
    PENDING_FIELDS.length,
    ...kinds.blocks,
    ...PENDING_FIELDS,
    ...items,
  ];
  return { sound, counters: kinds.keys, args };
}

function write(items: Argument[], { entry: { value }, outcome }: Sent, kinds: Kinds, now: number): void {
  const word = outcome.ok ? value.template : `${outcome.retryable} ${wordOf(outcome)}`;
  const kind = kinds.of(`${outcome.ok} ${word}`, value.initially_queued_at, (stats) =>
    countOutcome(stats, value, outcome),
  );
  if (!outcome.ok) {
    items.push(kind, "fail", failureOf(value, outcome, now));
    return;
  }
  const hash = pendingHash.encode({
    aud: "pending",
    uid: value.uid,
    message_id: outcome.messageId,
    email: value.email,
    subject: value.subject,
    template: value.template,
    template_parameters: value.template_parameters,
    send_initially_queued_at: value.initially_queued_at,
    send_accepted_at: now,
    failure_job: value.failure_job,
    success_job: value.success_job,
  });
  items.push(kind, "accept");
  // Their names are said once for all mails.
  for (let at = 1; at < hash.length; at += 2) items.push(hash[at]!);
  items.push(
    outcome.hasReceipts
      ? ""
      : newsEntry.encode({ message_id: outcome.messageId, notification: { type: "Delivery" }, received_at: now }),
  );
}

/** How breakdowns name a failure. */
const wordOf = (outcome: Exclude<Sent["outcome"], { ok: true }>): string =>
  "word" in outcome ? `template:${outcome.word}` : `ses:${outcome.subidentifier ?? outcome.identifier}`;

function noteOf({ entry: { value }, outcome }: Sent, at: number): Note {
  const { uid } = value;
  if (outcome.ok)
    return { channel: "email", uid, at, step: "accepted", provider: outcome.provider, detail: outcome.messageId };
  const step = outcome.retryable ? "failed_transiently" : "failed_permanently";
  const provider = "provider" in outcome ? outcome.provider : null;
  return { channel: "email", uid, at, step, provider, detail: wordOf(outcome) };
}

function failureOf(attempt: Attempt, outcome: Exclude<Sent["outcome"], { ok: true }>, now: number): string {
  const { identifier: error_identifier, retryable, extra } = outcome;
  const step = "word" in outcome ? "template" : "send";
  return failureJob(attempt, { step, error_identifier, retryable, extra }, now);
}

function countsOf(outcome: Sent["outcome"]): readonly SendCount[] {
  if (outcome.ok) return ["attempted", "templated", "accepted"];
  const failed = outcome.retryable ? "failed_transiently" : "failed_permanently";
  return "word" in outcome ? ["attempted", failed] : ["attempted", "templated", failed];
}

function countOutcome(stats: Counting, { initially_queued_at: at, template }: Attempt, outcome: Sent["outcome"]): void {
  stats.incr(emailSendStats, "attempted", { at });
  if (outcome.ok) {
    stats.incr(emailSendStats, "templated", { at }).incr(emailSendStats, "accepted", { at, extra: template });
    return;
  }
  const failed = outcome.retryable ? "failed_transiently" : "failed_permanently";
  if (!("word" in outcome)) stats.incr(emailSendStats, "templated", { at });
  stats.incr(emailSendStats, failed, { at, extra: wordOf(outcome) });
}

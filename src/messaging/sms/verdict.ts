import { encodeJob } from "../../jobs/entry.ts";
import { NO_ERROR_CODE, smsCategory } from "../../providers/sms.ts";
import { failureJob, successJob } from "./callbacks.ts";
import type { PendingSms, SmsEvent } from "./entries.ts";

/** Seconds for which news of an unknown message may be ahead of the message itself. */
export const EARLY_AGE = 60;
const FIRST_LOOK = 1;
export const SUPPRESS_UNREACHABLE = "runners.sms.suppress_unreachable";

/** What an event means for the message it is about, given what is known of it. */
export type EventVerdict =
  | { readonly kind: "early"; readonly due: number }
  | { readonly kind: "unknown"; readonly callback: string }
  | { readonly kind: "duplicate" | "out_of_order" }
  | { readonly kind: "updated"; readonly fields: Partial<PendingSms>; readonly due: number }
  | { readonly kind: "removed"; readonly callback: string };

/** How far a status is on its way; words that nobody knows have no place. */
const RANKS: Readonly<Record<string, number>> = { accepted: 1, scheduled: 2, queued: 3, sending: 4, sent: 5 };
const TERMINAL = 9;

function rankOf(status: string): number | undefined {
  return RANKS[status] ?? (smsCategory(status) === "pending" ? undefined : TERMINAL);
}

/** Whether the event tells of a time before what is known. The provider's clock decides, then the way of statuses. */
function isOutOfOrder(event: SmsEvent, known: PendingSms): boolean {
  const [told, held] = [event.date_updated, known.message_resource_date_updated];
  if (told !== null && held !== null && told !== held) return told < held;
  const [toldRank, heldRank] = [rankOf(event.status), rankOf(known.message_resource_status)];
  if (toldRank !== undefined && heldRank !== undefined && toldRank !== heldRank) return toldRank < heldRank;
  return event.information_received_at < known.message_resource_last_updated_at;
}

interface Bench {
  readonly now: number;
  readonly silence: number;
  readonly unreachableCodes: ReadonlySet<string>;
}

export function judge(event: SmsEvent, known: PendingSms | undefined, bench: Bench): EventVerdict {
  const { now, silence } = bench;
  if (!known) {
    const age = now - event.information_received_at;
    // Each look waits as long as the event is old, so a message that is really gone costs a handful of looks.
    if (age < EARLY_AGE) return { kind: "early", due: now + Math.max(FIRST_LOOK, age) };
    return { kind: "unknown", callback: lateFailure(event, bench) };
  }
  if (isOutOfOrder(event, known)) return { kind: "out_of_order" };
  const category = smsCategory(event.status);
  if (category === "pending" && event.status === known.message_resource_status) return { kind: "duplicate" };
  const fields = {
    message_resource_status: event.status,
    message_resource_error_code: event.error_code,
    message_resource_last_updated_at: event.information_received_at,
    message_resource_date_updated: event.date_updated ?? known.message_resource_date_updated,
    num_changes: known.num_changes + 1,
  };
  if (category === "pending") return { kind: "updated", fields, due: now + silence };
  return { kind: "removed", callback: callbackOf(event, { ...known, ...fields }, now) };
}

/** A carrier's refusal of a text that ended here before: no callback is owed, but its number gets no more. */
function lateFailure({ status, error_code, to }: SmsEvent, { now, unreachableCodes }: Bench): string {
  if (to === undefined || error_code === null || smsCategory(status) !== "failure") return "";
  if (!unreachableCodes.has(error_code)) return "";
  return encodeJob({ name: SUPPRESS_UNREACHABLE, kwargs: { phone_number: to, error_code }, queued_at: now });
}

function callbackOf(event: SmsEvent, after: PendingSms, now: number): string {
  if (smsCategory(event.status) === "success") {
    const resource = {
      sid: after.message_resource_sid,
      status: event.status,
      error_code: event.error_code,
      date_updated: after.message_resource_date_updated,
    };
    const sms = { ...after, initially_queued_at: after.send_initially_queued_at };
    return successJob(sms, { createdAt: after.message_resource_created_at, succeededAt: now, resource }, now);
  }
  const lost = event.status === "lost";
  return failureJob(
    after,
    {
      action: "pending",
      identifier: lost ? "ClientError404" : "ApplicationErrorOther",
      subidentifier: lost ? null : (event.error_code ?? NO_ERROR_CODE),
      retryable: false,
      extra: event.error_message,
    },
    now,
  );
}

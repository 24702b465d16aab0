import { z } from "zod";
import {
  decimal,
  expires,
  family,
  hash,
  integer,
  json,
  list,
  literal,
  set,
  string,
  text,
  zset,
} from "../../kernel/keyspace/index.ts";
import { decisionFlags } from "../../mechanisms/decision/index.ts";
import { jobLock } from "../../mechanisms/lock/index.ts";
import { reportFields } from "../../mechanisms/run-report/index.ts";
import { attemptEntry, messageId, newsEntry, pendingHash } from "./entries.ts";

export const CALL_FLAG_TTL = 600;
export const HANDOVER_FLAG_TTL = 604_800;
export const WEBHOOK_FLAG_TTL = 600;
export const REFUSED_TOKEN_WINDOW = 60;
export const TEST_SEND_WINDOW = 60;
/** As long as a mail may take to end: tries for half a day, then a day until its receipt is given up. */
export const TEST_MEMORY = 172_800;
export const UNPROCESSABLE_KEPT = 1_000;

const own = { origin: "carillon" } as const;
const secret = { secret: true } as const;

export const keys = family("email", {
  toSend: list("email:to_send", attemptEntry, {
    doc: "mails that wait to be sent: in on the right, out on the left",
    ...secret,
  }),
  urgent: list("email:to_send:urgent", attemptEntry, {
    doc: "mails that are worth nothing late, such as sign-in codes: they go before all others",
    ...own,
    ...secret,
  }),
  sendPurgatory: list("email:send_purgatory", attemptEntry, { doc: "mails that the send job holds now", ...secret }),
  retrying: zset("email:retrying", attemptEntry, {
    doc: "mails whose last try failed and who wait for the next",
    score: "unix time from which to try again",
    due: true,
    ...own,
    ...secret,
  }),
  urgentRetrying: zset("email:retrying:urgent", attemptEntry, {
    doc: "the same for mails of the urgent lane",
    score: "unix time from which to try again",
    due: true,
    ...own,
    ...secret,
  }),
  pending: zset("email:receipt_pending", messageId, {
    doc: "mails that the provider took and whose receipt is awaited",
    score: "unix time at which the provider took it",
  }),
  pendingItem: hash("email:receipt_pending:{message_id}", pendingHash, {
    doc: "what is known of one mail that awaits its receipt",
    ...secret,
  }),
  event: list("email:event", newsEntry, { doc: "news of mails: deliveries, bounces, complaints", ...secret }),
  eventPurgatory: list("email:reconciliation_purgatory", newsEntry, {
    doc: "news that is being worked in now",
    ...secret,
  }),
  early: zset("email:event:early", newsEntry, {
    doc: "news of mails that nobody knows yet: a receipt may outrun the answer to the request that sent the mail",
    score: "unix time from which to look again",
    due: true,
    ...own,
    ...secret,
  }),
  webhookSeen: string("email:webhook_seen:{sns_message_id}", literal("1"), {
    doc: "a notification that was queued, so that its repeats are not",
    ttl: expires(WEBHOOK_FLAG_TTL),
    ...own,
  }),
  unprocessable: list(
    "email:webhook_unprocessable",
    json(z.object({ received_at: z.number(), reason: z.string(), message: z.string() })),
    {
      doc: `signed notifications that make no sense, newest first; the newest ${UNPROCESSABLE_KEPT} are kept`,
      lingers: true,
      ...own,
      ...secret,
    },
  ),
  lastWebhook: string("email:last_webhook", decimal, {
    doc: "unix time at which a topic last reported on a mail, to the second",
    ...own,
  }),
  decided: decisionFlags("email"),
  callSeen: string("email:call_seen:{call_uid}", literal("1"), {
    doc: "an enqueue that was done, so that repeating it after a lost answer adds nothing",
    ttl: expires(CALL_FLAG_TTL),
    ...own,
  }),
  handoverSeen: string("email:handover_seen:{group_uid}", literal("1"), {
    doc: "a group of mails that another family handed over and that was accepted",
    ttl: expires(HANDOVER_FLAG_TTL),
    ...own,
  }),
  refusedTokens: string("email:unsubscribe_refused:{address}", integer, {
    doc: "how many tokens that mean nothing one client tried in this minute",
    ttl: expires(REFUSED_TOKEN_WINDOW),
    ...own,
    ...secret,
  }),
  testSends: string("email:test_sends:{admin}", integer, {
    doc: "how many test mails one administrator asked for in this minute",
    ttl: expires(TEST_SEND_WINDOW),
    ...own,
  }),
  testWaiting: set("email:test_waiting:{job_uid}", text, {
    doc: "addresses of a test mail whose end is not known yet; those that failed stay with an exclamation mark in front",
    ttl: expires(TEST_MEMORY),
    ...own,
    ...secret,
  }),
  listsPause: string("email:lists_pause", json(z.object({ paused: z.boolean(), at: z.number(), reason: z.string() })), {
    doc: "whether mails of lists are paused, since when and why; or when an administrator let them go on",
    ...own,
  }),
  paused: list("email:paused", attemptEntry, {
    doc: "mails of lists that were set aside while lists are paused: in on the right, back from the left",
    lingers: true,
    ...own,
    ...secret,
  }),
  sendLock: jobLock("email:send_job:lock", "job that sends mails"),
  reconciliationLock: jobLock("email:reconciliation_job:lock", "job that works news in"),
  staleLock: jobLock("email:stale_receipt_job:lock", "job that gives up on receipts"),
  sendReport: hash(
    "stats:email_send:send_job",
    reportFields(["attempted", "templated", "accepted", "failed_permanently", "failed_transiently"]),
    { doc: "what the last run of the send job did", report: { runner: "runners.emails.send", unit: "milliseconds" } },
  ),
  reconciliationReport: hash(
    "stats:email_events:reconciliation_job",
    reportFields([
      "attempted",
      "succeeded_and_found",
      "succeeded_but_abandoned",
      "bounced_and_found",
      "bounced_but_abandoned",
      "complaint_and_found",
      "complaint_and_abandoned",
    ]),
    {
      doc: "what the last run of working news in did",
      report: { runner: "runners.emails.receipt_reconciliation", unit: "milliseconds" },
    },
  ),
  staleReport: hash("stats:email_events:stale_receipt_job", reportFields(["abandoned"]), {
    doc: "what the last search for mails without a receipt did",
    report: { runner: "runners.emails.stale_receipt_detection", unit: "milliseconds" },
  }),
});

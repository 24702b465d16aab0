import { z } from "zod";
import {
  expires,
  family,
  hash,
  json,
  list,
  literal,
  mapOf,
  matching,
  string,
  text,
  zset,
} from "../../kernel/keyspace/index.ts";
import { decisionFlags } from "../../mechanisms/decision/index.ts";
import { jobLock, OWNER_LEASE, ownerLock } from "../../mechanisms/lock/index.ts";
import { reportFields } from "../../mechanisms/run-report/index.ts";
import { E164, heldWish, pendingHash, smsEntry, smsEvent, smsSid } from "./entries.ts";

export const CALL_FLAG_TTL = 600;
export const HANDOVER_FLAG_TTL = 604_800;
export const UNPROCESSABLE_KEPT = 1_000;

export const keys = family("sms", {
  toSend: list("sms:to_send", smsEntry, {
    doc: "texts that wait to be sent: in on the right, out on the left",
    secret: true,
  }),
  sendPurgatory: list("sms:send_purgatory", smsEntry, { doc: "texts that the send job holds now", secret: true }),
  retrying: zset("sms:retrying", smsEntry, {
    doc: "texts whose last try failed and who wait for the next",
    score: "unix time from which to try again",
    due: true,
    origin: "carillon",
    secret: true,
  }),
  recentSids: zset("sms:recent_sids", text, {
    doc: "messages that the provider took lately and whose text is known, so that no other text is taken for one of them",
    score: "unix time at which that was written down",
    origin: "carillon",
  }),
  pending: zset("sms:pending", smsSid, {
    doc: "messages that the provider took and whose end is not known",
    score: "unix time at which their silence becomes a failure",
    due: true,
    // Its quarantine holds whole messages.
    secret: true,
  }),
  pendingItem: hash("sms:pending:{sid}", pendingHash, { doc: "what is known of one pending message", secret: true }),
  recovery: list("sms:recovery", smsSid, { doc: "silent messages that the provider is to be asked about" }),
  recoveryPurgatory: list("sms:recovery_purgatory", smsSid, { doc: "messages that are being asked about now" }),
  event: list("sms:event", smsEvent, { doc: "news of messages, from webhooks and from asking", secret: true }),
  eventPurgatory: list("sms:event:purgatory", smsEvent, { doc: "news that is being worked in now", secret: true }),
  early: zset("sms:event:early", smsEvent, {
    doc: "news of messages that nobody knows yet: a webhook may outrun the answer to the request that made the message",
    score: "unix time from which to look again",
    due: true,
    origin: "carillon",
    secret: true,
  }),
  unprocessable: list(
    "sms:webhook_unprocessable",
    json(z.object({ received_at: z.number(), reason: z.string(), fields: z.record(z.string(), z.string()) })),
    {
      doc: `signed webhooks that make no sense, newest first; the newest ${UNPROCESSABLE_KEPT} are kept`,
      lingers: true,
      origin: "carillon",
      secret: true,
    },
  ),
  wishes: hash("sms:wishes", mapOf(heldWish, { field: matching(E164, "a number") }), {
    doc: "STOP and START of people that were not followed yet, the newest of each number; nobody who said STOP is texted meanwhile",
    origin: "carillon",
    secret: true,
  }),
  decided: decisionFlags("sms"),
  callSeen: string("sms:call_seen:{call_uid}", literal("1"), {
    doc: "an enqueue that was done, so that repeating it after a lost answer adds nothing",
    ttl: expires(CALL_FLAG_TTL),
    origin: "carillon",
  }),
  handoverSeen: string("sms:handover_seen:{group_uid}", literal("1"), {
    doc: "a group of texts that another family handed over and that was accepted",
    ttl: expires(HANDOVER_FLAG_TTL),
    origin: "carillon",
  }),
  providerLock: string("twilio:lock", ownerLock, {
    doc: "held around the requests of one batch to the provider of texts",
    ttl: expires(OWNER_LEASE),
    lock: "owner",
  }),
  sendLock: jobLock("sms:send_job:lock", "job that sends texts"),
  staleLock: jobLock("sms:receipt_stale_detection_job:lock", "job that finds silent messages"),
  recoveryLock: jobLock("sms:receipt_recovery_job:lock", "job that asks about silent messages"),
  wishesLock: jobLock("sms:follow_wishes_job:lock", "job that follows what people wished"),
  reconciliationLock: jobLock("sms:receipt_reconciliation_job:lock", "job that works news in"),
  sendReport: hash(
    "stats:sms_send:send_job",
    reportFields(["attempted", "pending", "succeeded", "failed_permanently", "failed_transiently"]),
    { doc: "what the last run of the send job did", report: { runner: "runners.sms.send", unit: "seconds" } },
  ),
  staleReport: hash("stats:sms:receipt_stale_job", reportFields(["callbacks_queued"]), {
    doc: "what the last search for silent messages did",
    report: { runner: "runners.sms.receipt_stale_detection", unit: "seconds" },
  }),
  recoveryReport: hash(
    "stats:sms:receipt_recovery_job",
    reportFields(["attempted", "pending", "succeeded", "failed", "lost", "permanent_error", "transient_error"]),
    {
      doc: "what the last run of asking about silent messages did",
      report: { runner: "runners.sms.receipt_recovery", unit: "seconds" },
    },
  ),
  reconciliationReport: hash(
    "stats:sms:receipt_reconciliation_job",
    reportFields([
      "attempted",
      "pending",
      "succeeded",
      "failed",
      "found",
      "updated",
      "duplicate",
      "out_of_order",
      "removed",
    ]),
    {
      doc: "what the last run of working news in did",
      report: { runner: "runners.sms.receipt_reconciliation", unit: "seconds" },
    },
  ),
});

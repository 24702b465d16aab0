import {
  expires,
  family,
  fields,
  hash,
  integer,
  json,
  list,
  literal,
  mapOf,
  optional,
  set,
  string,
  zset,
} from "../../kernel/keyspace/index.ts";
import { jobLock, OWNER_LEASE, ownerLock } from "../../mechanisms/lock/index.ts";
import { reportFields } from "../../mechanisms/run-report/index.ts";
import {
  callback,
  FailedTouch,
  handoverGroup,
  logEntry,
  messageUid,
  type TouchChannel,
  touchEntry,
  touchUid,
} from "./entries.ts";

export const HANDOVER_FLAG_TTL = 604_800;
/** A day has at most 25 hours, and clocks differ a little. */
export const SENT_ON_KEPT = 172_800;

const handover = (channel: TouchChannel) =>
  list(`touch:handover:${channel}`, handoverGroup, {
    doc: `groups of messages that the room of ${channel} is to take`,
    origin: "carillon",
    secret: true,
  });

/** Touches carry what a person is told and where: their values are not shown. */
export const keys = family("touch", {
  toSend: list("touch:to_send", touchEntry, {
    doc: "touches that wait to be sent: in on the right, out on the left",
    secret: true,
  }),
  sendPurgatory: list("touch:send_purgatory", touchEntry, { doc: "touches that the send job holds now", secret: true }),
  sendLock: jobLock("touch:send_job:lock", "job that sends touches"),
  toLog: list("touch:to_log", logEntry, {
    doc: "rows about touches that wait to be written: in on the right, out on the left",
    secret: true,
  }),
  logPurgatory: list("touch:log_purgatory", logEntry, { doc: "rows that are being written now", secret: true }),
  logLock: jobLock("touch:log_job:lock", "job that writes rows about touches"),
  campaignLock: string("touch:campaign_job:lock", ownerLock, {
    doc: "held by the one job that goes through people for campaigns",
    ttl: expires(OWNER_LEASE),
    lock: "owner",
    origin: "carillon",
  }),
  pending: zset("touch:pending", touchUid, {
    doc: "touches with a callback that have not ended",
    score: "unix time at which somebody was found to be reachable",
  }),
  pendingItem: hash(
    "touch:pending:{uid}",
    fields({ success_callback: optional(callback), failure_callback: optional(callback) }),
    { doc: "the jobs that hear how one touch ended" },
  ),
  remaining: set("touch:pending:{uid}:remaining", messageUid, {
    doc: "messages of one touch that have not ended",
  }),
  sentOn: hash("touch:sent_on:{unix_date}", mapOf(integer, { shape: "channel:user sub → touches" }), {
    doc: "touches that each person got on that day, where the installation limits them",
    params: { unix_date: /\d+/ },
    ttl: expires(SENT_ON_KEPT),
    origin: "carillon",
  }),
  toTell: hash(
    "touch:to_tell",
    mapOf(json(FailedTouch), { shape: "touch uid → JSON {touch_uid, user_sub, channel}" }),
    {
      doc: "waiting touches whose failure is to be told to webhook endpoints, for the case that no channel ever ends them",
      origin: "carillon",
    },
  ),
  handoverPush: handover("push"),
  handoverSms: handover("sms"),
  handoverEmail: handover("email"),
  handoverSeen: string("touch:handover_seen:{group_uid}", literal("1"), {
    doc: "a group of touches that another family handed over and that was accepted",
    ttl: expires(HANDOVER_FLAG_TTL),
    origin: "carillon",
  }),
  sendReport: hash(
    "stats:touch_send:send_job",
    reportFields([
      "attempted",
      "touch_points",
      "attempted_sms",
      "reachable_sms",
      "unreachable_sms",
      "attempted_push",
      "reachable_push",
      "unreachable_push",
      "attempted_email",
      "reachable_email",
      "unreachable_email",
      "stale",
    ]),
    { doc: "what the last run of sending touches did", report: { runner: "runners.touch.send", unit: "milliseconds" } },
  ),
  logReport: hash(
    "stats:touch_log:log_job",
    reportFields([
      "inserts",
      "updates",
      "full_batch_inserts",
      "full_batch_updates",
      "partial_batch_inserts",
      "partial_batch_updates",
      "accepted_inserts",
      "accepted_updates",
      "failed_inserts",
      "failed_updates",
    ]),
    {
      doc: "what the last run of writing rows about touches did",
      report: { runner: "runners.touch.log", unit: "milliseconds" },
    },
  ),
  staleReport: hash("stats:touch_stale:detection_job", reportFields(["stale"]), {
    doc: "what the last search for touches without an end did",
    report: { runner: "runners.touch.stale_detection", unit: "milliseconds" },
  }),
});

export const HANDOVERS = { push: keys.handoverPush, sms: keys.handoverSms, email: keys.handoverEmail } as const;

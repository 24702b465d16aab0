import {
  decimal,
  expires,
  family,
  fields,
  hash,
  integer,
  list,
  literal,
  optional,
  string,
  text,
  zset,
} from "../../kernel/keyspace/index.ts";
import { decisionFlags } from "../../mechanisms/decision/index.ts";
import { OWNER_LEASE, ownerLock } from "../../mechanisms/lock/index.ts";
import { checkEntry, sendEntry } from "./entries.ts";

/** How long a hand-over from another room is remembered: longer than any of them keeps a group. */
export const HANDOVER_TTL = 604_800;
/** How long an enqueuing call is remembered, for callers that did not get its answer. */
export const CALL_TTL = 600;

/** Entries say whose device they are for and what it shows: tools name the key, and never read it out. */
const secret = { secret: true } as const;
const job = { ttl: expires(OWNER_LEASE), lock: "owner" } as const;

const times = {
  last_started_at: decimal,
  last_finished_at: optional(decimal),
  last_running_time: optional(decimal),
  last_stop_reason: optional(text),
};
const report = (runner: string) => ({ report: { runner, prefix: "last_", unit: "seconds" } }) as const;

export const keys = family("push", {
  sendLock: string("push:send_job:lock", ownerLock, { doc: "held by the one run that sends notifications", ...job }),
  toSend: list("push:message_attempts:to_send", sendEntry, {
    doc: "notifications that wait to be sent: in on the right, out on the left",
    ...secret,
  }),
  sendPurgatory: list("push:message_attempts:purgatory", sendEntry, {
    doc: "notifications that the send job holds right now",
    ...secret,
  }),
  retrying: zset("push:message_attempts:retrying", sendEntry, {
    doc: "notifications that failed in passing and wait for their next try",
    score: "unix time of the next try",
    due: true,
    origin: "carillon",
    ...secret,
  }),
  coldToHotLock: string("push:ticket_hot_to_cold:lock", ownerLock, {
    doc: "held by the one run that moves tickets from cold to hot, whatever its name says",
    ...job,
  }),
  cold: zset("push:push_tickets:cold", checkEntry, {
    doc: "tickets whose receipt cannot be there yet",
    score: "unix time it first came here",
    ...secret,
  }),
  hot: list("push:push_tickets:hot", checkEntry, { doc: "tickets whose receipt is to be asked for", ...secret }),
  ticketPurgatory: list("push:push_tickets:purgatory", checkEntry, {
    doc: "tickets that the check job holds right now",
    ...secret,
  }),
  checkLock: string("push:check_job:lock", ownerLock, { doc: "held by the one run that asks for receipts", ...job }),
  decided: decisionFlags("push"),
  handoverSeen: string("push:handover_seen:{group_uid}", literal("1"), {
    doc: "a group of notifications from another room was accepted, and is not accepted again",
    ttl: expires(HANDOVER_TTL),
    origin: "carillon",
  }),
  callSeen: string("push:call_seen:{call_uid}", literal("1"), {
    doc: "a call that queued notifications, so that repeating it queues nothing",
    ttl: expires(CALL_TTL),
    origin: "carillon",
  }),
  sendReport: hash(
    "stats:push_tickets:send_job",
    fields({
      ...times,
      last_num_messages_attempted: optional(integer),
      last_num_succeeded: optional(integer),
      last_num_failed_permanently: optional(integer),
      last_num_failed_transiently: optional(integer),
    }),
    { doc: "what the last run of the send job did", ...report("runners.push.send") },
  ),
  coldToHotReport: hash(
    "stats:push_receipts:cold_to_hot_job",
    fields({ ...times, last_num_moved: optional(integer) }),
    { doc: "what the last run of the job from cold to hot did", ...report("runners.push.ticket_hot_to_cold") },
  ),
  checkReport: hash(
    "stats:push_receipts:check_job",
    fields({
      ...times,
      last_num_checked: optional(integer),
      last_num_succeeded: optional(integer),
      last_num_failed_permanently: optional(integer),
      last_num_failed_transiently: optional(integer),
    }),
    { doc: "what the last run of the check job did", ...report("runners.push.check") },
  ),
});

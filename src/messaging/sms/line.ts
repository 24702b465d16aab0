import { pendingSet } from "../../mechanisms/pending-set/index.ts";
import { purgatoryQueue } from "../../mechanisms/purgatory-queue/index.ts";
import { pendingHash, smsEntry, smsEvent, smsSid } from "./entries.ts";
import { keys } from "./keys.ts";

/**
 * The stations of a text.
 *
 *   enqueue ─▶ to_send ─▶ purgatory ─request─▶ pending ─news─▶ success or failure job
 *                ▲            │ failed            │ silent for 900 s
 *                │            ▼                   ▼
 *             retrying ◀── failure job       failure job ─▶ recovery ─asked─▶ event ─▶ pending or its end
 *
 * Redis is authoritative. A text is in exactly one of to_send, purgatory, retrying, pending, or in a callback; each
 * arrow is one script. A process that dies leaves what it held in a purgatory, and the next run of its job takes that
 * up first. Only between a request and its settling can the provider know more than we do: those texts, at most
 * `sms.window`, are looked up before they are sent again.
 */
export const sendQueue = purgatoryQueue({
  queue: keys.toSend(),
  purgatory: keys.sendPurgatory(),
  codec: smsEntry,
  retrying: keys.retrying(),
});

export const recoveryQueue = purgatoryQueue({
  queue: keys.recovery(),
  purgatory: keys.recoveryPurgatory(),
  codec: smsSid,
});

/** Early news rejoins the queue when it is due. */
export const eventQueue = purgatoryQueue({
  queue: keys.event(),
  purgatory: keys.eventPurgatory(),
  codec: smsEvent,
  retrying: keys.early(),
});

export const pendingMessages = pendingSet({ set: keys.pending(), codec: pendingHash, version: "num_changes" });

import { pendingSet } from "../../mechanisms/pending-set/index.ts";
import { type PurgatoryQueue, purgatoryQueue } from "../../mechanisms/purgatory-queue/index.ts";
import { type Attempt, attemptEntry, newsEntry, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";

/**
 * The stations of a mail.
 *
 *   enqueue ─▶ to_send ─▶ purgatory ─request─▶ receipt_pending ─news─▶ success or failure job
 *                ▲            │ failed               │ silent for a day
 *                │            ▼                      ▼
 *             retrying ◀── failure job          failure job (ReceiptTimeout)
 *
 *   webhook ─▶ event ─▶ its purgatory ─▶ worked in          (early, while nobody knows the mail: at most 5 s)
 *
 * Redis is authoritative. A mail is in exactly one of to_send, purgatory, retrying, receipt_pending, or in a callback;
 * each arrow is one script. A process that dies leaves what it held in a purgatory, and the next run of its job takes
 * that up first. Only between a request and its settling can the provider know more than we do: those mails, at most
 * `email.window`, are sent again, and the receipt of the first copy is counted as abandoned.
 *
 * There are two lanes before one purgatory. Whatever lies in the purgatory came from a single lane, so a batch that was
 * not sent goes back to the head of its own.
 */
export type Lane = "urgent" | "ordinary";

export const lanes: Readonly<Record<Lane, PurgatoryQueue<Attempt>>> = {
  urgent: purgatoryQueue({
    queue: keys.urgent(),
    purgatory: keys.sendPurgatory(),
    codec: attemptEntry,
    retrying: keys.urgentRetrying(),
  }),
  ordinary: purgatoryQueue({
    queue: keys.toSend(),
    purgatory: keys.sendPurgatory(),
    codec: attemptEntry,
    retrying: keys.retrying(),
  }),
};

/** Early news rejoins the queue when it is due. */
export const eventQueue = purgatoryQueue({
  queue: keys.event(),
  purgatory: keys.eventPurgatory(),
  codec: newsEntry,
  retrying: keys.early(),
});

export const awaiting = pendingSet({ set: keys.pending(), codec: pendingHash });

import type { Context } from "../../jobs/context.ts";
import { type Fence, unlessFenced } from "../../mechanisms/lock/index.ts";
import { pendingSet } from "../../mechanisms/pending-set/index.ts";
import { type Entry, type PurgatoryQueue, purgatoryQueue } from "../../mechanisms/purgatory-queue/index.ts";
import { book } from "../email_templates/service.ts";
import { type Attempt, attemptEntry, newsEntry, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { unreserve } from "./scripts.ts";

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
 * There are two lanes before one purgatory. A mail's template decides on its lane, so whatever of a batch was not sent
 * finds back to the head of its own.
 */
export type Lane = "urgent" | "ordinary";

/** A mail that is dead after a while and whose reader asked for it just now goes before everything else. */
export function laneOf({
  template: slug,
  template_parameters,
}: Pick<Attempt, "template" | "template_parameters">): Lane {
  const template = book.templates.find((known) => known.slug === slug);
  // Whether there is a lifetime is the template's matter; only how long it is may follow from the parameters.
  return template?.list === null && template.lifetime(template_parameters) !== undefined ? "urgent" : "ordinary";
}

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

/** Returns mails that were taken and not sent to the heads of their lanes, in order. */
export async function unreserveMails(
  ctx: Pick<Context, "redis">,
  fence: Fence,
  entries: readonly Entry<Attempt>[],
): Promise<void> {
  const rawsOf = (lane: Lane) => entries.filter(({ value }) => laneOf(value) === lane).map(({ raw }) => raw);
  const [ordinary, urgent] = [rawsOf("ordinary"), rawsOf("urgent")];
  unlessFenced(
    await ctx.redis.run(
      unreserve,
      [keys.toSend(), keys.urgent(), keys.sendPurgatory(), fence.key],
      [fence.lockId, ordinary.length, ...ordinary, ...urgent],
    ),
  );
}

/** How much of the purgatory ordinary mails leave free, so that urgent ones can join them at any time. */
export const urgentRoom = (claimSize: number): number => (claimSize < 2 ? 0 : Math.ceil(claimSize / 10));

/** Early news rejoins the queue when it is due. */
export const eventQueue = purgatoryQueue({
  queue: keys.event(),
  purgatory: keys.eventPurgatory(),
  codec: newsEntry,
  retrying: keys.early(),
});

export const awaiting = pendingSet({ set: keys.pending(), codec: pendingHash });

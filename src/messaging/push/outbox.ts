import { createHash } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import { jobErrors } from "../../jobs/errors.ts";
import { newUid } from "../../kernel/ids.ts";
import { encodeOperations, statsOf } from "../../mechanisms/dated-counters/index.ts";
import { forgetSoon } from "../../mechanisms/hand-over/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import { MAX_ITEMS_PER_CALL } from "../../mechanisms/purgatory-queue/index.ts";
import {
  type Callback,
  type Contents,
  flawOfSendEntry,
  isTime,
  LARGEST_NEW_ENTRY,
  type SendEntry,
  sendEntry,
} from "./entries.ts";
import { errors } from "./errors.ts";
import { CALL_TTL, HANDOVER_TTL, keys } from "./keys.ts";
import { type EnqueueAnswer, enqueue } from "./scripts.ts";
import { sendPush } from "./send.ts";
import { pushTicketStats } from "./stats.ts";

/** A notification for one device, and who hears how it ended. */
export interface NewPush {
  readonly pushToken: string;
  readonly contents: Contents;
  /** Hears of every failed try, and decides whether there is another. */
  readonly failureJob: Callback;
  /** Hears once that the notification was handed to the network of the device's maker. */
  readonly successJob: Callback;
}

export interface PushOptions {
  /** A name for this call: repeating it with the same name within ten minutes queues nothing. */
  readonly callUid?: string;
  /** Refuse when the queue would grow beyond this. */
  readonly maxLength?: number;
}

export type PushesQueued =
  | { readonly ok: true; readonly uids: readonly string[]; readonly duplicate: boolean }
  | { readonly ok: false; readonly reason: "backpressure" };

type OutboxContext = Pick<Context, "redis" | "clock" | "config" | "alerts" | "log" | "metrics" | "jobs">;

/** Queues at most 500 notifications, all or none, and has them sent at once. What could never be sent is refused. */
export async function enqueuePushes(
  ctx: OutboxContext,
  pushes: readonly NewPush[],
  { callUid, maxLength }: PushOptions = {},
): Promise<PushesQueued> {
  const entries = pushEntries(ctx, pushes, callUid);
  const uids = entries.map(({ uid }) => uid);
  if (entries.length === 0) return { ok: true, uids, duplicate: false };
  const seen = keys.callSeen({ call_uid: callUid ?? newUid("call") });
  const answer = await join(ctx, entries, { seen, seenFor: CALL_TTL, maxLength });
  return answer.ok ? { ...answer, uids } : answer;
}

/** The entries of notifications, for rooms that hand them over themselves. A call uid makes their uids repeatable. */
export function pushEntries(ctx: OutboxContext, pushes: readonly NewPush[], callUid?: string): readonly SendEntry[] {
  const now = ctx.clock.now();
  return pushes.map((push, index) => {
    const entry: SendEntry = {
      aud: "send",
      uid: callUid === undefined ? newUid("pma") : derivedUid(callUid, index),
      initially_queued_at: now,
      retry: 0,
      last_queued_at: now,
      push_token: push.pushToken,
      contents: push.contents,
      failure_job: push.failureJob,
      success_job: push.successJob,
    };
    requireSendable(ctx, entry);
    return entry;
  });
}

/**
 * Takes over a group of notifications from another room. It is never refused for length, because the room that hands over
 * looked at the queue before. A group that was accepted before changes nothing; once its source has forgotten the group,
 * `forgetHandover` ends the need to remember it. Whoever has written the entries already gives them as they are written,
 * in `raws`.
 */
export async function acceptPushes(
  ctx: OutboxContext,
  group: { readonly uid: string; readonly items: readonly SendEntry[]; readonly raws?: readonly string[] },
): Promise<{ readonly duplicate: boolean }> {
  const seen = keys.handoverSeen({ group_uid: group.uid });
  const answer = await join(ctx, group.items, { seen, seenFor: HANDOVER_TTL, raws: group.raws });
  return { duplicate: answer.ok && answer.duplicate };
}

export function forgetHandover(ctx: Pick<Context, "redis">, groupUid: string): Promise<void> {
  return forgetSoon(ctx, keys.handoverSeen({ group_uid: groupUid }));
}

async function join(
  ctx: OutboxContext,
  entries: readonly SendEntry[],
  call: {
    readonly seen: string;
    readonly seenFor: number;
    readonly maxLength?: number;
    readonly raws?: readonly string[] | undefined;
  },
): Promise<EnqueueAnswer> {
  if (entries.length > MAX_ITEMS_PER_CALL)
    throw new RangeError(`${entries.length} notifications in one call: at most ${MAX_ITEMS_PER_CALL}`);
  const stats = statsOf(ctx);
  for (const [at, by] of timesOf(ctx, entries)) stats.incr(pushTicketStats, "queued", { at, by });
  const counted = encodeOperations(stats.operations(pushTicketStats.family));
  const answer = await ctx.redis.run(
    enqueue,
    [keys.toSend(), call.seen, ...counted.keys],
    [
      call.maxLength ?? -1,
      call.seenFor * 1000,
      entries.length,
      ...(call.raws ?? entries.map((entry) => sendEntry.encode(entry))),
      ...counted.args,
    ],
  );
  if (!answer.ok) return answer;
  ctx.jobs.nudge(sendPush, {});
  if (!answer.duplicate)
    noteSteps(
      ctx,
      entries.map(({ uid, push_token: address }) => ({ channel: "push", uid, step: "queued", address })),
    );
  return answer;
}

/** When entries were queued, and how many at that time. */
function timesOf(ctx: Pick<Context, "clock">, entries: readonly SendEntry[]): ReadonlyMap<number, number> {
  const times = new Map<number, number>();
  for (const { initially_queued_at: queuedAt } of entries) {
    // What nobody can date is set aside by whoever takes it from the queue; here it must not hold up its group.
    const at = isTime(queuedAt) ? queuedAt : ctx.clock.now();
    times.set(at, (times.get(at) ?? 0) + 1);
  }
  return times;
}

/** A caller gets an error here, instead of a queue that holds what nobody can send. */
function requireSendable(ctx: Pick<Context, "jobs">, entry: SendEntry): void {
  const flaw = flawOfSendEntry(entry);
  if (flaw !== undefined) throw errors.invalid_push({ message: `This notification could never be sent: ${flaw}.` });
  const size = Buffer.byteLength(sendEntry.encode(entry));
  if (size > LARGEST_NEW_ENTRY)
    throw errors.invalid_push({
      message: `The notification and its callbacks have ${size} bytes; at most ${LARGEST_NEW_ENTRY} are queued.`,
    });
  for (const { name } of [entry.failure_job, entry.success_job])
    if (!ctx.jobs.runners.has(name)) throw jobErrors.unknown_job({ message: `No job is named ${name}.` });
}

function derivedUid(callUid: string, index: number): string {
  const digest = createHash("sha256").update(`${callUid} ${index}`).digest("base64url");
  return `crl_pma_${digest.slice(0, 22)}`;
}

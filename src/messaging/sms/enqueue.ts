import type { Context } from "../../jobs/context.ts";
import { jobErrors } from "../../jobs/errors.ts";
import { newUid } from "../../kernel/ids.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { forgetSoon } from "../../mechanisms/hand-over/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import { CallbackJob, E164, LARGEST_NEW_ENTRY, LONGEST_BODY, type SmsEntry, smsEntry } from "./entries.ts";
import { errors } from "./errors.ts";
import { CALL_FLAG_TTL, HANDOVER_FLAG_TTL, keys } from "./keys.ts";
import { enqueue } from "./scripts.ts";
import { smsSendStats } from "./stats.ts";

/** How many texts one call takes; more are handed over in further calls. */
export const MAX_PER_CALL = 500;

type EnqueueContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "alerts" | "jobs">;

export interface NewSms {
  /** E.164. */
  readonly phoneNumber: string;
  readonly body: string;
  /** Hears of every failed try, and decides whether there is another: see `decideFailures`. */
  readonly failureJob: CallbackJob;
  /** Hears once that the text is on its way. */
  readonly successJob: CallbackJob;
}

export interface EnqueueOptions {
  /** Refuses with `backpressure` when the queue would grow beyond this. */
  readonly maxLength?: number;
  /** Recognises the repeat of a call whose answer was lost, for ten minutes. */
  readonly callUid?: string;
}

export type EnqueueAnswer =
  | { readonly ok: true; readonly uids: readonly string[]; readonly length: number }
  | { readonly ok: false; readonly reason: "backpressure" | "duplicate" };

/** Half of a character: it would arrive as another one, and could never be found again at the provider. */
const HALF_CHARACTER = /\p{Surrogate}/u;

/** Makes queue entries of texts. Whatever could poison the queue is refused here, where somebody hears of it. */
export function smsEntries(ctx: Pick<Context, "clock" | "jobs">, texts: readonly NewSms[]): readonly SmsEntry[] {
  return encodedEntries(ctx, texts).map(({ entry }) => entry);
}

function encodedEntries(ctx: Pick<Context, "clock" | "jobs">, texts: readonly NewSms[]) {
  const now = ctx.clock.now();
  return texts.map(({ phoneNumber, body, failureJob, successJob }) => {
    if (!E164.test(phoneNumber)) throw errors.invalid_sms({ message: "The number is not in the form +14155550132." });
    if (body.length === 0 || body.length > LONGEST_BODY)
      throw errors.invalid_sms({
        message: `The text has ${body.length} characters; 1 to ${LONGEST_BODY} are possible.`,
      });
    if (HALF_CHARACTER.test(body)) throw errors.invalid_sms({ message: "The text holds half of a character." });
    const entry: SmsEntry = {
      aud: "send",
      uid: newUid("sms"),
      initially_queued_at: now,
      retry: 0,
      last_queued_at: now,
      phone_number: phoneNumber,
      body,
      failure_job: checkedJob(ctx, failureJob),
      success_job: checkedJob(ctx, successJob),
    };
    return { entry, raw: encoded(entry) };
  });
}

function encoded(entry: SmsEntry): string | Buffer {
  let raw: string | Buffer;
  try {
    raw = smsEntry.encode(entry);
  } catch (cause) {
    throw errors.invalid_sms({ message: "The arguments of its callbacks cannot be written as JSON.", cause });
  }
  const bytes = Buffer.byteLength(raw);
  if (bytes <= LARGEST_NEW_ENTRY) return raw;
  throw errors.invalid_sms({
    message: `With the arguments of its callbacks the text has ${bytes} bytes; at most ${LARGEST_NEW_ENTRY} are possible.`,
  });
}

/** Queues texts, all or none, and has the send job start now. */
export async function enqueueSms(
  ctx: EnqueueContext,
  texts: readonly NewSms[],
  options: EnqueueOptions = {},
): Promise<EnqueueAnswer> {
  const made = encodedEntries(ctx, texts);
  const entries = made.map(({ entry }) => entry);
  const { callUid, maxLength = 0 } = options;
  const flag = callUid === undefined ? undefined : { key: keys.callSeen({ call_uid: callUid }), ttl: CALL_FLAG_TTL };
  const raws = made.map(({ raw }) => raw);
  const answer = await push(ctx, entries, raws, maxLength, flag);
  return answer.ok ? { ...answer, uids: entries.map(({ uid }) => uid) } : answer;
}

/**
 * Takes a group that another family handed over, once, whatever its length: what was promised to be sent is never refused.
 * The giver removes the group from its own list afterwards and then calls `forgetHandover`. Whoever has written the
 * entries already gives them as they are written, in `raws`.
 */
export async function acceptHandover(
  ctx: EnqueueContext,
  group: { readonly uid: string; readonly entries: readonly SmsEntry[]; readonly raws?: readonly string[] },
): Promise<"accepted" | "duplicate"> {
  const flag = { key: keys.handoverSeen({ group_uid: group.uid }), ttl: HANDOVER_FLAG_TTL };
  const answer = await push(ctx, group.entries, group.raws ?? group.entries.map(smsEntry.encode), 0, flag);
  return answer.ok ? "accepted" : "duplicate";
}

export function forgetHandover(ctx: Pick<Context, "redis">, groupUid: string): Promise<void> {
  return forgetSoon(ctx, keys.handoverSeen({ group_uid: groupUid }));
}

/** How many texts wait, for whoever would add more. */
export function sendQueueLength(ctx: Pick<Context, "redis">): Promise<number> {
  return ctx.redis.commands.llen(ctx.redis.topology.key(keys.toSend()));
}

async function push(
  ctx: EnqueueContext,
  entries: readonly SmsEntry[],
  raws: readonly (string | Buffer)[],
  maxLength: number,
  flag: { readonly key: KeyName<"string">; readonly ttl: number } | undefined,
) {
  if (raws.length === 0 || raws.length > MAX_PER_CALL)
    throw new RangeError(`${raws.length} texts in one call: 1 to ${MAX_PER_CALL}, the rest in further calls`);
  const tally = new Tally(ctx);
  const block = tally.block((stats) => {
    for (const { initially_queued_at: at } of entries) stats.incr(smsSendStats, "queued", { at });
  });
  // Without a flag the key is named all the same and never written.
  const answer = await ctx.redis.run(
    enqueue,
    [keys.toSend(), flag?.key ?? keys.callSeen({ call_uid: "none" }), ...tally.keys],
    [maxLength, flag ? flag.ttl * 1000 : 0, raws.length, ...raws, ...block],
  );
  if (answer.ok) {
    nudgeSend(ctx);
    noteSteps(
      ctx,
      entries.map(({ uid, initially_queued_at: at, phone_number: address }) => ({
        channel: "sms",
        uid,
        at,
        step: "queued",
        address,
      })),
    );
  }
  return answer;
}

/** The send job is named rather than imported: it stands above this file. */
export function nudgeSend(ctx: Pick<Context, "jobs">): void {
  nudgeByName(ctx, "runners.sms.send");
}

/** Has a recurring job of this room start now, where this process knows it. */
export function nudgeByName(ctx: Pick<Context, "jobs">, name: `runners.sms.${string}`): void {
  const runner = ctx.jobs.runners.get(name);
  if (runner) ctx.jobs.nudge(runner, {});
}

function checkedJob(ctx: Pick<Context, "jobs">, job: CallbackJob): CallbackJob {
  const parsed = CallbackJob.safeParse(job);
  if (!parsed.success) throw errors.invalid_sms({ message: `${job.name}: its arguments must not have data_raw.` });
  if (!ctx.jobs.runners.has(job.name)) throw jobErrors.unknown_job({ message: `No job is named ${job.name}.` });
  return parsed.data;
}

import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { forgetSoon } from "../../mechanisms/hand-over/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import { type Callback, LARGEST_ENTRY, type TouchChannel, TouchEntry, touchEntry } from "./entries.ts";
import { errors } from "./errors.ts";
import { HANDOVER_FLAG_TTL, keys } from "./keys.ts";
import { enqueue } from "./scripts.ts";
import { settings } from "./settings.ts";
import { touchSendStats } from "./stats.ts";

type EnqueueContext = Pick<Context, "redis" | "clock" | "config" | "log" | "metrics" | "jobs" | "alerts">;

const GROUP = 500;

export interface NewTouch {
  /** Chosen by callers whose links name the touch before it exists. */
  readonly uid?: string;
  readonly userSub: string;
  readonly slug: string;
  readonly channel: TouchChannel;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Queued once when the first message arrived. */
  readonly successCallback?: Callback | null;
  /** Queued once when nobody could be reached, or the last message failed. */
  readonly failureCallback?: Callback | null;
}

export const newTouchUid = () => newUid("tch");

/** The entry of a touch, as the queue keeps it. What could poison the queue is refused here, where somebody hears of it. */
export function touchEntryOf(ctx: Pick<Context, "clock" | "jobs">, touch: NewTouch): TouchEntry {
  const entry = TouchEntry.safeParse({
    aud: "send",
    uid: touch.uid ?? newTouchUid(),
    user_sub: touch.userSub,
    touch_point_event_slug: touch.slug,
    channel: touch.channel,
    event_parameters: touch.parameters,
    success_callback: checked(ctx, touch.successCallback),
    failure_callback: checked(ctx, touch.failureCallback),
    queued_at: ctx.clock.now(),
  });
  if (!entry.success) {
    const [issue] = entry.error.issues;
    throw errors.invalid_touch({ message: `The touch cannot be queued: ${issue?.path.join(".")}: ${issue?.message}` });
  }
  return entry.data;
}

function checked(ctx: Pick<Context, "jobs">, callback: Callback | null | undefined): Callback | null {
  if (!callback) return null;
  const runner = ctx.jobs.runners.get(callback.name);
  if (!runner) throw errors.unknown_touch_job({ message: `No job is named ${callback.name}.` });
  if (!runner.kwargs.safeParse(callback.kwargs).success)
    throw errors.invalid_touch({ message: `The arguments of ${callback.name} do not fit it.` });
  return { name: callback.name, kwargs: callback.kwargs };
}

function encoded(entry: TouchEntry): string | Buffer {
  const raw = touchEntry.encode(entry);
  const bytes = Buffer.byteLength(raw);
  if (bytes <= LARGEST_ENTRY) return raw;
  throw errors.invalid_touch({ message: `The touch has ${bytes} bytes; at most ${LARGEST_ENTRY} are possible.` });
}

/**
 * Queues touches and has them sent now. Those for which there is no room are refused, each for itself; with a call uid all
 * of them together, at most 500, and repeating the call within a week queues nothing more.
 */
export async function sendTouches(
  ctx: EnqueueContext,
  touches: readonly NewTouch[],
  options: { readonly callUid?: string } = {},
): Promise<readonly { readonly uid: string; readonly outcome: "queued" | "backpressure" }[]> {
  const entries = touches.map((touch) => touchEntryOf(ctx, touch));
  const limit = ctx.config.get(settings.queueLimit);
  if (options.callUid !== undefined && entries.length > GROUP)
    throw errors.invalid_touch({ message: `One request sends at most ${GROUP} touches.` });
  const outcomes: ("queued" | "backpressure")[] = [];
  for (let start = 0; start < entries.length; start += GROUP) {
    const part = entries.slice(start, start + GROUP);
    const answer = await push(ctx, part, limit, options.callUid);
    const queued = answer.duplicate ? part.map(() => true) : answer.queued;
    outcomes.push(...queued.map((fits) => (fits ? ("queued" as const) : ("backpressure" as const))));
  }
  return entries.map(({ uid }, at) => ({ uid, outcome: outcomes[at]! }));
}

/**
 * Takes a group of touches that another family handed over, once, whatever the length of the queue. The giver removes the
 * group from its own list afterwards and then calls `forgetHandover`.
 */
export async function acceptHandover(
  ctx: EnqueueContext,
  group: { readonly uid: string; readonly entries: readonly TouchEntry[] },
): Promise<"accepted" | "duplicate"> {
  const answer = await push(ctx, group.entries, -1, group.uid);
  return answer.duplicate ? "duplicate" : "accepted";
}

export function forgetHandover(ctx: Pick<Context, "redis">, groupUid: string): Promise<void> {
  return forgetSoon(ctx, keys.handoverSeen({ group_uid: groupUid }));
}

/** Ends the memory of a call whose uid nobody else knows, so that nobody can repeat it. */
export async function forgetCall({ redis }: Pick<Context, "redis">, callUid: string): Promise<void> {
  await redis.commands.del(redis.topology.key(keys.handoverSeen({ group_uid: callUid })));
}

/** Whether a call with this uid queued its touches. */
export async function wasQueued({ redis }: Pick<Context, "redis">, callUid: string): Promise<boolean> {
  return (await redis.commands.exists(redis.topology.key(keys.handoverSeen({ group_uid: callUid })))) === 1;
}

/** How many touches wait, for whoever would add more. */
export function touchQueueLength({ redis }: Pick<Context, "redis">): Promise<number> {
  return redis.commands.llen(redis.topology.key(keys.toSend()));
}

async function push(ctx: EnqueueContext, entries: readonly TouchEntry[], limit: number, groupUid?: string) {
  const tally = new Tally(ctx);
  const items = entries.flatMap((entry) => [
    encoded(entry),
    ...tally.block((counting) => counting.incr(touchSendStats, "queued", { at: entry.queued_at })),
  ]);
  // Without a flag the key is named all the same and never written.
  const answer = await ctx.redis.run(
    enqueue,
    [keys.toSend(), keys.handoverSeen({ group_uid: groupUid ?? "none" }), ...tally.keys],
    [limit, groupUid === undefined ? 0 : HANDOVER_FLAG_TTL * 1000, entries.length, ...items],
  );
  nudgeByName(ctx, "runners.touch.send");
  if (!answer.duplicate)
    noteSteps(
      ctx,
      entries.flatMap(({ uid, queued_at: at, touch_point_event_slug: slug, channel }, index): Note[] =>
        answer.queued[index] ? [{ channel: "touch", uid, at, step: "queued", detail: `${slug} by ${channel}` }] : [],
      ),
    );
  return answer;
}

/** Has a recurring job of this room start now. Named, since jobs stand above this file. */
export function nudgeByName(ctx: Pick<Context, "jobs">, name: `runners.touch.${string}`): void {
  const runner = ctx.jobs.runners?.get(name);
  if (runner) ctx.jobs.nudge(runner, {});
}

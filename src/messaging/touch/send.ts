import { isUtf8 } from "node:buffer";
import { z } from "zod";
import type { Context, JobContext } from "../../jobs/context.ts";
import { encodeJob } from "../../jobs/entry.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { newUid } from "../../kernel/ids.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import {
  decodeEntries,
  type Entry,
  purgatoryQueue,
  runBatches,
  type StopReason,
} from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import * as email from "../email/service.ts";
import * as push from "../push/service.ts";
import * as sms from "../sms/service.ts";
import { fieldOf, todayOf } from "./daily-cap.ts";
import { failureJob } from "./effects.ts";
import { nudgeByName } from "./enqueue.ts";
import { Callback, logEntry, TOUCH_CHANNELS, type TouchChannel, type TouchEntry, touchEntry } from "./entries.ts";
import { type Groups, groupOf, handOverGroups, handOverLeft } from "./handover.ts";
import { HANDOVERS, keys, SENT_ON_KEPT } from "./keys.ts";
import { type Plan, Planner } from "./plan.ts";
import { dispatch } from "./scripts.ts";
import { settings } from "./settings.ts";
import { touchSendStats } from "./stats.ts";

export const sendQueue = purgatoryQueue({ queue: keys.toSend(), purgatory: keys.sendPurgatory(), codec: touchEntry });

/** The purgatory does not hold what was read: another run is at work, and this one must not go on. */
class Mismatch extends Error {
  constructor() {
    super("touch:send_purgatory changed while its touches were planned");
  }
}

const GROUP = 500;

/**
 * Sends touches.
 *
 *   to_send ─▶ purgatory ─planned─▶ dispatched: messages in touch:handover:{channel}, callbacks, rows, counts, pending
 *                                        └─▶ accepted by the channel's room ─▶ gone from the hand-over
 *
 * Reading comes first and changes nothing. One script then takes the touches from the purgatory together with all that
 * follows, so a death leaves a touch either whole in the purgatory or wholly sent. Groups that a dead run dispatched and
 * did not hand over are handed over first; the channel knows a group that it took before. While channels take a batch the
 * next one is planned; a run ends when they have all.
 */
export async function sendQueued(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<ReportCount>(ctx, keys.sendReport);
  const run = new SendRun(ctx);
  await handOverLeft(ctx);
  const size = ctx.config.get(settings.batch);
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    backpressure: () => run.isTooMuch(),
    claim: (first) => sendQueue.claimBatch(ctx, lock.fence, first, size),
    handle: ({ size: held }) => run.handle(held),
  }).finally(() => run.handedOver());
  await report.finish({ stopReason, counts: run.report() });
  return stopReason;
}

type ChannelCount = `${"attempted" | "reachable" | "unreachable"}_${TouchChannel}`;
type ReportCount = "attempted" | "touch_points" | "stale" | ChannelCount;

/** Whether a channel or the log has so much to do that touches had better wait where producers see them. */
async function isTooMuch(ctx: Context, coming: Readonly<Record<TouchChannel, number>>): Promise<boolean> {
  const { commands, topology } = ctx.redis;
  const limit = ctx.config.get(settings.channelQueueLimit);
  const [texts, mails, pushes, rows] = await Promise.all([
    sms.sendQueueLength(ctx),
    email.sendQueueLength(ctx),
    push.sendQueueInfo(ctx).then(({ length }) => length),
    commands.llen(topology.key(keys.toLog())),
  ]);
  const most = Math.max(texts + coming.sms, mails + coming.email, pushes + coming.push);
  return most > limit || rows >= ctx.config.get(settings.logLimit);
}

const NONE: Readonly<Record<TouchChannel, number>> = { push: 0, sms: 0, email: 0 };

class SendRun {
  readonly #ctx: JobContext;
  readonly #planner: Planner;
  readonly #counts: Record<ChannelCount | "stale", number>;
  /** The channels take what was dispatched last. */
  #handing: Promise<void> = Promise.resolve();
  #coming = NONE;

  constructor(ctx: JobContext) {
    this.#ctx = ctx;
    this.#planner = new Planner(ctx);
    const zeros = TOUCH_CHANNELS.flatMap((channel) =>
      (["attempted", "reachable", "unreachable"] as const).map((what) => [`${what}_${channel}`, 0] as const),
    );
    this.#counts = { ...(Object.fromEntries(zeros) as Record<ChannelCount, number>), stale: 0 };
  }

  /** What is on its way counts too; where only that would be too much, it is waited for and looked at once more. */
  async isTooMuch(): Promise<boolean> {
    if (!(await isTooMuch(this.#ctx, this.#coming))) return false;
    await this.#handing;
    return isTooMuch(this.#ctx, NONE);
  }

  /** Resolves when the channels have all that was dispatched. */
  handedOver(): Promise<void> {
    return this.#handing;
  }

  async handle(size: number): Promise<undefined> {
    const entries = await this.#read(size);
    const segment = this.#ctx.config.get(settings.segment);
    const plans = await this.#planner.plan(entries.map(({ value }) => value));
    for (let start = 0; start < entries.length; start += segment) {
      const part = plans.slice(start, start + segment);
      await this.#dispatch(entries.slice(start, start + segment), part);
      for (const plan of part) this.#note(plan);
    }
  }

  /** What cannot be read is set aside; where its failure callback alone can be, that is queued before. */
  async #read(size: number): Promise<readonly Entry<TouchEntry>[]> {
    const ctx = this.#ctx;
    const { commands, topology } = ctx.redis;
    const raws = await commands.lrangeBuffer(topology.key(keys.sendPurgatory()), 0, size - 1);
    const { entries, malformed } = decodeEntries(touchEntry, raws);
    for (const { raw } of malformed) {
      const callback = failureCallbackOf(raw);
      const runner = callback && ctx.jobs.runners.get(callback.name);
      if (runner?.kwargs.safeParse(callback?.kwargs).success)
        await ctx.jobs.enqueueNamed(callback!.name, callback!.kwargs);
    }
    if (malformed.length > 0) await sendQueue.quarantine(ctx, malformed);
    return entries;
  }

  report(): Record<ReportCount, number> {
    const attempted = TOUCH_CHANNELS.reduce((sum, channel) => sum + this.#counts[`attempted_${channel}`], 0);
    return { ...this.#counts, attempted, touch_points: this.#planner.points };
  }

  async #dispatch(entries: readonly Entry<TouchEntry>[], plans: readonly Plan[]): Promise<void> {
    const ctx = this.#ctx;
    const now = ctx.clock.now();
    const groups = groupsOf(plans);
    const waiting = plans.filter(
      ({ touch, outcome }) => outcome === "reachable" && (touch.success_callback || touch.failure_callback),
    );
    const rows = plans.flatMap((plan) => plan.rows).map((row) => logEntry.encode(row));
    const failed = plans.flatMap((plan) => (plan.outcome === "reachable" ? [] : jobsOfFailed(ctx, plan)));
    const told = waiting.flatMap(({ touch }) => {
      const job = failureJob(ctx, endedOf(touch), touch.failure_callback);
      return job ? [touch.uid, JSON.stringify(job.kwargs)] : [];
    });
    const isCapped = ctx.config.get(settings.dailyCap) > 0;
    const sent = isCapped
      ? plans.flatMap(({ touch, outcome }) => (outcome === "reachable" ? [fieldOf(touch)] : []))
      : [];
    const tally = new Tally(ctx);
    const block = tally.block((counting) => {
      for (const { touch, outcome, messages } of plans) {
        const at = touch.queued_at;
        const word = `${touch.touch_point_event_slug}:${touch.channel}`;
        counting.incr(touchSendStats, "attempted", { extra: word, at });
        if (outcome === "stale") counting.incr(touchSendStats, "stale", { at });
        else if (outcome === "reachable")
          counting.incr(touchSendStats, "reachable", { extra: `${word}:${messages.length}`, at });
        else counting.incr(touchSendStats, "unreachable", { extra: word, at });
      }
    });
    const answer = await ctx.redis.run(
      dispatch,
      [
        keys.sendPurgatory(),
        keys.pending(),
        keys.toLog(),
        jobKeys.hot(),
        keys.toTell(),
        keys.sentOn({ unix_date: todayOf(ctx) }),
        ...([HANDOVERS.push(), HANDOVERS.sms(), HANDOVERS.email()] as const),
        ...tally.keys,
      ],
      [
        now.toFixed(6),
        entries.length,
        waiting.length,
        rows.length,
        failed.length,
        told.length,
        sent.length,
        SENT_ON_KEPT * 1000,
        TOUCH_CHANNELS.map((channel) => groups[channel].length).join(" "),
        ...entries.map(({ raw }) => asText(raw)),
        ...waiting.flatMap(({ touch, messages }) => [
          touch.uid,
          textOf(touch.success_callback),
          textOf(touch.failure_callback),
          messages.length,
          ...messages.map(({ uid }) => uid),
        ]),
        ...rows,
        ...failed.map((callback) => encodeJob({ ...callback, queued_at: now })),
        ...told,
        ...sent,
        ...TOUCH_CHANNELS.flatMap((channel) => groups[channel].map(({ raw }) => raw)),
        ...block,
      ],
    );
    if (!answer.ok) throw new Mismatch();
    noteSteps(ctx, plans.flatMap(notesOf));
    if (rows.length > 0) nudgeByName(ctx, "runners.touch.log");
    await this.#handing;
    this.#coming = lengthsOf(groups);
    this.#handing = handOverGroups(ctx, groups).then(() => {
      this.#coming = NONE;
    });
    // Whoever waits for it next hears of a failure.
    this.#handing.catch(() => {});
  }

  #note({ touch: { channel }, outcome }: Plan): void {
    this.#counts[`attempted_${channel}`] += 1;
    if (outcome === "stale") this.#counts.stale += 1;
    else this.#counts[`${outcome === "reachable" ? "reachable" : "unreachable"}_${channel}`] += 1;
  }
}

/** A touch that reached somebody has a step for each of its messages, which names it. */
function notesOf({ touch: { uid }, outcome, messages }: Plan): readonly Note[] {
  if (outcome !== "reachable") return [{ channel: "touch", uid, step: outcome }];
  return messages.map((message) => ({ channel: "touch", uid, step: "dispatched", detail: message.uid }));
}

const endedOf = ({ uid: touchUid, user_sub: userSub, channel }: TouchEntry) => ({ touchUid, userSub, channel });

/** What follows from a touch that reached nobody: its own callback, and telling of it. */
function jobsOfFailed(ctx: Context, { touch }: Plan): readonly Callback[] {
  return [touch.failure_callback, failureJob(ctx, endedOf(touch), touch.failure_callback)].flatMap((job) => job ?? []);
}

/** A call whose arguments are all texts costs less to write; bytes that are no text must stay as they are. */
const asText = (raw: Buffer) => (isUtf8(raw) ? raw.toString("utf8") : raw);

const textOf = (callback: Callback | null) => (callback ? JSON.stringify(callback) : "");

function lengthsOf(groups: Groups): Readonly<Record<TouchChannel, number>> {
  const sum = (channel: TouchChannel) => groups[channel].reduce((length, { items }) => length + items.length, 0);
  return { push: sum("push"), sms: sum("sms"), email: sum("email") };
}

function groupsOf(plans: readonly Plan[]): Groups {
  const groups: Record<TouchChannel, Groups[TouchChannel][number][]> = { push: [], sms: [], email: [] };
  for (const channel of TOUCH_CHANNELS) {
    const messages = plans.flatMap((plan) => (plan.touch.channel === channel ? plan.messages : []));
    for (let start = 0; start < messages.length; start += GROUP)
      groups[channel].push(groupOf(newUid("tho"), messages.slice(start, start + GROUP)));
  }
  return groups;
}

function failureCallbackOf(raw: Buffer): Callback | undefined {
  try {
    return z.object({ failure_callback: Callback }).parse(JSON.parse(raw.toString("utf8"))).failure_callback;
  } catch {
    return undefined;
  }
}

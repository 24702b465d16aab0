import { z } from "zod";
import { losesCallbacks } from "../../infrastructure/sandbox/service.ts";
import type { Context } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { Outcome } from "../../jobs/runner.ts";
import { deletePushTokens } from "../contacts/service.ts";
import * as email from "../email/service.ts";
import * as push from "../push/service.ts";
import * as sms from "../sms/service.ts";
import { arrived, failureJob, noteFailed } from "./effects.ts";
import { nudgeByName } from "./enqueue.ts";
import { type Callback, type LogEntry, logEntry, type TouchChannel } from "./entries.ts";
import { keys } from "./keys.ts";
import { settle, type TouchFate } from "./scripts.ts";
import { stepUid, trailOf } from "./trail.ts";

const Common = { attempt_uid: z.string(), touch_uid: z.string(), user_sub: z.string(), data_raw: z.string() };
export const FailureKwargs = z.object(Common);
export const SuccessKwargs = z.object({ ...Common, touch_point_uid: z.string() });
type FailureItem = z.output<typeof FailureKwargs>;
type SuccessItem = z.output<typeof SuccessKwargs>;

/** What became of one message of a touch, whatever its channel. */
interface Ended {
  readonly item: FailureItem;
  readonly messageUid: string;
  readonly destination: string;
  /** How often the message had failed before; makes the uid of the step. */
  readonly tries: number;
  readonly info: unknown;
  /** `raced`: newer news came in between, and this means nothing any more. */
  readonly verdict: "raced" | "retried" | "abandoned" | "unretryable";
}

interface Arrived {
  readonly item: SuccessItem;
  readonly messageUid: string;
  readonly destination: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly at: number;
}

/** How a channel's stories are read and its failures decided. One call for all items that can be read. */
interface ChannelStories {
  failures(ctx: Context, items: readonly FailureItem[]): Promise<readonly (Ended | Error)[]>;
  success(item: SuccessItem): Arrived;
}

/** Reads each story; one that is broken fails its own job alone. */
async function judged<Story, Verdict>(
  items: readonly FailureItem[],
  read: (raw: string) => Story,
  decide: (stories: readonly Story[]) => Promise<readonly Verdict[]>,
  ending: (item: FailureItem, story: Story, verdict: Verdict) => Ended,
): Promise<readonly (Ended | Error)[]> {
  const stories = items.map((item): Story | Error => {
    try {
      return read(item.data_raw);
    } catch (error) {
      return error as Error;
    }
  });
  const readable = stories.filter((story): story is Exclude<typeof story, Error> => !(story instanceof Error));
  const verdicts = await decide(readable);
  let at = 0;
  return stories.map((story, index) =>
    story instanceof Error ? story : ending(items[index]!, story as Story, verdicts[at++]!),
  );
}

const CHANNELS: Readonly<Record<TouchChannel, ChannelStories>> = {
  push: {
    async failures(ctx, items) {
      const ends = await judged(
        items,
        push.readFailure,
        (stories) => push.retryOrAbandon(ctx, stories),
        (item, { attempt, failure_info }, verdict) => ({
          item,
          messageUid: attempt.uid,
          destination: attempt.push_token,
          tries: attempt.retry,
          info: failure_info,
          verdict: verdict === "retry" ? "retried" : verdict === "abandon" ? "abandoned" : "unretryable",
        }),
      );
      const gone = ends.flatMap((end) => (end instanceof Error || !isUnregistered(end) ? [] : [end]));
      await deletePushTokens(
        ctx,
        gone.map(({ destination, info }) => ({
          token: destination,
          stage: (info as { action: string }).action === "send" ? ("ticket" as const) : ("receipt" as const),
        })),
      );
      return ends;
    },
    success(item) {
      const { attempt, result } = push.readSuccess(item.data_raw);
      const { uid: messageUid, push_token: destination, contents } = attempt;
      return { item, messageUid, destination, message: { ...contents }, at: result.receipt_checked_at };
    },
  },
  sms: {
    async failures(ctx, items) {
      let stories: readonly sms.FailureStory[] = [];
      const ends = await judged(
        items,
        sms.readFailure,
        (read) => {
          stories = read;
          return sms.decideFailures(ctx, read);
        },
        (item, { sms: text, failure_info }, { wantedToRetry, succeeded }) => ({
          item,
          messageUid: text.uid,
          destination: text.phone_number,
          tries: text.aud === "send" ? text.retry : 100 + text.num_failures,
          info: failure_info,
          verdict: smsVerdict(failure_info.retryable, wantedToRetry, succeeded),
        }),
      );
      await sms.suppressUnreachable(
        ctx,
        stories.filter(({ failure_info }) => !failure_info.retryable),
      );
      return ends;
    },
    success(item) {
      const { sms: text, result } = sms.readSuccess(item.data_raw);
      const { uid: messageUid, phone_number: destination, body } = text;
      return { item, messageUid, destination, message: { body }, at: result.message_resource_succeeded_at };
    },
  },
  email: {
    failures: (ctx, items) =>
      judged(
        items,
        email.readFailure,
        (stories) => email.handleFailures(ctx, stories),
        (item, { email: mail, info }, { wantedToRetry }) => ({
          item,
          messageUid: mail.uid,
          destination: mail.email,
          tries: mail.aud === "send" ? mail.retry : 100,
          info,
          verdict: wantedToRetry ? "retried" : info.retryable ? "abandoned" : "unretryable",
        }),
      ),
    success(item) {
      const { email: mail, info } = email.readSuccess(item.data_raw);
      const { uid: messageUid, email: destination, subject, template, template_parameters } = mail;
      const message = { subject, template, template_parameters };
      return { item, messageUid, destination, message, at: info.delivery_received_at };
    },
  },
};

function isUnregistered({ info, verdict }: Ended): boolean {
  return verdict !== "retried" && (info as { identifier?: string }).identifier === "DeviceNotRegistered";
}

function smsVerdict(retryable: boolean, wantedToRetry: boolean, succeeded: boolean): Ended["verdict"] {
  if (!retryable) return "unretryable";
  if (!succeeded) return "raced";
  return wantedToRetry ? "retried" : "abandoned";
}

const STEPS = { retried: "send_retry", abandoned: "send_abandon", unretryable: "send_unretryable" } as const;

/** Messages of touches that failed once more: the channel decides about another try, and a touch may end. */
export async function handleFailures(
  ctx: Context,
  channel: TouchChannel,
  items: readonly FailureItem[],
): Promise<readonly Outcome[]> {
  if (losesCallbacks(ctx)) return items.map(() => ({ ok: true }));
  const ends = await CHANNELS[channel].failures(ctx, items);
  const now = ctx.clock.now();
  const told = ends.flatMap((end) => (end instanceof Error || end.verdict === "raced" ? [] : [end]));
  const reports = told.map((end) => {
    const { item, messageUid, destination, tries, info, verdict } = end;
    const type = STEPS[verdict as keyof typeof STEPS];
    const rows = trailOf(
      ctx,
      {
        uid: stepUid(messageUid, type, tries),
        userSub: item.user_sub,
        event: { type, parent: item.attempt_uid, destination, info },
        at: now,
      },
      now,
    );
    return { how: verdict === "retried" ? ("retried" as const) : ("failed" as const), end, rows };
  });
  const fates = await report(
    ctx,
    reports.map(({ how, end: { item, messageUid }, rows }) => {
      const touch = { channel, touchUid: item.touch_uid, userSub: item.user_sub };
      return { how, item, messageUid, rows, tell: how === "failed" ? failureJob(ctx, touch) : undefined };
    }),
  );
  noteFailed(
    ctx,
    reports.flatMap(({ how, end }, at) => (how === "failed" && fates[at] === "ended" ? [end.item.touch_uid] : [])),
    now,
  );
  return ends.map((end) => (end instanceof Error ? { ok: false, error: end } : { ok: true }));
}

/** Messages of touches that arrived. */
export async function handleSuccesses(
  ctx: Context,
  channel: TouchChannel,
  items: readonly SuccessItem[],
): Promise<readonly Outcome[]> {
  if (losesCallbacks(ctx)) return items.map(() => ({ ok: true }));
  const now = ctx.clock.now();
  const arrivals = items.map((item): Arrived | Error => {
    try {
      return CHANNELS[channel].success(item);
    } catch (error) {
      return error as Error;
    }
  });
  const good = arrivals.filter((arrival): arrival is Arrived => !(arrival instanceof Error));
  const fates = await report(
    ctx,
    good.map((arrival) => ({
      how: "succeeded",
      item: arrival.item,
      messageUid: arrival.messageUid,
      rows: arrivalRows(ctx, channel, arrival, now),
    })),
  );
  await arrived(
    ctx,
    good.flatMap(({ item, destination, at }, index) =>
      fates[index] === "goes_on"
        ? []
        : [{ channel, touchUid: item.touch_uid, userSub: item.user_sub, destination, at }],
    ),
  );
  return arrivals.map((arrival) => (arrival instanceof Error ? { ok: false, error: arrival } : { ok: true }));
}

function arrivalRows(ctx: Context, channel: TouchChannel, arrival: Arrived, now: number): readonly LogEntry[] {
  const { item, messageUid, destination, message, at } = arrival;
  const event = { type: "send_success", parent: item.attempt_uid, destination };
  return [
    ...trailOf(ctx, { uid: stepUid(messageUid, "send_success"), userSub: item.user_sub, event, at }, now),
    {
      table: "user_touches",
      action: "insert",
      fields: {
        uid: item.touch_uid,
        row_uid: `crl_tch_r_${messageUid.replace(/^crl_[a-z]+_/, "")}`,
        user_sub: item.user_sub,
        channel,
        touch_point_uid: item.touch_point_uid,
        destination,
        message: { ...message },
        created_at: at,
      },
      queued_at: now,
    },
    ...(channel === "push"
      ? [
          {
            table: "user_push_tokens" as const,
            action: "update" as const,
            fields: { token: destination, last_confirmed_at: at },
            queued_at: now,
          },
        ]
      : []),
  ];
}

interface Report {
  readonly how: "succeeded" | "failed" | "retried";
  readonly item: FailureItem;
  readonly messageUid: string;
  readonly rows: readonly LogEntry[];
  /** Tells of the touch's failure, should this end it. */
  readonly tell?: Callback | undefined;
}

/** One call for all: rows are queued, and touches end. A message that is tried again ends nothing. */
async function report(ctx: Context, reports: readonly Report[]): Promise<readonly TouchFate[]> {
  if (reports.length === 0) return [];
  const fates = await ctx.redis.run(
    settle,
    [keys.pending(), keys.toLog(), jobKeys.hot(), keys.toTell()],
    [
      ctx.clock.now().toFixed(6),
      ...reports.flatMap(({ how, item, messageUid, rows, tell }) => [
        how,
        item.touch_uid,
        messageUid,
        tell ? JSON.stringify(tell) : "",
        rows.length,
        ...rows.map((row) => logEntry.encode(row)),
      ]),
    ],
  );
  nudgeByName(ctx, "runners.touch.log");
  return fates;
}

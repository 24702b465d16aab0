import { expect } from "vitest";
import { sample } from "../../src/messaging/email/email.fixture.ts";
import * as email from "../../src/messaging/email/service.ts";
import { newPush } from "../../src/messaging/push/push.fixture.ts";
import * as push from "../../src/messaging/push/service.ts";
import * as sms from "../../src/messaging/sms/service.ts";
import type { KnobPatch } from "../../src/sandbox/knobs.ts";
import type { OutageHouse } from "./house.ts";

interface End {
  readonly uid: string;
  readonly how: "succeeded" | "failed";
}

/** What the tests of outages need of a channel. */
export interface Channel {
  readonly name: "push" | "sms" | "email";
  queue(house: OutageHouse, count: number): Promise<readonly string[]>;
  /** The provider answers 503 for so long. */
  out(from: number, until: number): KnobPatch;
  /** The provider takes its time, so that messages are with it when something happens. */
  slow(milliseconds: number): KnobPatch;
  /** Every end that a message had. */
  ends(house: OutageHouse): Promise<readonly End[]>;
}

const stories = ({ heard }: OutageHouse, job: string) => heard.get(job) ?? [];
const queued = (answer: { readonly ok: boolean; readonly uids?: readonly string[] }) => {
  expect(answer.ok).toBe(true);
  return answer.uids!;
};

const pushChannel: Channel = {
  name: "push",
  queue: async ({ ctx }, count) =>
    queued(
      await push.enqueuePushes(
        ctx,
        Array.from({ length: count }, (_, at) => newPush(`device${at}`)),
      ),
    ),
  out: (from, until) => ({ expo: { outage: { from, until } } }),
  slow: (latencyMs) => ({ expo: { latencyMs } }),
  async ends(house) {
    const failures = stories(house, "runners.push.default_failure").map(push.readFailure);
    const verdicts = await push.retryOrAbandon(house.ctx, failures);
    return [
      ...stories(house, "runners.push.default_success").map(
        (raw): End => ({ uid: push.readSuccess(raw).attempt.uid, how: "succeeded" }),
      ),
      ...failures
        .filter((_, at) => verdicts[at] !== "retry")
        .map(({ attempt }): End => ({ uid: attempt.uid, how: "failed" })),
    ];
  },
};

let texts = 0;
const smsChannel: Channel = {
  name: "sms",
  queue: async ({ ctx }, count) =>
    queued(
      await sms.enqueueSms(
        ctx,
        Array.from({ length: count }, () => ({
          phoneNumber: `+1415555${String(++texts).padStart(4, "0")}`,
          body: `Time to breathe ${texts}`,
          failureJob: { name: sms.DEFAULT_FAILURE, kwargs: {} },
          successJob: { name: sms.DEFAULT_SUCCESS, kwargs: {} },
        })),
      ),
    ),
  out: (from, until) => ({ twilio: { outage: { from, until } } }),
  slow: (latencyMs) => ({ twilio: { latencyMs } }),
  async ends(house) {
    const failures = stories(house, sms.DEFAULT_FAILURE).map(sms.readFailure);
    const verdicts = await sms.decideFailures(house.ctx, failures);
    return [
      ...stories(house, sms.DEFAULT_SUCCESS).map(
        (raw): End => ({ uid: sms.readSuccess(raw).sms.uid, how: "succeeded" }),
      ),
      ...failures
        .filter((_, at) => verdicts[at]!.succeeded && !verdicts[at]!.wantedToRetry)
        .map((story): End => ({ uid: story.sms.uid, how: "failed" })),
    ];
  },
};

let mails = 0;
const emailChannel: Channel = {
  name: "email",
  queue: async ({ ctx }, count) =>
    queued(
      await email.enqueueMails(
        ctx,
        Array.from({ length: count }, () => sample(`ada${++mails}@example.com`)),
      ),
    ),
  out: (from, until) => ({ ses: { outage: { from, until } } }),
  slow: (latency_ms) => ({ ses: { latency_ms } }),
  async ends(house) {
    const failures = stories(house, "runners.emails.default_failure").map(email.readFailure);
    const verdicts = await email.decideFailures(house.ctx, failures);
    return [
      ...stories(house, "runners.emails.default_success").map(
        (raw): End => ({ uid: email.readSuccess(raw).email.uid, how: "succeeded" }),
      ),
      ...failures
        .filter((_, at) => !verdicts[at]!.wantedToRetry)
        .map((story): End => ({ uid: story.email.uid, how: "failed" })),
    ];
  },
};

export const channels: readonly Channel[] = [pushChannel, smsChannel, emailChannel];

/** Waits until all of these messages have ended, and fails when one of them ended twice or a callback was called twice. */
export async function untilEnded(
  house: OutageHouse,
  queued: ReadonlyMap<Channel, readonly string[]>,
): Promise<ReadonlyMap<string, End["how"]>> {
  const uids = [...queued.values()].flat();
  const ended = async () => (await Promise.all(channels.map((channel) => channel.ends(house)))).flat();
  await house.passUntil(async () => (await ended()).length >= uids.length, `the end of ${uids.length} messages`);
  // Time for a second end, if there were one.
  await house.pass(900);
  const all = await ended();
  expect(all.map(({ uid }) => uid).sort()).toEqual([...uids].sort());
  const repeated = [...house.heard.values()].flatMap((each) => each.filter((story, at) => each.indexOf(story) !== at));
  expect(repeated).toEqual([]);
  return new Map(all.map(({ uid, how }) => [uid, how]));
}

import { afterEach, beforeEach, expect, test } from "vitest";
import { settings as emailSettings } from "../../src/messaging/email/settings.ts";
import { settings as pushSettings } from "../../src/messaging/push/settings.ts";
import { STATUS_WEBHOOK } from "../../src/messaging/sms/addresses.ts";
import { settings as smsSettings } from "../../src/messaging/sms/settings.ts";
import { type Channel, channels, untilEnded } from "./channels.ts";
import { type OutageHouse, openOutageHouse } from "./house.ts";

const HOUR = 3600;
const TIMEOUT = 600_000;
const WEBHOOKS = [STATUS_WEBHOOK, "/api/1/emails/sns-mail"];
const windows = { push: pushSettings.window, sms: smsSettings.window, email: emailSettings.window };

let house: OutageHouse;
beforeEach(async () => {
  house = await openOutageHouse();
});
afterEach(() => house.close());

type Queued = ReadonlyMap<Channel, readonly string[]>;

/** The same number of messages on every channel. */
async function queueOnAll(count: number): Promise<Queued> {
  const queued = new Map<Channel, readonly string[]>();
  for (const channel of channels) queued.set(channel, await channel.queue(house, count));
  return queued;
}

/** How many of these succeeded, by channel; all have ended, and none twice. */
async function successes(all: readonly Queued[]): Promise<readonly Readonly<Record<string, number>>[]> {
  const ends = await untilEnded(
    house,
    new Map(channels.map((channel) => [channel, all.flatMap((queued) => queued.get(channel)!)])),
  );
  return all.map((queued) =>
    Object.fromEntries(
      channels.map((channel) => [
        channel.name,
        queued.get(channel)!.filter((uid) => ends.get(uid) === "succeeded").length,
      ]),
    ),
  );
}

const each = (count: number) => ({ push: count, sms: count, email: count });
const taken = ({ name }: Channel) => house.sandbox.inbox.all().filter((message) => message.channel === name).length;

test("when the providers are down for an hour every message ends once, and those that can wait for its end succeed", {
  timeout: TIMEOUT,
}, async () => {
  const now = house.base.clock.now();
  for (const channel of channels) house.sandbox.knobs.patch(channel.out(now, now + HOUR));
  const early = await queueOnAll(12);
  await house.pass(HOUR - 60);
  const late = await queueOnAll(12);
  await house.pass(120);
  const after = await queueOnAll(12);
  // The first were tried until their last try failed; that the others succeeded needed nobody to start anything.
  expect(await successes([early, late, after])).toEqual([each(0), each(12), each(12)]);
  expect(await house.findings()).toEqual([]);
});

test("when Redis is killed with messages at the providers and starts again, each ends once and the channels go on", {
  timeout: TIMEOUT,
}, async () => {
  for (const channel of channels) house.sandbox.knobs.patch(channel.slow(4000));
  const before = await queueOnAll(40);
  // Some have been answered and some are on their way.
  await house.passUntil(() => channels.every((channel) => taken(channel) > 0), "the first messages at the providers");
  await house.restartRedis();
  house.sandbox.knobs.reset();
  const after = await queueOnAll(5);
  expect(await successes([before, after])).toEqual([each(40), each(5)]);
  for (const channel of channels)
    expect(taken(channel)).toBeLessThanOrEqual(45 + (windows[channel.name].default as number));
  expect(await house.findings()).toEqual([]);
});

test("when SQL is down for a minute webhooks are answered, nothing is lost, and everything ends once afterwards", {
  timeout: TIMEOUT,
}, async () => {
  // Late enough to be told of messages in the outage that were sent before it.
  house.sandbox.knobs.patch({ twilio: { stepSeconds: 120 }, ses: { notify_delay_s: 120 } });
  const before = await queueOnAll(10);
  await house.passUntil(() => channels.every((channel) => taken(channel) > 0), "the first messages at the providers");
  house.database.dead = true;
  const during = await queueOnAll(10);
  await house.pass(60);
  // What providers tell meanwhile is taken: it needs no SQL until it is worked in.
  const told = () => house.webhooks.filter(({ withoutSql }) => withoutSql);
  await house.passUntil(
    () => WEBHOOKS.every((path) => told().some((webhook) => webhook.path === path)),
    "webhooks of both kinds while SQL is down",
  );
  house.database.dead = false;
  expect(told().filter(({ status }) => status !== 200 && status !== 202)).toEqual([]);
  const after = await queueOnAll(10);
  expect(await successes([before, during, after])).toEqual([each(10), each(10), each(10)]);
  expect(channels.map(taken)).toEqual([30, 30, 30]);
  expect(await house.findings()).toEqual([]);
});

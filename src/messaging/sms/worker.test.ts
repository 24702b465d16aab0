import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { type JobQueue, Worker } from "../../jobs/index.ts";
import { receiptStaleDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { openSms, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsPollingStats, smsSendStats } from "./stats.ts";

let house: SmsHouse;
let worker: Worker;
beforeAll(async () => {
  house = await openSms();
  worker = new Worker(house.ctx, house.ctx.jobs as JobQueue, {
    version: "test",
    instance: "1",
    heartbeat: "inline",
    onStuck: () => {},
  });
  await worker.start();
});
afterAll(async () => {
  await worker.stop(AbortSignal.abort());
  await house.close();
});

test("on an idle system a text is with the provider at once, and its end is worked in as soon as the webhook came", async () => {
  const queuedAt = house.base.clock.now();
  await house.text("+14155550132");
  await eventually(() => house.outbox().length === 1, "the text at the provider");
  expect(house.base.clock.now() - queuedAt).toBeLessThan(1);
  await eventually(async () => (await house.length(keys.pending())) === 1, "the pending message");
  for (let second = 0; second < 4; second++) {
    await house.base.clock.advance(1);
    await house.base.redis.commands.ping();
  }
  await eventually(async () => (await house.length(keys.pending())) === 0, "the end of the text");
  expect(house.base.clock.now() - queuedAt).toBeLessThan(14);
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 1, succeeded_pending: 1 });
  expect((await house.counts(smsEventStats)).events).toMatchObject({ removed: 1, succeeded: 1 });
  await house.audit();
});

test("on an idle system a silent text is asked about as soon as that was decided, and the answer is worked in at once", async () => {
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  // Nudges that follow too soon on those for the text before would wait for the clock.
  await house.base.clock.advance(1);
  await house.text("+14155550133");
  await eventually(async () => (await house.length(keys.pending())) === 1, "the silent message");
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  await house.ctx.redis.commands.zadd(keys.pending(), 1, sid!);
  const began = house.base.clock.now();
  await house.run(receiptStaleDetection);
  const counted = async (family: typeof smsPollingStats | typeof smsEventStats, event: string) =>
    (await house.counts(family)).events[event] === 1;
  await eventually(() => counted(smsPollingStats, "received"), "the answer to the question");
  await eventually(() => counted(smsEventStats, "received_via_polling"), "the news worked in");
  // By their schedules the two jobs would have come seconds later, and one after the other.
  expect(house.base.clock.now() - began).toBeLessThan(1);
  house.sandbox.knobs.reset();
});

test("on an idle system STOP is followed as soon as it was answered", async () => {
  const began = house.base.clock.now();
  expect(await house.sandbox.recipients.text("+14155550134", "STOP")).toEqual({ answered: 200 });
  await eventually(
    async () => (await house.query("select 1 from suppressed_phone_numbers")).length === 1,
    "the suppression",
  );
  expect(house.base.clock.now() - began).toBeLessThan(1);
});

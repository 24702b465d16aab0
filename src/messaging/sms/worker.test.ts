import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { type JobQueue, Worker } from "../../jobs/index.ts";
import { keys } from "./keys.ts";
import { openSms, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsSendStats } from "./stats.ts";

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

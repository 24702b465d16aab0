import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { passTime, passTimeUntil } from "../../../test/harness/time.ts";
import { type JobQueue, Worker } from "../../jobs/index.ts";
import { type EmailContext, type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { keys } from "./keys.ts";
import { pauseLists } from "./paused-lists.ts";
import { attemptsFor, decideFailures } from "./service.ts";
import { settings } from "./settings.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

const PERSON = "ada@example.com";

let house: EmailHouse;
let around: EmailContext;
let worker: Worker;
const taker = new Taker();
beforeAll(async () => {
  house = await openEmail();
  around = house.process({ provider: taker, config: [[settings.retryDelays, [0]]] });
  const options = { version: "test", instance: "1", heartbeat: "inline", onStuck: () => {} } as const;
  worker = new Worker(around, around.jobs as JobQueue, options);
  await worker.start();
});
afterAll(async () => {
  await worker.stop(AbortSignal.abort());
  await house.close();
});
beforeEach(async () => {
  house.sandbox.knobs.reset();
  taker.taken.length = 0;
});

/** Jobs ran a moment ago by their schedule, and will not for the next fourteen seconds: whatever happens then was nudged. */
const betweenSchedules = () => passTime(house.base, 60 + 16 - (house.base.clock.now() % 60));
const soon = (fact: () => Promise<boolean> | boolean, what: string) =>
  passTimeUntil(house.base, fact, { step: 0.1, limit: 10, what });
const pending = () => house.length(keys.pending());

test("on an idle system a mail is with the provider at once, and its end is worked in as soon as the topic reports", async () => {
  await betweenSchedules();
  const uid = await house.mail(sample(PERSON));
  await soon(async () => (await pending()) === 1, "the mail at the provider");
  expect(taker.taken).toEqual([uid]);
  await betweenSchedules();
  const mail = { messageId: `m-${uid}-1`, destination: [PERSON] };
  await house.sandbox.ses.topic.publish({ notificationType: "Delivery", mail });
  await soon(async () => (await pending()) === 0, "the end of the mail");
  expect((await house.counts(emailSendStats)).events).toMatchObject({ queued: 1, accepted: 1 });
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ found: 1 });
  await house.audit();
});

test("a mail that may be tried again at once is", async () => {
  await betweenSchedules();
  const [attempt] = attemptsFor(around, [sample(PERSON)]);
  const info = { step: "send", error_identifier: "SESServerError", retryable: true, extra: null } as const;
  expect(await decideFailures(around, [{ email: attempt!, info }])).toEqual([{ wantedToRetry: true }]);
  await soon(() => taker.taken.length === 1, "the second try");
  expect(taker.taken).toEqual([attempt!.uid]);
});

test("mails of a paused list go out as soon as an administrator lets lists go on", async () => {
  await pauseLists(house.ctx, "too many complaints");
  const parameters = { name: "Ada", message: "Time to breathe", url: "https://example.com/now" };
  const uid = await house.mail({ email: PERSON, template: "dailyReminder", parameters });
  await soon(async () => (await house.length(keys.paused())) === 1, "the mail aside");
  await betweenSchedules();
  expect(taker.taken).toEqual([]);
  const headers = { authorization: `Bearer ${house.admin}` };
  const resumed = await fetch(`${house.url}/api/1/admin/email/lists/resume`, { method: "POST", headers });
  expect(resumed.status).toBe(200);
  await soon(() => taker.taken.length === 1, "the mail at the provider");
  expect(taker.taken).toEqual([uid]);
});

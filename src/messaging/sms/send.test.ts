import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { jobErrors } from "../../jobs/errors.ts";
import { listQuarantined } from "../../mechanisms/quarantine/index.ts";
import { receiptReconciliation, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { acceptHandover, enqueueSms, errors, smsEntries } from "./service.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsSendStats } from "./stats.ts";

const PERSON = "+14155550132";
const OTHER = "+14155550133";
const job = (name: string) => ({ name, kwargs: {} });
const callbacks = {
  failureJob: job("runners.sms.default_failure"),
  successJob: job("runners.sms.default_success"),
};

let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const news = (count: number) => eventually(async () => (await house.length(keys.event())) === count, "the webhooks");

test("a text is accepted, followed by webhooks over real HTTP, and ends with one success job", async () => {
  await house.text(PERSON);
  await house.run(send);
  expect(await house.length(keys.pending())).toBe(1);
  await house.base.clock.advance(2);
  await news(2);
  await house.run(receiptReconciliation);
  await house.base.clock.advance(1);
  await news(1);
  await house.run(receiptReconciliation);
  expect(await house.length(keys.pending())).toBe(0);
  expect(await house.callbacks()).toEqual(["runners.sms.default_success"]);
  const { events, words } = await house.counts(smsEventStats);
  expect(events).toEqual({
    attempted: 3,
    received_via_webhook: 3,
    pending: 2,
    succeeded: 1,
    found: 3,
    updated: 2,
    removed: 1,
  });
  expect(words.removed).toEqual({ "sending:sent": 1 });
  await house.base.clock.advance(1);
  await news(1);
  await house.run(receiptReconciliation);
  expect(await house.length(keys.early())).toBe(1);
  await house.base.clock.advance(70);
  await house.run(receiptReconciliation);
  expect((await house.counts(smsEventStats)).words.unknown).toEqual({ delivered: 1 });
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 1, succeeded_pending: 1 });
  await house.audit();
});

test("three refusals for our pace cost rests of 2, 4 and 8 s, and every text is sent once in the end", async () => {
  const slow = house.process({ config: [[settings.window as never, 1]] });
  for (const number of ["+14155550101", "+14155550102", "+14155550103", "+14155550104"]) await house.text(number);
  house.sandbox.knobs.patch({ twilio: { failNext: { status: 429, count: 3, code: 20429 } } });
  await house.run(send, slow);
  expect(house.rests.map(Math.ceil)).toEqual([2, 4, 8]);
  expect(house.outbox()).toHaveLength(1);
  await house.callbacks();
  await house.base.clock.advance(15);
  await house.run(send, slow);
  expect(new Set(house.outbox().map(({ to }) => to)).size).toBe(4);
  expect(house.outbox()).toHaveLength(4);
  const { events, words } = await house.counts(smsSendStats);
  expect(events).toMatchObject({ queued: 4, retried: 3, failed_due_to_application_error_ratelimit: 3 });
  expect(words.failed_due_to_application_error_ratelimit).toEqual({ "20429": 3 });
  await house.audit();
});

test("an unreachable number is suppressed, its text fails without a rest, and the next one goes at once", async () => {
  await house.text("+15005550004");
  await house.text(PERSON);
  await house.run(send);
  expect(house.rests).toEqual([]);
  expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
  expect((await house.counts(smsSendStats)).words.failed_due_to_application_error_other).toEqual({ "21610": 1 });
  expect(await house.query("select phone_number, reason from suppressed_phone_numbers")).toEqual([
    { phone_number: "+15005550004", reason: "Unreachable" },
  ]);
  expect(house.outbox().map(({ to }) => to)).toEqual([PERSON]);
});

test("a number that is suppressed while its text waits gets nothing, and neither does a test number", async () => {
  await house.text(PERSON);
  await house.text("+15555555555");
  await house.query(
    `insert into suppressed_phone_numbers (uid, phone_number, reason, reason_details, created_at)
     values ('crl_spn_x', '${PERSON}', 'Stop', '{}', now())`,
  );
  await house.run(send);
  expect(house.outbox()).toEqual([]);
  expect((await house.counts(smsSendStats)).words).toEqual({
    failed_due_to_application_error_other: { "21610": 1 },
    failed_due_to_client_error_other: { "418": 1 },
  });
});

test("an entry that is no text is set aside, and its neighbours are sent", async () => {
  await house.text(PERSON);
  await house.ctx.redis.commands.rpush(keys.toSend(), "not json");
  await house.text(OTHER);
  await house.run(send);
  expect(house.outbox().map(({ to }) => to)).toEqual([PERSON, OTHER]);
  const quarantined = await listQuarantined(house.ctx, keys.toSend());
  expect(quarantined.map((entry) => "raw" in entry && entry.raw)).toEqual(["not json"]);
});

test("wrong credentials put the batch back in order and fail no text", async () => {
  const uids = [await house.text(PERSON), await house.text(OTHER)];
  house.sandbox.knobs.patch({ twilio: { failNext: { status: 401, count: 20, code: 20003 } } });
  await house.run(send);
  const waiting = await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1);
  expect(waiting.map((raw) => JSON.parse(raw).uid)).toEqual(uids);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 2 });
  expect(house.ctx.alerts.identifiers()).toContain("providers:credentials");
  house.sandbox.knobs.reset();
  await house.run(send);
  expect(house.outbox()).toHaveLength(2);
});

test("a text whose request was cut after the provider took it is found there, not sent again", async () => {
  await house.text(PERSON);
  house.sandbox.knobs.patch({ twilio: { dropConnectionAfterCreate: 1 } });
  await house.run(send);
  expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
  await house.base.clock.advance(15);
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
  const { events } = await house.counts(smsSendStats);
  expect(events).toMatchObject({ queued: 1, retried: 1, failed_due_to_network_error: 1 });
  expect(events.succeeded_immediate ?? events.succeeded_pending).toBe(1);
  await house.audit();
});

test("a provider that is down costs a text four tries, and then it is given up", async () => {
  await house.text(PERSON);
  house.sandbox.knobs.patch({ twilio: { outage: { from: 0, until: 9e12 } } });
  for (const delay of [15, 60, 300, 0]) {
    await house.run(send);
    await house.callbacks();
    await house.base.clock.advance(delay);
  }
  expect((await house.counts(smsSendStats)).events).toEqual({
    queued: 1,
    retried: 3,
    abandoned: 1,
    failed_due_to_server_error: 4,
  });
  expect(await house.length(keys.retrying())).toBe(0);
  await house.audit();
});

test("a text that could poison the queue is refused, and a call or hand-over that is repeated adds nothing", async () => {
  const refused = (text: object) => enqueueSms(house.ctx, [{ phoneNumber: PERSON, body: "hi", ...callbacks, ...text }]);
  await expect(refused({ phoneNumber: "0123" })).rejects.toSatisfy(errors.invalid_sms.matches);
  await expect(refused({ body: "" })).rejects.toSatisfy(errors.invalid_sms.matches);
  await expect(refused({ body: "x".repeat(1601) })).rejects.toSatisfy(errors.invalid_sms.matches);
  await expect(refused({ failureJob: job("runners.none") })).rejects.toSatisfy(jobErrors.unknown_job.matches);
  const poisoned = { name: "runners.sms.default_failure", kwargs: { data_raw: "x" } };
  await expect(refused({ failureJob: poisoned })).rejects.toSatisfy(errors.invalid_sms.matches);
  const text = [{ phoneNumber: PERSON, body: "hi", ...callbacks }];
  expect((await enqueueSms(house.ctx, text, { callUid: "call1" })).ok).toBe(true);
  expect(await enqueueSms(house.ctx, text, { callUid: "call1" })).toEqual({ ok: false, reason: "duplicate" });
  expect(await enqueueSms(house.ctx, text, { maxLength: 1 })).toEqual({ ok: false, reason: "backpressure" });
  const group = { uid: "group1", entries: smsEntries(house.ctx, text) };
  expect(await acceptHandover(house.ctx, group)).toBe("accepted");
  expect(await acceptHandover(house.ctx, group)).toBe("duplicate");
  expect(await house.length(keys.toSend())).toBe(2);
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 2 });
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mortalConnection } from "../../../test/harness/chaos.ts";
import { access } from "../../infrastructure/access/index.ts";
import { createAdminToken } from "../../infrastructure/access/service.ts";
import { loadConfig } from "../../kernel/config.ts";
import { messageLogKeys, notesSettled } from "../../mechanisms/message-log/index.ts";
import { createUser } from "../../people/users/service.ts";
import { addPhones } from "../contacts/service.ts";
import { disablePhonesInDev } from "./dev-phones.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send, sendTestJob } from "./jobs.ts";
import { keys } from "./keys.ts";
import { enqueueSms } from "./service.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsHouse } from "./sms.fixture.ts";

const PERSON = "+14155550132";

let house: SmsHouse;
let token: string;
beforeAll(async () => {
  house = await openSms();
  ({ token } = await createAdminToken(house.ctx, { label: "test" }));
});
afterAll(() => house.close());
beforeEach(() => house.clear());

async function ask(path: string, body?: object) {
  const response = await fetch(`${house.url}/api/1/admin/sms/${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  const [cached, later] = [response.headers.get("cache-control"), response.headers.get("retry-after")];
  return { status: response.status, answer, cached, later };
}

test("administrators see what waits at every station, and what each job did last", async () => {
  for (const path of ["send_job", "receipt_stale_job", "receipt_recovery_job", "receipt_reconciliation_job"])
    expect((await ask(`last_${path}`)).status).toBe(404);
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  const queuedAt = house.base.clock.now();
  await house.text(PERSON);
  const waiting = await ask("send_queue_info");
  expect(waiting).toMatchObject({ status: 200, cached: "no-store" });
  expect(waiting.answer).toEqual({ length: 1, retrying: 0, oldest_last_queued_at: queuedAt });
  await house.run(send);
  await house.base.clock.advance(901);
  expect((await ask("pending_set_info")).answer).toMatchObject({ length: 1, num_overdue: 1 });
  await house.run(receiptStaleDetection);
  await house.callbacks();
  expect((await ask("recovery_queue_info")).answer).toEqual({ length: 1, purgatory_size: 0 });
  await house.run(receiptRecovery);
  const news = (await ask("event_queue_info")).answer;
  expect(news).toMatchObject({ length: 1, early: 0 });
  expect(news.oldest_item_delay).toBeGreaterThan(890);
  await house.run(receiptReconciliation);
  const run = { state: "ok", stop_reason: "list_exhausted" };
  expect((await ask("last_send_job")).answer).toMatchObject({ ...run, attempted: 1, pending: 1, purgatory_size: 0 });
  expect((await ask("last_receipt_stale_job")).answer).toMatchObject({ ...run, callbacks_queued: 1 });
  expect((await ask("last_receipt_recovery_job")).answer).toMatchObject({ ...run, attempted: 1, pending: 1 });
  expect((await ask("last_receipt_reconciliation_job")).answer).toMatchObject({ ...run, attempted: 1, duplicate: 1 });
});

test("a test text is queued, unless its number is suppressed or too many texts wait", async () => {
  const text = { phone_number: PERSON, body: "Does this arrive?" };
  const queued = await ask("test_sms", text);
  expect([queued.status, queued.answer.uid]).toEqual([202, expect.stringMatching(/^crl_sms_/)]);
  expect((await ask("test_sms", { ...text, phone_number: "0123" })).status).toBe(422);
  await house.query(
    `insert into suppressed_phone_numbers (uid, phone_number, reason, reason_details, created_at)
     values ('crl_spn_x', '${PERSON}', 'Stop', '{}', now())`,
  );
  expect(await ask("test_sms", text)).toMatchObject({ status: 409, answer: { type: "suppressed" } });
  await house.ctx.redis.commands.rpush(keys.toSend(), ...Array.from({ length: 1000 }, () => "x"));
  expect(await ask("test_sms", { ...text, phone_number: "+14155550199" })).toMatchObject({
    status: 503,
    later: "60",
    answer: { type: "backpressure", hint: expect.stringContaining("try again") },
  });
});

test("a job that sends a test text and runs twice sends it once", async () => {
  const job = { name: sendTestJob.name, uid: undefined, queuedAt: house.base.clock.now() };
  const ctx = Object.create(house.ctx, { job: { value: job } });
  for (let run = 0; run < 2; run++)
    await sendTestJob.run!(ctx, { phone_number: PERSON, body: "Does this arrive once?" });
  expect(await house.length(keys.toSend())).toBe(1);
});

test("an administrator learns what a text would cost before it goes to many", async () => {
  const { status, answer } = await ask("estimate", { body: `it’s ${"a".repeat(70)}`, recipients: 1000 });
  expect([status, answer]).toEqual([
    200,
    { encoding: "UCS-2", units: 75, segments: 2, unusual: ["’"], total_segments: 2000 },
  ]);
  expect((await ask("estimate", { body: "", recipients: 1 })).status).toBe(422);
});

async function notedGroups(): Promise<readonly string[]> {
  await notesSettled(house.ctx);
  return house.ctx.redis.commands.lrange(messageLogKeys.buffer(), 0, -1);
}

/** Each step of a text: what happened, through whom, and how. */
const storyOf = (groups: readonly string[], uid: string) =>
  groups
    .flatMap((group) => JSON.parse(group) as (string | number | null)[][])
    .filter(([, of]) => of === uid)
    .map(([, , , step, provider, detail]) => [step, provider, detail]);

test("the story of a text that was found at the provider tells who had taken it", async () => {
  house.sandbox.knobs.patch({ twilio: { dropConnectionAfterCreate: 1, callbacks: "off", stuckAt: "accepted" } });
  const uid = await house.text(PERSON);
  await house.run(send);
  await house.callbacks();
  await house.base.clock.advance(15);
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
  expect(storyOf(await notedGroups(), uid)).toEqual([
    ["queued", null, null],
    ["failed", "twilio", "NetworkError"],
    ["retried", null, null],
    ["accepted", "twilio", "accepted"],
  ]);
});

test("the story of a text tells who took it, what was heard of it and how it ended, and never its words", async () => {
  house.sandbox.knobs.patch({ twilio: { failNext: { status: 503, count: 1 }, callbacks: "off", stuckAt: "accepted" } });
  const uid = await house.text(PERSON, "your code is 271828");
  await house.run(send);
  await house.callbacks();
  await house.base.clock.advance(15);
  await house.run(send);
  await house.base.clock.advance(901);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  house.sandbox.knobs.reset();
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  const news = { sid, status: "undelivered", error_code: "30008", error_message: null, date_updated: null };
  const told = { ...news, information_received_at: house.base.clock.now(), received_via: "webhook" };
  await house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(told));
  await house.run(receiptReconciliation);
  const groups = await notedGroups();
  expect(groups.join()).not.toContain("271828");
  expect(storyOf(groups, uid)).toEqual([
    ["queued", null, null],
    ["failed", "twilio", "ServerError 503"],
    ["retried", null, null],
    ["accepted", "twilio", "accepted"],
    ["silent", null, "accepted"],
    ["asked_about", null, null],
    ["ended", null, "undelivered 30008"],
  ]);
});

test("a system that was declared to be for development switches every number off but the test numbers, and one that nobody declared anything does not", async () => {
  await createUser(house.ctx, [], { sub: "ada" });
  const phone = (phoneNumber: string) => ({
    userSub: "ada",
    phoneNumber,
    verified: true,
    receivesNotifications: true,
    cause: "verify" as const,
  });
  await addPhones(house.ctx, [phone(PERSON), phone("+15555555555")]);
  /** The house as an installation starts it with these variables. */
  const started = (environment: Record<string, string>) => {
    const config = loadConfig(Object.values(access.settings) as never, { environment });
    return Object.assign(Object.create(house.ctx, { config: { value: config } }), { shuttingDown: () => false });
  };
  expect(await disablePhonesInDev(started({}))).toBe(0);
  expect(await disablePhonesInDev(started({ CARILLON_ENV: "" }))).toBe(0);
  expect(await disablePhonesInDev(started({ CARILLON_ENV: "production" }))).toBe(0);
  expect(await disablePhonesInDev(started({ CARILLON_ENV: "development" }))).toBe(1);
  expect(
    await house.query("select phone_number from user_phone_numbers where receives_notifications order by phone_number"),
  ).toEqual([{ phone_number: "+15555555555" }]);
});

test("a thousand texts cost at most a fifth of a Redis call each", async () => {
  const job = (name: string) => ({ name, kwargs: {} });
  const texts = Array.from({ length: 500 }, (_, at) => ({
    phoneNumber: `+1415555${String(1000 + at)}`,
    body: `to ${at}`,
    failureJob: job("runners.sms.default_failure"),
    successJob: job("runners.sms.default_success"),
  }));
  await enqueueSms(house.ctx, texts);
  await enqueueSms(house.ctx, texts);
  const counted = await mortalConnection(house.base.server);
  const wide = house.process({ redis: counted, config: [[settings.window as never, 500]] });
  const take = async () => ({ ok: true, state: "succeeded", resource: { ...RESOURCE, sid: "SM" }, provider: "here" });
  Object.assign(wide, { providers: { sms: { create: take } } });
  await house.run(send, wide);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect(counted.sent).toBeLessThan(200);
  counted.commands.disconnect();
});

const RESOURCE = { status: "sent", errorCode: null, errorMessage: null, dateUpdated: null };

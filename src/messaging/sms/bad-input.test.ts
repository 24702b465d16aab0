import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { createAdminToken } from "../../infrastructure/access/service.ts";
import { explain } from "../../kernel/keyspace/index.ts";
import { dataRawErrors, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { listQuarantined, quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { signTwilioRequest } from "../../providers/twilio-signature.ts";
import { SANDBOX_TWILIO } from "../../sandbox/sandbox.ts";
import { handleFailures } from "./defaults.ts";
import { LARGEST_ENTRY, LARGEST_NEW_ENTRY, type SmsEvent, smsEntry } from "./entries.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { enqueueSms, errors, smsEntries } from "./service.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsContext, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsPollingStats, smsSendStats } from "./stats.ts";
import { takeStatusWebhook } from "./status-webhook.ts";

const PERSON = "+14155550132";
const OTHER = "+14155550133";
const SECRET = "your code is 271828";
const FAILURE = "runners.sms.default_failure";
const SUCCESS = "runners.sms.default_success";
const job = (name: string, kwargs: Record<string, unknown> = {}) => ({ name, kwargs });
const text = (body: string, kwargs: Record<string, unknown> = {}) => ({
  phoneNumber: PERSON,
  body,
  failureJob: job(FAILURE, kwargs),
  successJob: job(SUCCESS),
});

let house: SmsHouse;
let token: string;
beforeAll(async () => {
  house = await openSms();
  ({ token } = await createAdminToken(house.ctx, { label: "test" }));
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const refused = (one: ReturnType<typeof text>) =>
  expect(enqueueSms(house.ctx, [one])).rejects.toSatisfy(errors.invalid_sms.matches);

/** A text whose entry has exactly so many bytes. */
function textOf(bytes: number, body: string) {
  const [bare] = smsEntries(house.ctx, [text(body, { filler: "" })]);
  return text(body, { filler: "x".repeat(bytes - Buffer.byteLength(smsEntry.encode(bare!))) });
}

async function silentText(): Promise<string> {
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  await house.text(PERSON);
  await house.run(send);
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  return sid!;
}

const tell = (event: Partial<SmsEvent> & { sid: string; status: string }) =>
  house.ctx.redis.commands.rpush(
    keys.event(),
    JSON.stringify({
      error_code: null,
      error_message: null,
      date_updated: null,
      information_received_at: house.base.clock.now(),
      received_via: "webhook",
      ...event,
    }),
  );

test("callbacks whose arguments are too large or no JSON, and texts with half a character, are refused before they are queued", async () => {
  await refused(textOf(LARGEST_NEW_ENTRY + 1, "hi"));
  const endless: Record<string, unknown> = {};
  endless.self = endless;
  await refused(text("hi", endless));
  await refused(text("hi", { count: 1n }));
  await refused(text("half \ud83d"));
  expect(await house.length(keys.toSend())).toBe(0);
  expect((await enqueueSms(house.ctx, [textOf(LARGEST_NEW_ENTRY, "hi \ud83d\ude00")])).ok).toBe(true);
});

test("the largest text lives through every failure, however much the provider says about it", async () => {
  const long = "\u0001é".repeat(5_000);
  const outcome = { ok: false, identifier: "NetworkError", subidentifier: long, retryable: true, extra: long };
  const provider = { create: async () => ({ ...outcome, provider: "here" }), list: async () => outcome };
  const ctx = Object.assign(house.process(), { providers: { sms: provider } }) as unknown as SmsContext;
  await enqueueSms(house.ctx, [textOf(LARGEST_NEW_ENTRY, "\u0001".repeat(1_600))]);
  for (const delay of [15, 60, 300, 0]) {
    await house.run(send, ctx);
    expect(await house.callbacks()).toEqual([FAILURE]);
    await house.base.clock.advance(delay);
  }
  expect((await house.counts(smsSendStats)).events).toEqual({
    queued: 1,
    retried: 3,
    abandoned: 1,
    failed_due_to_network_error: 4,
  });
  expect(await listQuarantined(house.ctx, keys.toSend())).toEqual([]);
});

test("the largest text is followed through silence and refusal, however long the provider's words are", async () => {
  const sid = `SM${"5".repeat(32)}`;
  const long = "é\u0001".repeat(5_000);
  const resource = { sid, status: `a ${long}`, errorCode: null, errorMessage: long, dateUpdated: 1e300 };
  const taken = { ok: true, state: "pending", resource, provider: "here" };
  const provider = { create: async () => taken, fetch: async () => ({ ok: true, resource }) };
  const ctx = Object.assign(house.process(), { providers: { sms: provider } }) as unknown as SmsContext;
  await enqueueSms(house.ctx, [textOf(LARGEST_NEW_ENTRY, "\u0001".repeat(1_600))]);
  await house.run(send, ctx);
  await house.base.clock.advance(901);
  await house.run(receiptStaleDetection, ctx);
  expect(await house.callbacks()).toEqual([FAILURE]);
  await house.run(receiptRecovery, ctx);
  await house.run(receiptReconciliation);
  await tell({ sid, status: "failed", error_code: "30008" });
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual([FAILURE]);
  expect([await house.length(keys.pending()), await house.length(keys.event())]).toEqual([0, 0]);
  for (const queue of [keys.toSend(), keys.pending(), keys.event()])
    expect(await listQuarantined(house.ctx, queue)).toEqual([]);
});

test("whatever is no text is set aside without being quoted, and its neighbours are sent", async () => {
  const [sound] = smsEntries(house.ctx, [text(SECRET)]);
  const { phone_number: _, ...numberless } = sound!;
  const raws = [
    `not json: ${SECRET}`,
    JSON.stringify({ ...sound, aud: "check" }),
    JSON.stringify(numberless),
    Buffer.concat([Buffer.from(JSON.stringify(sound)), Buffer.from([0xff])]),
    JSON.stringify({ ...sound, body: SECRET.repeat(100) }),
    JSON.stringify({ ...sound, filler: "x".repeat(LARGEST_ENTRY) }),
    JSON.stringify({ ...sound, filler: [] }).replace('"filler":[]', `"filler":[${"1e20,".repeat(5_000)}0]`),
    ...["1e300", "-1", "1e999", "null"].map((time) =>
      JSON.stringify({ ...sound, initially_queued_at: 0 }).replace(
        '"initially_queued_at":0',
        `"initially_queued_at":${time}`,
      ),
    ),
  ];
  await house.text(PERSON);
  await house.ctx.redis.commands.rpush(keys.toSend(), ...raws);
  await house.text(OTHER);
  await house.run(send);
  expect(house.outbox().map(({ to }) => to)).toEqual([PERSON, OTHER]);
  const aside = await listQuarantined(house.ctx, keys.toSend());
  expect(aside).toHaveLength(raws.length);
  expect(aside.map(({ reason }) => reason).join()).not.toContain("271828");
  expect((await house.counts(smsSendStats)).events).toMatchObject({ queued: 2 });
});

test("a pending message with times that no calendar has, or too large to tell of, is set aside and stops nobody else", async () => {
  const sid = await silentText();
  const [bad, big] = [`SM${"1".repeat(32)}`, `SM${"2".repeat(32)}`];
  const { commands } = house.ctx.redis;
  for (const [other, field, value] of [
    [bad, "send_initially_queued_at", "1e300"],
    [big, "body", "x".repeat(2 * LARGEST_ENTRY)],
  ] as const) {
    await commands.copy(keys.pendingItem({ sid }), keys.pendingItem({ sid: other }));
    await commands.hset(keys.pendingItem({ sid: other }), "message_resource_sid", other, field, value);
    await commands.zadd(keys.pending(), 1, other);
  }
  await house.base.clock.advance(901);
  await house.run(receiptStaleDetection);
  expect(await house.callbacks()).toEqual([FAILURE]);
  expect(await listQuarantined(house.ctx, keys.pending())).toHaveLength(2);
  expect(await house.length(keys.pending())).toBe(1);
  await house.audit();
});

test("neither the tools for keys nor the quarantine read texts out, because they hold codes and numbers", async () => {
  await house.text(PERSON, SECRET);
  const explained = async (name: string) => JSON.stringify(await explain(house.ctx.catalogue, name, house.ctx));
  expect(await explained(keys.toSend())).not.toContain("271828");
  const secret = [keys.sendPurgatory(), keys.retrying(), keys.pending(), keys.pendingItem({ sid: "SM1" })];
  const news = [keys.event(), keys.eventPurgatory(), keys.early()];
  for (const name of [...secret, ...news]) expect(house.ctx.catalogue.match(name)?.entry.secret).toBe(true);
  await house.ctx.redis.commands.rpush(keys.toSend(), `not json ${SECRET}`);
  await house.run(send);
  const response = await fetch(`${house.url}/api/1/admin/quarantine/${encodeURIComponent(keys.toSend())}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const shown = await response.text();
  expect(JSON.parse(shown).items).toMatchObject([{ withheld: true }]);
  expect(shown).not.toContain("271828");
  expect(await explained(quarantineOf(keys.toSend()))).not.toContain("271828");
});

test("a callback whose story is damaged fails by itself, says whose it is, and its neighbours are decided", async () => {
  await silentText();
  await house.base.clock.advance(901);
  await house.run(receiptStaleDetection);
  const raws = (await house.ctx.redis.commands.lrange("jobs:hot", 0, -1))
    .map((raw) => JSON.parse(raw) as { name: string; kwargs: { data_raw: string } })
    .filter(({ name }) => name === FAILURE)
    .map(({ kwargs }) => kwargs.data_raw);
  const stranger = encodeDataRaw({ sms: { uid: "crl_sms_x", aud: "nobody" } });
  const outcomes = await handleFailures(house.ctx, ["damaged", stranger, ...raws]);
  expect(outcomes.map(({ ok }) => ok)).toEqual([false, false, true]);
  for (const outcome of outcomes.slice(0, 2))
    expect(outcome.ok || outcome.error).toSatisfy(dataRawErrors.bad_data_raw.matches);
  expect(String((outcomes[1] as { error: unknown }).error)).toContain("crl_sms_x");
  expect(await house.length(keys.recovery())).toBe(1);
});

test("a report that comes twice ends its text once, with one callback", async () => {
  const sid = await silentText();
  await tell({ sid, status: "sent" });
  await tell({ sid, status: "sent", information_received_at: house.base.clock.now() + 0.001 });
  await house.run(receiptReconciliation);
  await house.base.clock.advance(70);
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual([SUCCESS]);
  const { events } = await house.counts(smsEventStats);
  expect(events).toMatchObject({ attempted: 2, removed: 1, unknown: 1 });
  await house.audit();
});

test("a status that was never seen before is followed like one that may still change", async () => {
  const sid = await silentText();
  const resource = { sid, status: "pondering", errorCode: null, errorMessage: null, dateUpdated: null };
  const provider = { fetch: async () => ({ ok: true, resource }) };
  const ctx = Object.assign(house.process(), { providers: { sms: provider } }) as unknown as SmsContext;
  await house.base.clock.advance(901);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  await house.run(receiptRecovery, ctx);
  await house.run(receiptReconciliation);
  expect((await house.counts(smsPollingStats)).words.received).toEqual({ "accepted:pondering": 1 });
  expect(await house.ctx.redis.commands.hget(keys.pendingItem({ sid }), "message_resource_status")).toBe("pondering");
  await house.audit();
});

test("a carrier that refuses a number after its text had ended gets the number suppressed all the same", async () => {
  const late = { sid: `SM${"3".repeat(32)}`, status: "undelivered", to: PERSON };
  await tell({ ...late, error_code: "30005" });
  await tell({ ...late, sid: `SM${"4".repeat(32)}`, error_code: "30008", to: OTHER });
  await house.base.clock.advance(61);
  await house.run(receiptReconciliation);
  expect((await house.counts(smsEventStats)).words.unknown).toEqual({ undelivered: 2 });
  expect(await house.callbacks()).toEqual(["runners.sms.suppress_unreachable"]);
  expect(await house.query("select phone_number, reason, reason_details from suppressed_phone_numbers")).toEqual([
    {
      phone_number: PERSON,
      reason: "Unreachable",
      reason_details: { identifier: "ApplicationErrorOther", subidentifier: "30005", extra: null },
    },
  ]);
});

test("a signed report of a refusal says whose number it was, and no other report does", async () => {
  const report = async (fields: Record<string, string>) => {
    const path = "/api/1/sms/webhook";
    const signed = { publicUrl: house.url, path, fields: Object.entries(fields) };
    const signature = signTwilioRequest(SANDBOX_TWILIO.authToken, signed);
    const headers = { "x-twilio-signature": signature, "content-type": "application/x-www-form-urlencoded" };
    const body = Buffer.from(new URLSearchParams(fields).toString());
    expect(await takeStatusWebhook(house.ctx, { path, body, headers })).toBe(200);
  };
  const about = { MessageSid: `SM${"6".repeat(32)}`, To: PERSON };
  await report({ ...about, MessageStatus: "undelivered", ErrorCode: "30005" });
  await report({ ...about, MessageStatus: "sent", ErrorCode: "" });
  const events = (await house.ctx.redis.commands.lrange(keys.event(), 0, -1)).map((raw) => JSON.parse(raw) as SmsEvent);
  expect(events.map(({ to }) => to)).toEqual([PERSON, undefined]);
});

test("while the provider is down a run rests 2, 4, 8 and 16 s, then ends, and the rest waits in order", async () => {
  const ctx = house.process({ config: [[settings.window as never, 1]] });
  const uids: string[] = [];
  for (let at = 0; at < 8; at++) uids.push(await house.text(`+1415555010${at}`));
  house.sandbox.knobs.patch({ twilio: { failNext: { status: 503, count: 100 } } });
  await house.run(send, ctx);
  expect(house.rests.map(Math.ceil)).toEqual([2, 4, 8, 16]);
  const waiting = await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1);
  expect(waiting.map((raw) => JSON.parse(raw).uid)).toEqual(uids.slice(5));
  expect(await house.ctx.redis.commands.hget(keys.sendReport(), "stop_reason")).toBe("time_exhausted");
  await house.audit();
});

test("while SQL is down nothing is sent and nothing is lost, because nobody could say who wants no texts", async () => {
  const uids = [await house.text(PERSON), await house.text(OTHER)];
  const sql = new MortalSql(house.base.sql, { dieAt: 1 });
  const context = Object.defineProperty(house.process(), "sql", { value: sql });
  await expect(house.run(send, context)).rejects.toThrow();
  const waiting = await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1);
  expect(waiting.map((raw) => JSON.parse(raw).uid)).toEqual(uids);
  expect(house.outbox()).toEqual([]);
  await house.run(send);
  expect(house.outbox()).toHaveLength(2);
});

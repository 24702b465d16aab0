import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { Setting } from "../../kernel/config.ts";
import { failureJob as mailFailure, successJob as mailSuccess } from "../email/callbacks.ts";
import { type Attempt, attemptEntry } from "../email/entries.ts";
import { keys as emailKeys } from "../email/keys.ts";
import { emailSettings } from "../email/service.ts";
import { leakedLinkDetection, persistLink } from "../links/jobs.ts";
import { keys as linkKeys } from "../links/keys.ts";
import { createLinks, linkCallbacks, linkSettings } from "../links/service.ts";
import { linkStats } from "../links/stats.ts";
import { type CheckEntry, type SendEntry, sendEntry } from "../push/entries.ts";
import { keys as pushKeys } from "../push/keys.ts";
import { failureJob as pushFailure, successJob as pushSuccess } from "../push/story.ts";
import { failureJob as smsFailure } from "../sms/callbacks.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { checkTimes } from "./constraints.ts";
import { newTouchUid, sendTouches } from "./enqueue.ts";
import { handOverLeft } from "./handover.ts";
import { touch } from "./index.ts";
import { log, send, staleDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { openTouch, type TouchHouse } from "./touch.fixture.ts";

const TOKENS = ["ExponentPushToken[ada-token-one]", "ExponentPushToken[ada-token-two]"] as const;
const MAIL = "ada@example.com";
const WORDS = { name: "Ana", time_of_day: "morning", url: "https://a.b", unsubscribe_url: "https://a.b" };

let house: TouchHouse;
let codes: string[] = [];
beforeAll(async () => {
  house = await openTouch();
});
afterAll(() => house.close());
beforeEach(clear);

async function clear(): Promise<void> {
  await house.clear("suppressed_emails", "suppressed_phone_numbers", "user_touches");
  const [link] = await createLinks(house.ctx, [{ touchUid: "crl_tch_any", page: { identifier: "home" } }]);
  codes = [link!.code];
}

const reminder = (channel: "push" | "email" | "sms", more: object = {}) => ({
  userSub: "ada",
  slug: "daily_reminder",
  channel,
  parameters: WORDS,
  successCallback: linkCallbacks(codes).success,
  failureCallback: linkCallbacks(codes).failure,
  ...more,
});
async function taken<T>(key: string, decode: (raw: Buffer) => T): Promise<readonly T[]> {
  const raws = await house.ctx.redis.commands.lrangeBuffer(key, 0, -1);
  await house.ctx.redis.commands.del(key);
  return raws.map(decode);
}
const pushes = () => taken<SendEntry>(pushKeys.toSend(), (raw) => sendEntry.decode(raw));
const mails = () => taken<Attempt>(emailKeys.toSend(), (raw) => attemptEntry.decode(raw));
const queueJob = (job: string) => house.ctx.redis.commands.rpush(jobKeys.hot(), job);
const work = async () => (await house.workWithout("runners.emails.send")).filter((name) => name.endsWith("_links"));
const trail = async () =>
  (await house.call("GET", "/api/1/admin/users/ada/touch_debug_log"))
    .json()
    .items.map(({ event }: { event: { type: string } }) => event.type)
    .sort();
const checking = (entry: SendEntry): CheckEntry => ({
  ...entry,
  aud: "check",
  attempt_initially_queued_at: entry.initially_queued_at,
  push_ticket: { status: "ok", id: "ticket" },
  push_ticket_created_at: house.ctx.clock.now(),
});
const OK = { status: "ok" as const, message: null, details: null };
const accepted = (mail: Attempt) => ({
  aud: "pending" as const,
  uid: mail.uid,
  message_id: "message",
  email: mail.email,
  subject: mail.subject,
  template: mail.template,
  template_parameters: mail.template_parameters,
  send_initially_queued_at: mail.initially_queued_at,
  send_accepted_at: house.ctx.clock.now(),
  failure_job: mail.failure_job,
  success_job: mail.success_job,
});

test("a notification that arrives ends its touch well, is written with its words, and confirms its device", async () => {
  await house.reachable("ada", { tokens: TOKENS });
  await sendTouches(house.ctx, [reminder("push")]);
  await house.run(send);
  const [first, second] = await pushes();
  expect(first).toMatchObject({
    aud: "send",
    retry: 0,
    initially_queued_at: house.ctx.clock.now(),
    last_queued_at: house.ctx.clock.now(),
    push_token: TOKENS[0],
    contents: { title: "Good morning, Ana", channel_id: "daily_reminder" },
    failure_job: { name: "runners.touch.push_failure_handler" },
    success_job: {
      name: "runners.touch.push_success_handler",
      kwargs: { touch_point_uid: "crl_tpo_daily_reminder", user_sub: "ada" },
    },
  });
  await house.base.clock.advance(900);
  await queueJob(pushSuccess(house.ctx, checking(first!), OK));
  await queueJob(pushSuccess(house.ctx, checking(second!), OK));
  expect(await work()).toEqual(["runners.touch.persist_links"]);
  await house.run(log);
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/touches")).json();
  expect(items).toHaveLength(2);
  expect(items[0].message).toEqual({
    title: "Good morning, Ana",
    body: expect.any(String),
    channel_id: "daily_reminder",
  });
  expect(new Set(items.map(({ uid }: { uid: string }) => uid))).toEqual(
    new Set([first!, second!].map(({ uid }) => `crl_tch_r_${uid.replace("crl_pma_", "")}`)),
  );
  expect(await house.query("select 1 from user_push_tokens where last_confirmed_at is not null")).toHaveLength(2);
  expect(await house.length(keys.pending())).toBe(0);
  await house.audit();
});

test("a touch without callbacks and with one device is never waited for, and is written when it arrived", async () => {
  await house.reachable("ada", { tokens: [TOKENS[0]] });
  await sendTouches(house.ctx, [reminder("push", { successCallback: null, failureCallback: null })]);
  await house.run(send);
  expect(await house.length(keys.pending())).toBe(0);
  const [only] = await pushes();
  await queueJob(pushSuccess(house.ctx, checking(only!), OK));
  await house.work();
  await house.run(log);
  expect((await house.call("GET", "/api/1/admin/users/ada/touches")).json().items).toHaveLength(1);
});

test("a device that is gone loses its token, at the ticket and at the receipt, and the last one fails the touch", async () => {
  await house.reachable("ada", { tokens: TOKENS });
  await sendTouches(house.ctx, [reminder("push")]);
  await house.run(send);
  const [first, second] = await pushes();
  const gone = { identifier: "DeviceNotRegistered" as const, retryable: false, extra: null };
  await queueJob(pushFailure(house.ctx, first!, gone));
  expect(await work()).toEqual([]);
  expect(await house.query("select token from user_push_tokens")).toEqual([{ token: TOKENS[1] }]);
  await queueJob(pushFailure(house.ctx, checking(second!), gone));
  expect(await work()).toEqual(["runners.touch.abandon_links"]);
  expect(await house.query("select token from user_push_tokens")).toEqual([]);
  await house.run(log);
  expect(await trail()).toEqual(["send_attempt", "send_reachable", "send_unretryable", "send_unretryable"]);
  expect(await house.length(linkKeys.buffer())).toBe(0);
  await house.audit();
});

test("a notification that is tried again ends nothing, and one that is given up ends its touch", async () => {
  await house.reachable("ada", { tokens: [TOKENS[0]] });
  await sendTouches(house.ctx, [reminder("push")]);
  await house.run(send);
  const [entry] = await pushes();
  const passing = { identifier: "ServerError" as never, retryable: true, extra: null };
  await queueJob(pushFailure(house.ctx, entry!, passing));
  expect(await work()).toEqual([]);
  expect([await house.length(keys.pending()), await house.length(pushKeys.retrying())]).toEqual([1, 1]);
  await queueJob(pushFailure(house.ctx, { ...entry!, retry: 3 }, passing));
  expect(await work()).toEqual(["runners.touch.abandon_links"]);
  await house.run(log);
  expect(await trail()).toEqual(["send_abandon", "send_attempt", "send_reachable", "send_retry"]);
});

test("a mail that arrives ends its touch well with its template and parameters, and a bounce suppresses its address", async () => {
  await house.reachable("ada", { emails: [MAIL, "second@example.com"] });
  await sendTouches(house.ctx, [reminder("email")]);
  await house.run(send);
  const [first, second] = await mails();
  expect(first).toMatchObject({
    email: MAIL,
    subject: "Your moment this morning, Ana",
    template: "dailyReminder",
    template_parameters: {
      name: "Ana",
      url: "https://a.b",
      unsubscribeUrl: "https://a.b",
      message: expect.any(String),
    },
  });
  const bounce = { step: "receipt" as const, error_identifier: "Bounce", retryable: false, extra: "Permanent/General" };
  await queueJob(mailFailure(accepted(first!), bounce, house.ctx.clock.now()));
  expect(await work()).toEqual([]);
  expect(await house.query("select email_address, reason from suppressed_emails")).toEqual([
    { email_address: MAIL, reason: "Bounce" },
  ]);
  await queueJob(mailSuccess(accepted(second!), house.ctx.clock.now(), house.ctx.clock.now()));
  expect(await work()).toEqual(["runners.touch.persist_links"]);
  await house.run(log);
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/touches")).json();
  expect(items).toMatchObject([
    { destination: "second@example.com", message: { subject: second!.subject, template: "dailyReminder" } },
  ]);
  // The address that bounced is not written to again.
  await sendTouches(house.ctx, [reminder("email", { successCallback: null, failureCallback: null })]);
  await house.run(send);
  expect((await mails()).map(({ email }) => email)).toEqual(["second@example.com"]);
  await house.audit();
});

test("a number that cannot be reached gets no more texts", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  await sendTouches(house.ctx, [reminder("sms")]);
  await house.run(send);
  const [text] = await house.texts();
  const info = {
    action: "send" as const,
    identifier: "ApplicationErrorOther" as const,
    subidentifier: "21614",
    retryable: false,
    extra: null,
  };
  await queueJob(smsFailure(text!, info, house.ctx.clock.now()));
  await house.work();
  expect(await house.query("select reason from suppressed_phone_numbers")).toEqual([{ reason: "Unreachable" }]);
});

test("a report whose story cannot be read fails alone, and its neighbours are heard", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  await sendTouches(house.ctx, [reminder("sms")]);
  await house.run(send);
  const [text] = await house.texts();
  await house.ctx.redis.commands.del(jobKeys.hot());
  const kwargs = { ...text!.failure_job.kwargs, data_raw: "nonsense" };
  await queueJob(JSON.stringify({ name: "runners.touch.sms_failure_handler", kwargs, queued_at: 1 }));
  await house.end(text!, "refused");
  await expect(house.work()).rejects.toThrow();
  expect(await house.length(keys.pending())).toBe(0);
});

test("what is left of a broken waiting touch goes without a callback, and the audit had told of it", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  await sendTouches(house.ctx, [reminder("sms")]);
  await house.run(send);
  const [uid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "0");
  await house.ctx.redis.commands.del(keys.remaining({ uid: uid! }));
  await expect(house.audit()).rejects.toThrow("touch:pending_is_whole");
  await house.ctx.redis.commands.del(jobKeys.hot());
  const [text] = await house.texts();
  await house.end(text!, "refused");
  expect(await work()).toEqual([]);
  expect(await house.ctx.redis.commands.keys("touch:pending*")).toEqual([]);
});

test("a touch whose channel lost its callback fails in time, and its links are given up", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  await sendTouches(house.ctx, [reminder("sms")]);
  await house.run(send);
  await house.ctx.redis.commands.del(jobKeys.hot(), smsKeys.toSend());
  await house.base.clock.advance(136_801);
  await house.run(staleDetection);
  expect(await work()).toEqual(["runners.touch.abandon_links"]);
  expect((await house.counts(linkStats)).words.abandoned).toEqual({ "home:0": 1 });
  expect(await house.length(linkKeys.buffer())).toBe(0);
});

test("a touch that waits long, first in the queue and then for its channel, keeps its links until it ends", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  const uid = newTouchUid();
  const [link] = await createLinks(house.ctx, [{ touchUid: uid, page: { identifier: "home" } }]);
  const { success: successCallback, failure: failureCallback } = linkCallbacks([link!.code]);
  await sendTouches(house.ctx, [reminder("sms", { uid, successCallback, failureCallback })]);
  await house.base.clock.advance(28_000);
  await house.run(send);
  await house.ctx.redis.commands.del(jobKeys.hot());
  const [text] = await house.texts();
  await house.base.clock.advance(130_000);
  // Older than a link may be that nobody claims, and younger than a touch may be that is waited for.
  await house.run(leakedLinkDetection);
  expect(await house.ctx.redis.commands.zrange(linkKeys.buffer(), 0, "-1")).toEqual([link!.code]);
  await house.audit();
  await house.end(text!, "arrived");
  await work();
  await house.run(log);
  // It is about to be stored: its age is no leak now either.
  await house.run(leakedLinkDetection);
  expect((await house.counts(linkStats)).words.leaked).toEqual({ abandoned: 1 });
  await house.audit();
  await house.base.clock.advance(1_801);
  await house.run(persistLink);
  expect((await house.counts(linkStats)).events).toMatchObject({ persisted: 1, leaked: 1 });
  expect(await house.length(linkKeys.buffer())).toBe(0);
});

test("a success after the failure was told is written and calls nobody back", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  await sendTouches(house.ctx, [reminder("sms")]);
  await house.run(send);
  const [text] = await house.texts();
  await house.end(text!, "refused");
  expect(await work()).toEqual(["runners.touch.abandon_links"]);
  await house.end(text!, "arrived");
  await house.end(text!, "arrived");
  expect(await work()).toEqual([]);
  await house.run(log);
  expect((await house.call("GET", "/api/1/admin/users/ada/touches")).json().items).toHaveLength(1);
});

test("rows that SQL refuses are set aside, and those beside them are written", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  const row = (uid: string, event: object) =>
    JSON.stringify({
      table: "user_touch_debug_log",
      action: "insert",
      fields: { uid, user_sub: "ada", event: { type: "send_attempt", ...event }, created_at: 1 },
      queued_at: 1,
    });
  const rows = [row("crl_utbl_1", {}), row("crl_utbl_2", { text: "a\u0000b" }), row("crl_utbl_3", {})];
  await house.ctx.redis.commands.rpush(keys.toLog(), ...rows, "not json");
  await house.run(log);
  expect(await house.query("select uid from user_touch_debug_log order by uid")).toEqual([
    { uid: "crl_utbl_1" },
    { uid: "crl_utbl_3" },
  ]);
  expect(await house.ctx.redis.commands.llen("quarantine:touch:to_log")).toBe(2);
  expect([await house.length(keys.toLog()), await house.length(keys.logPurgatory())]).toEqual([0, 0]);
  expect((await house.call("GET", "/api/1/admin/touch/last_log_job")).json()).toMatchObject({
    inserts: 4,
    accepted_inserts: 2,
    failed_inserts: 2,
  });
});

test("rows about people who are gone are not written, and that is no error", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  await sendTouches(house.ctx, [reminder("sms")]);
  await house.run(send);
  await house.call("DELETE", "/api/1/admin/users/ada");
  await house.run(log);
  const report = (await house.call("GET", "/api/1/admin/touch/last_log_job")).json();
  expect([report.inserts, report.failed_inserts, report.accepted_inserts]).toEqual([3, 3, 0]);
});

test("what is kept of the steps of touches is what the installation wants to keep", async () => {
  await house.reachable("ada", { phones: ["+14155550101"] });
  for (const [kept, rows] of [
    ["failures", 1],
    ["none", 0],
  ] as const) {
    const ctx = house.process({ settings: [[settings.debugLog, kept]] });
    await sendTouches(ctx, [reminder("sms"), reminder("email")]);
    await house.run(send, ctx);
    await house.run(log, ctx);
    expect(await house.query("select 1 from user_touch_debug_log")).toHaveLength(rows);
    await house.query("delete from user_touch_debug_log");
  }
});

test("handing messages over survives a death at every command: each room has each message once", async () => {
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await clear();
      await house.reachable("ada", { phones: ["+14155550101"], emails: [MAIL], tokens: [TOKENS[0]] });
      await sendTouches(house.ctx, [reminder("sms"), reminder("email"), reminder("push")]);
    },
    life: (redis) => house.run(send, house.process({ redis })),
    afterlife: async () => {
      await house.base.clock.advance(121);
      await house.run(send);
      await handOverLeft(house.ctx);
      expect([(await house.texts()).length, (await mails()).length, (await pushes()).length]).toEqual([1, 1, 1]);
      expect(await house.ctx.redis.commands.keys("touch:handover:*")).toEqual([]);
    },
  });
}, 120_000);

test("an installation whose times contradict each other does not start, and is told why", async () => {
  const check = (...changes: (readonly [Setting<never> | Setting<unknown>, unknown])[]) =>
    checkTimes(house.process({ settings: changes }));
  expect(() => check()).not.toThrow();
  expect(() => check([settings.pendingExpiry, 130_000])).toThrow("email may take 132000 s");
  expect(() => check([emailSettings.receiptTimeout, 100_000])).toThrow("CARILLON_TOUCH_PENDING_EXPIRY");
  expect(() => check([linkSettings.leakAge, 136_800])).toThrow("CARILLON_LINKS_LEAK_AGE");
  expect(() => check([linkSettings.leakAge, 172_800])).toThrow("two days");
  expect(() => check([settings.staleAfter, 144_000])).toThrow("CARILLON_TOUCH_STALE_AFTER");
  const broken = house.process({ settings: [[settings.pendingExpiry, 60]] });
  await expect(touch.start(broken)).rejects.toThrow("not valid");
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { receiptReconciliation, send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { emailSendStats } from "./stats.ts";
import { readToken, unsubscribeUrl } from "./unsubscribe-token.ts";

const PERSON = "ada@example.com";
const reminder = (email: string) => ({
  email,
  template: "dailyReminder",
  parameters: { name: "Ada", message: "Time to breathe", url: "https://example.com/now" },
});

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(path.startsWith("http") ? path : `${house.url}/api/1/${path}`, {
    method,
    redirect: "manual",
    headers,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
};
const admin = (method: string, path: string, body?: unknown) =>
  call(method, `admin/email/${path}`, body, {
    authorization: `Bearer ${house.admin}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  });
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const suppressions = () => house.query("select email_address, reason, scope from suppressed_emails");

test("the link of a list's mail leaves the lists with one click, and codes still arrive", async () => {
  await house.mail(reminder(PERSON));
  await house.run(send);
  const raw = house.outbox()[0]!.raw;
  expect(raw).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
  const url = /^List-Unsubscribe: <([^>]+)>\r$/m.exec(raw)![1]!;
  const page = await call("GET", url);
  expect(page.status).toBe(200);
  expect(page.text).toContain("Unsubscribe from everything");
  expect(await suppressions()).toEqual([]);
  for (let times = 0; times < 2; times++) {
    const done = await call("POST", url, "List-Unsubscribe=One-Click", FORM);
    expect([done.status, done.headers.get("location"), done.headers.get("set-cookie")]).toEqual([200, null, null]);
  }
  expect(await suppressions()).toEqual([{ email_address: PERSON, reason: "User", scope: "lists" }]);
  expect(await house.query("select email_uid from unsubscribed_emails_log")).toHaveLength(2);
  await house.mail(reminder(PERSON));
  await house.code(PERSON);
  await house.run(send);
  expect(house.outbox()).toHaveLength(2);
  expect((await house.counts(emailSendStats)).words).toMatchObject({
    failed_permanently: { "template:Suppressed": 1 },
    accepted: { verifyEmailCode: 1, dailyReminder: 1 },
  });
  expect((await call("POST", `${url}/undo`)).status).toBe(200);
  expect(await suppressions()).toEqual([]);
});

test("a link that was edited means nothing, and guessing is limited", async () => {
  const url = unsubscribeUrl(house.ctx, { email: PERSON, list: "reminders", emailUid: "crl_em_x", issuedAt: 1 });
  const token = url.slice(url.lastIndexOf("/") + 1);
  expect(readToken(house.ctx, token)).toEqual({
    email: PERSON,
    list: "reminders",
    emailUid: "crl_em_x",
    issuedAt: 1,
  });
  for (const at of [0, 2, 10, token.length - 4]) {
    const other = token[at] === "A" ? "B" : "A";
    expect(readToken(house.ctx, token.slice(0, at) + other + token.slice(at + 1))).toBeUndefined();
  }
  expect(token).not.toContain(Buffer.from(PERSON).toString("base64url"));
  const statuses: number[] = [];
  for (let guess = 0; guess < 21; guess++)
    statuses.push((await call("POST", `emails/unsubscribe/0.${"A".repeat(60)}`, "", FORM)).status);
  expect(statuses).toEqual([...Array(20).fill(404), 429]);
  expect((await call("POST", url, "List-Unsubscribe=One-Click", FORM)).status).toBe(200);
});

test("an administrator sends a mail, and is told when it cannot be", async () => {
  const body = { email: PERSON, template: "sample", template_parameters: { name: "Ada", message: "Hello" } };
  const sent = await admin("POST", "messages", body);
  expect(sent.status).toBe(202);
  expect(sent.json().uid).toMatch(/^crl_em_/);
  expect((await admin("POST", "messages", { ...body, template: "none" })).status).toBe(404);
  expect((await admin("POST", "messages", { ...body, template_parameters: {} })).status).toBe(422);
  expect((await admin("POST", "messages", { ...body, email: "nobody" })).status).toBe(422);
  expect((await admin("POST", "messages", { ...body, failure_job: { name: "runners.x", kwargs: {} } })).status).toBe(
    422,
  );
  await admin("POST", "suppressions", { email: PERSON });
  expect((await admin("POST", "messages", body)).status).toBe(409);
  expect((await call("POST", "admin/email/messages", body)).status).toBe(401);
  const { redis } = house.ctx;
  for (let batch = 0; batch < 10; batch++) await redis.commands.rpush(keys.toSend(), ...Array(1000).fill("x"));
  const full = await admin("POST", "messages", { ...body, email: "b@example.com" });
  expect([full.status, full.headers.get("retry-after")]).toEqual([503, "60"]);
  expect(await house.length(keys.toSend())).toBe(10_001);
});

test("a test mail goes to the caller's own addresses, and an admin token has none", async () => {
  const body = { template: "sample", template_parameters: { name: "Ada", message: "Hello" } };
  expect((await admin("POST", "send_test", body)).status).toBe(404);
});

test("operators see what waits, without the codes in it", async () => {
  expect((await admin("GET", "last_send_job")).status).toBe(404);
  await house.mail(sample(PERSON));
  await house.code(PERSON);
  const waiting = (await admin("GET", "send_queue_info")).json();
  expect(waiting).toMatchObject({ length: 2, urgent: 1, retrying: 0 });
  expect(waiting.oldest_last_queued_at).toBeGreaterThan(0);
  await house.run(send);
  const pending = await admin("GET", "receipt_pending_info");
  expect(pending.json()).toMatchObject({ count: 2, items: [{ email: PERSON }, { email: PERSON }] });
  expect(pending.text).not.toContain("123456");
  expect((await admin("GET", "last_send_job")).json()).toMatchObject({
    accepted: 2,
    stop_reason: "list_exhausted",
    in_purgatory: 0,
  });
  expect((await admin("GET", "event_queue_info")).json()).toEqual({ length: 0, early: 0, oldest_last_queued_at: null });
  expect((await admin("GET", "health")).json()).toMatchObject({ sending_enabled: true });
});

test("operators see what the last run of working news in found, kind by kind, and what was given up for want of news", async () => {
  for (const path of ["last_reconciliation_job", "last_stale_receipt_detection_job"])
    expect((await admin("GET", path)).status).toBe(404);
  const around = house.process({ provider: new Taker() });
  for (let at = 0; at < 7; at++) await house.mail(sample(`p${at}@example.com`));
  await house.run(send, around);
  const ids = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  const delivery = { type: "Delivery" };
  const bounce = { type: "Bounce", reason: { primary: "Permanent", secondary: "General" } };
  const complaint = { type: "Complaint", feedback_type: null };
  const received_at = house.base.clock.now() - 10;
  const news = [
    ...[delivery, bounce, bounce, complaint, complaint, complaint].map((notification, at) => [ids[at], notification]),
    ...Array.from({ length: 4 }, (_, at) => [`d${at}`, delivery]),
    ...Array.from({ length: 5 }, (_, at) => [`b${at}`, bounce]),
    ...Array.from({ length: 6 }, (_, at) => [`c${at}`, complaint]),
  ].map(([message_id, notification]) => JSON.stringify({ message_id, notification, received_at }));
  await house.ctx.redis.commands.rpush(keys.event(), ...news);
  await house.run(receiptReconciliation);
  expect((await admin("GET", "last_reconciliation_job")).json()).toMatchObject({
    attempted: 21,
    succeeded_and_found: 1,
    bounced_and_found: 2,
    complaint_and_found: 3,
    succeeded_but_abandoned: 4,
    bounced_but_abandoned: 5,
    complaint_and_abandoned: 6,
    stop_reason: "list_exhausted",
    in_purgatory: 0,
  });
  await house.base.clock.advance(86_401);
  await house.run(staleReceiptDetection);
  expect((await admin("GET", "last_stale_receipt_detection_job")).json()).toMatchObject({
    abandoned: 1,
    stop_reason: "list_exhausted",
  });
});

test("health shows the provider's limits as they were a minute ago at most, and when a topic last reported", async () => {
  const health = async () => (await admin("GET", "health")).json();
  await house.base.clock.advance(61);
  house.sandbox.knobs.patch({ ses: { max_per_second: 5 } });
  expect(await health()).toMatchObject({ quota: { max_per_second: 5 }, last_webhook_at: null });
  house.sandbox.knobs.patch({ ses: { max_per_second: 9 } });
  await house.base.clock.advance(59);
  expect((await health()).quota.max_per_second).toBe(5);
  await house.base.clock.advance(2);
  expect((await health()).quota.max_per_second).toBe(9);
  house.listen();
  await house.mail(sample("success@simulator.amazonses.com"));
  await house.run(send);
  await house.news(1);
  const { received_at } = JSON.parse((await house.ctx.redis.commands.lindex(keys.event(), 0))!) as {
    received_at: number;
  };
  expect(Math.abs((await health()).last_webhook_at - received_at)).toBeLessThanOrEqual(1);
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import type { EmailMessage, EmailProvider } from "../../providers/email.ts";
import { readFailure } from "./callbacks.ts";
import { type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { receiptReconciliation, send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { emailEventStats, emailSendStats, emailWebhookStats } from "./stats.ts";

const at = (name: string) => `${name}@simulator.amazonses.com`;

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

interface WaitingJob {
  readonly name: string;
  readonly rjob?: string;
  readonly kwargs: { readonly data_raw: string };
}
/** Callbacks that wait; nudges of recurring jobs stand among them. */
const waitingJobs = async () =>
  (await house.ctx.redis.commands.lrange("jobs:hot", 0, -1))
    .map((raw) => JSON.parse(raw) as WaitingJob)
    .filter(({ rjob }) => rjob === undefined);
const push = (news: object) => house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(news));
const delivery = (message_id: string, age: number) => ({
  message_id,
  notification: { type: "delivery" },
  received_at: house.base.clock.now() - age,
});

test("a bounce suppresses its address, and the next mail to it never reaches the provider", async () => {
  house.listen();
  await house.mail(sample(at("bounce")));
  await house.run(send);
  await house.news(1);
  await house.run(receiptReconciliation);
  const [job] = await waitingJobs();
  expect(readFailure(job!.kwargs.data_raw)).toMatchObject({
    email: { aud: "pending", email: at("bounce") },
    info: { step: "receipt", error_identifier: "Bounce", retryable: false, extra: "Permanent/General" },
  });
  await house.callbacks();
  expect(await house.query("select email_address, reason, scope from suppressed_emails")).toEqual([
    { email_address: at("bounce"), reason: "Bounce", scope: "all" },
  ]);
  await house.mail(sample(at("bounce").toUpperCase()));
  await house.run(send);
  expect(house.outbox()).toHaveLength(1);
  expect((await house.counts(emailSendStats)).words.failed_permanently).toEqual({ "template:Suppressed": 1 });
  expect((await house.counts(emailEventStats)).words.bounced).toEqual({ "found:Permanent:General": 1 });
  await house.audit();
});

test("a complaint after the delivery finds nobody waiting, and suppresses its address all the same", async () => {
  house.listen();
  await house.mail(sample(at("complaint")));
  await house.run(send);
  await house.news(2);
  await house.run(receiptReconciliation);
  await house.base.clock.advance(6);
  await house.run(receiptReconciliation);
  expect((await house.callbacks()).toSorted()).toEqual([
    "runners.emails.abandoned_email_callback",
    "runners.emails.default_success",
  ]);
  expect((await house.counts(emailEventStats)).words).toEqual({
    attempted: { found: 1, abandoned: 1 },
    succeeded: { found: 1 },
    complaint: { "abandoned:abuse": 1 },
  });
  expect(await house.query("select reason from suppressed_emails")).toEqual([{ reason: "Complaint" }]);
});

test("out-of-office replies suppress an address only at the third", async () => {
  house.listen();
  for (const suppressed of [0, 0, 1]) {
    await house.mail(sample(at("ooto")));
    await house.run(send);
    await house.news(2);
    await house.run(receiptReconciliation);
    await house.base.clock.advance(6);
    await house.run(receiptReconciliation);
    await house.callbacks();
    expect(await house.query("select uid from suppressed_emails")).toHaveLength(suppressed);
  }
});

test("news that outruns the provider's answer waits for it, and older news of unknown mails does not", async () => {
  await push(delivery("early", 0));
  await push(delivery("late", 6));
  await house.run(receiptReconciliation);
  expect(await house.length(keys.early())).toBe(1);
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ abandoned: 1 });
  await house.mail(sample(at("success")));
  await house.run(send);
  const [id] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "0");
  await push(delivery(id!, 1));
  await house.base.clock.advance(1);
  await house.run(receiptReconciliation);
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ abandoned: 1, found: 1 });
  await house.base.clock.advance(5);
  await house.run(receiptReconciliation);
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ abandoned: 2, found: 1 });
  expect(await house.length(keys.early())).toBe(0);
});

test("a receipt that comes before the provider's slow answer waits aside, and is then found", async () => {
  const ses = house.ses();
  const early: number[] = [];
  // As behind a relay that knows neither our tags nor our headers: only the id says which mail a receipt is about.
  const nameless = Object.assign(new Taker(), {
    async send({ tags: _, mime, ...message }: EmailMessage) {
      const bare = Buffer.from(mime.toString("latin1").replace(/^X-Carillon-Email-Uid: .*\r\n/m, ""), "latin1");
      const outcome = await ses.send({ ...message, mime: bare });
      await house.run(receiptReconciliation);
      early.push(await house.length(keys.early()));
      return outcome;
    },
  });
  house.listen();
  house.sandbox.knobs.patch({ ses: { notify_before_response: true, latency_ms: 2_000 } });
  await house.mail(sample(at("success")));
  await house.run(send, house.process({ provider: nameless as unknown as EmailProvider }));
  expect(early).toEqual([1]);
  expect((await house.counts(emailEventStats)).events).toEqual({});
  await house.base.clock.advance(1);
  await house.run(receiptReconciliation);
  expect((await house.counts(emailEventStats)).words).toEqual({ attempted: { found: 1 }, succeeded: { found: 1 } });
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  expect([await house.length(keys.early()), await house.length(keys.pending())]).toEqual([0, 0]);
});

test("of two receipts for one mail in one batch the first is found and the second is not", async () => {
  await house.mail(sample(at("success")));
  await house.run(send);
  const [id] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "0");
  await push(delivery(id!, 10));
  await push(delivery(id!, 9));
  await house.ctx.redis.commands.rpush(keys.event(), "{}");
  await house.run(receiptReconciliation);
  expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ found: 1, abandoned: 1 });
  expect(await house.callbacks()).toEqual(["runners.emails.default_success"]);
  expect(await house.ctx.redis.commands.llen("quarantine:email:event")).toBe(1);
});

test("a mail without a receipt is given up after a day, once", async () => {
  await house.mail(sample("ada@example.com"));
  await house.run(send);
  await house.base.clock.advance(86_300);
  await house.run(staleReceiptDetection);
  expect(await house.length(keys.pending())).toBe(1);
  await house.base.clock.advance(101);
  await house.run(staleReceiptDetection);
  const [job, ...others] = await waitingJobs();
  expect(others).toEqual([]);
  expect(readFailure(job!.kwargs.data_raw).info).toEqual({
    step: "receipt",
    error_identifier: "ReceiptTimeout",
    retryable: false,
    extra: null,
  });
  expect(await house.ctx.redis.commands.hget(keys.staleReport(), "abandoned")).toBe("1");
  expect(await house.length(keys.pending())).toBe(0);
  await house.audit();
});

test("a member without its hash is cleared away, and told of", async () => {
  await house.ctx.redis.commands.zadd(keys.pending(), 1, "orphan");
  await house.run(staleReceiptDetection);
  expect(await house.length(keys.pending())).toBe(0);
  expect(house.ctx.alerts.identifiers()).toContain("email:receipt_pending:healed");
});

test("a notification that comes three times is counted three times and queued once", async () => {
  house.listen();
  house.sandbox.knobs.patch({ ses: { duplicate_notifications: 2 } });
  await house.mail(sample(at("success")));
  await house.run(send);
  const accepted = async () => (await house.counts(emailWebhookStats)).events;
  await eventually(async () => {
    await house.base.clock.advance(0.5);
    return ((await accepted()).accepted ?? 0) >= 3;
  }, "all copies");
  expect(await house.length(keys.event())).toBe(1);
  const { received, verified, accepted: taken } = await accepted();
  expect([received, verified]).toEqual([taken, taken]);
  await house.audit();
});

test.each([
  ["bad_signature", { signature_invalid: 1 }],
  ["wrong_topic", { signature_invalid: 1 }],
  ["foreign_cert_url", { signature_invalid: 1 }],
  ["oversized_body", { body_max_size_exceeded: 1 }],
] as const)("a notification with %s is refused, counted, and changes nothing", async (knob, refusals) => {
  house.listen();
  await house.mail(sample(at("success")));
  await house.run(send);
  await house.news(1);
  await house.ctx.redis.commands.del(keys.event());
  const before = (await house.counts(emailWebhookStats)).events;
  house.sandbox.knobs.patch({ ses: { [knob]: true } });
  await house.mail(sample(at("success")));
  await house.run(send);
  const name = Object.keys(refusals)[0]!;
  await eventually(async () => {
    await house.base.clock.advance(0.1);
    return (await house.counts(emailWebhookStats)).events[name];
  }, "the refusal");
  expect(await house.length(keys.event())).toBe(0);
  expect((await house.counts(emailWebhookStats)).events.verified).toBe(before.verified);
  await house.audit();
});

test("a signed notification that makes no sense is kept for people to look at", async () => {
  house.listen();
  house.sandbox.knobs.patch({ ses: { unknown_type: true } });
  await house.mail(sample(at("success")));
  await house.run(send);
  await eventually(async () => {
    await house.base.clock.advance(0.1);
    return (await house.length(keys.unprocessable())) > 0;
  }, "the notification");
  expect((await house.counts(emailWebhookStats)).events.unprocessable).toBe(1);
  expect(house.ctx.alerts.identifiers()).toContain("emails:webhook_unprocessable");
});

test("strangers are turned away before anything of their body is believed", async () => {
  const post = (headers: Record<string, string>, body: string) =>
    fetch(`${house.url}/api/1/emails/sns-mail`, { method: "POST", headers, body }).then(({ status }) => status);
  expect(await post({}, "{}")).toBe(400);
  const headers = {
    "x-amz-sns-message-type": "Notification",
    "x-amz-sns-topic-arn": "arn:aws:sns:us-east-1:1:x",
    "x-amz-sns-message-id": "1",
  };
  expect(await post(headers, "not json")).toBe(400);
  expect(await post(headers, "{}")).toBe(400);
  expect((await house.counts(emailWebhookStats)).events).toEqual({
    received: 3,
    signature_missing: 2,
    body_parse_error: 1,
  });
});

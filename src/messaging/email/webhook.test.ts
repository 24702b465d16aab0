import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mortalConnection } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { answersText, startServer } from "../../providers/http-server.fixture.ts";
import { emailSettings } from "../../providers/settings.ts";
import { CERTIFICATE_PATH, snsCertificate, snsSignature } from "../../sandbox/sns-signer.ts";
import { buildServer } from "../../surfaces/http/index.ts";
import { type EmailHouse, openEmail, overheard } from "./email.fixture.ts";
import { email as room } from "./index.ts";
import { receiptReconciliation } from "./jobs.ts";
import { keys } from "./keys.ts";
import { emailWebhookStats } from "./stats.ts";
import { takeNotification } from "./webhook.ts";

const TOPIC = "arn:aws:sns:us-east-1:000000000000:carillon-email";
const DELIVERY = JSON.stringify({ notificationType: "Delivery", mail: { messageId: "mail-1", destination: [] } });

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

/** A notification as the topic would send it, signed with its key before `change`. */
async function notification(fields: Record<string, string> = {}, change: Record<string, string> = {}) {
  const envelope = {
    Type: "Notification",
    MessageId: "6f2c4ad0-0000-4000-8000-000000000001",
    TopicArn: TOPIC,
    Message: DELIVERY,
    Timestamp: new Date(house.base.clock.now() * 1000).toISOString(),
    ...fields,
  };
  const body = {
    ...envelope,
    SignatureVersion: "2",
    Signature: await snsSignature(envelope, "2"),
    SigningCertURL: `${house.sandbox.url}${CERTIFICATE_PATH}`,
    ...change,
  };
  const headers = {
    "content-type": "text/plain; charset=UTF-8",
    "x-amz-sns-message-type": body.Type,
    "x-amz-sns-topic-arn": body.TopicArn,
    "x-amz-sns-message-id": body.MessageId,
  };
  return { headers, body: JSON.stringify(body) };
}

const post = (sent: { headers: Record<string, string>; body: string }) =>
  fetch(`${house.url}/api/1/emails/sns-mail`, { method: "POST", ...sent }).then(({ status }) => status);
const counts = async () => (await house.counts(emailWebhookStats)).events;

test("a notification is believed as it was signed, and in no other form", async () => {
  const sent = await notification();
  expect(await post(sent)).toBe(202);
  const wrong = [
    await notification({}, { Message: DELIVERY.replace("mail-1", "mail-2") }),
    await notification({}, { Timestamp: new Date((house.base.clock.now() + 60) * 1000).toISOString() }),
    await notification({}, { SigningCertURL: `https://sns.us-east-1.amazonaws.com.evil.test${CERTIFICATE_PATH}` }),
    await notification({ TopicArn: "arn:aws:sns:us-east-1:000000000000:strangers" }),
    { ...sent, headers: { ...sent.headers, "x-amz-sns-message-id": "another" } },
  ];
  for (const each of wrong) expect(await post(each)).toBe(403);
  expect(await house.length(keys.event())).toBe(1);
  expect(await counts()).toEqual({ received: 6, verified: 1, accepted: 1, signature_invalid: 5 });
});

test("a notification that is played again is counted and brings nothing", async () => {
  const sent = await notification();
  for (let times = 0; times < 3; times++) expect(await post(sent)).toBe(202);
  expect(await house.length(keys.event())).toBe(1);
  expect(await counts()).toEqual({ received: 3, verified: 3, accepted: 3 });
  await house.base.clock.advance(16 * 86_400);
  expect(await post(sent)).toBe(403);
});

test("a notification of one byte too many is refused and counted, but only if it claims to be one", async () => {
  const sent = await notification();
  expect(await post({ ...sent, body: "x".repeat(1_048_577) })).toBe(413);
  expect(await post({ headers: {}, body: "x".repeat(1_048_577) })).toBe(400);
  expect(await counts()).toEqual({ received: 2, body_max_size_exceeded: 1, signature_missing: 1 });
});

test("while Redis is away the topic is asked to come again, and nothing is lost", async () => {
  const redis = await mortalConnection(house.base.server, { dieAt: 1, death: "before" });
  const { headers, body } = await notification();
  expect(await takeNotification(house.process({ redis }), { headers, body: Buffer.from(body) })).toBe(503);
  expect([await house.length(keys.event()), await counts()]).toEqual([0, {}]);
  expect(await post({ headers, body })).toBe(202);
  expect(await house.length(keys.event())).toBe(1);
  redis.commands.disconnect();
});

test.each([
  ["complaint of a kind too long to keep", { complaintFeedbackType: "z".repeat(65) }, {}, "z".repeat(65)],
  ["complaint about an id too long to keep", { complaintFeedbackType: "abuse" }, { messageId: "i".repeat(513) }, "iii"],
  ["bounce of a kind with spaces", { bounceType: "Permanent", bounceSubType: "No such man" }, {}, "No such man"],
] as const)(
  "a %s suppresses its address all the same, and what it said is in the log",
  async (_, words, about, said) => {
    const recipients = [{ emailAddress: "ada@example.com" }];
    const [type, part] =
      "bounceType" in words
        ? ["Bounce", { bounce: { ...words, bouncedRecipients: recipients } }]
        : ["Complaint", { complaint: { ...words, complainedRecipients: recipients } }];
    const mail = { messageId: "mail-1", destination: ["ada@example.com"], ...about };
    const { headers, body } = await notification({
      Message: JSON.stringify({ notificationType: type, mail, ...part }),
    });
    const { ctx, said: logged } = overheard(house.ctx);
    expect(await takeNotification(ctx, { headers, body: Buffer.from(body) })).toBe(202);
    expect(JSON.stringify(logged)).toContain(said);
    await house.base.clock.advance(6);
    await house.run(receiptReconciliation);
    expect(await house.callbacks()).toEqual(["runners.emails.abandoned_email_callback"]);
    expect(await house.query("select email_address, reason from suppressed_emails")).toEqual([
      { email_address: "ada@example.com", reason: type },
    ]);
    expect(await house.ctx.redis.commands.llen("quarantine:email:event")).toBe(0);
  },
);

test("a topic of ours is confirmed with one fetch and people hear of it; a failed fetch has it come again; strangers get none", async () => {
  const certificate = await snsCertificate();
  const amazon = await startServer((request, response) =>
    answersText(200, request.path === CERTIFICATE_PATH ? certificate : "<ConfirmSubscriptionResponse/>")(
      request,
      response,
    ),
  );
  const around = house.process({ config: [[emailSettings.snsBaseUrl, amazon.url]] });
  const confirmations = () => amazon.requests.filter(({ path }) => path !== CERTIFICATE_PATH);
  const ask = async (TopicArn = TOPIC) => {
    const SubscribeURL = `${amazon.url}/?Action=ConfirmSubscription&Token=a`;
    const asked = { Type: "SubscriptionConfirmation", Token: "a", TopicArn, SubscribeURL, Message: "please" };
    const { headers, body } = await notification(asked, { SigningCertURL: `${amazon.url}${CERTIFICATE_PATH}` });
    return takeNotification(around, { headers, body: Buffer.from(body) });
  };
  expect(await ask("arn:aws:sns:us-east-1:000000000000:strangers")).toBe(403);
  expect(amazon.requests).toEqual([]);
  expect(await ask()).toBe(200);
  expect(confirmations()).toMatchObject([{ method: "GET", path: "/?Action=ConfirmSubscription&Token=a" }]);
  expect(around.alerts.recorded).toMatchObject([{ level: "ops", text: expect.stringContaining(TOPIC) }]);
  expect(await counts()).toEqual({ received: 2, signature_invalid: 1, verified: 1, accepted: 1 });
  amazon.once.push(answersText(500, "not now"));
  expect(await ask()).toBe(503);
  expect(confirmations()).toHaveLength(2);
  expect(await counts()).toMatchObject({ received: 3, verified: 2, accepted: 1, unprocessable: 1 });
  expect(around.alerts.recorded).toHaveLength(1);
  await amazon.close();
});

test("a notification that breaks off on its way is counted as such", async () => {
  const { headers, body } = await notification();
  const { port } = new URL(house.url);
  const socket = connect(Number(port), "127.0.0.1");
  const lines = Object.entries({ ...headers, host: "a", "content-length": body.length }).map((pair) => pair.join(": "));
  const request = ["POST /api/1/emails/sns-mail HTTP/1.1", ...lines, "", body.slice(0, 100)].join("\r\n");
  socket.write(request, () => socket.destroy());
  await eventually(async () => (await counts()).received, "the notification");
  expect(await counts()).toEqual({ received: 1, body_read_error: 1 });
  expect(await house.length(keys.event())).toBe(0);
});

test.each([
  ["never answers", () => new Promise<never>(() => {})],
  ["refuses every statement", () => Promise.reject(new Error("SQL is down"))],
] as const)("while the database %s, a notification is answered at once", async (_, answer) => {
  const asked: string[] = [];
  const sql = new MortalSql(house.base.sql);
  sql.pass = (statement) => {
    asked.push(statement);
    return answer();
  };
  const server = await buildServer(house.process({ sql }), [room]);
  const sent = { method: "POST", url: "/api/1/emails/sns-mail" } as const;
  const { headers, body } = await notification();
  const complaint = { complaintFeedbackType: "abuse", complainedRecipients: [{ emailAddress: "ada@example.com" }] };
  const Message = JSON.stringify({ notificationType: "Complaint", mail: { messageId: "mail-2" }, complaint });
  const second = await notification({ Message, MessageId: "another" });
  const senseless = await notification({ Message: "hello", MessageId: "a third" });
  for (const each of [{ headers, body }, second, senseless])
    expect((await server.inject({ ...sent, headers: each.headers, payload: each.body })).statusCode).toBe(202);
  expect(await house.length(keys.event())).toBe(2);
  expect(await house.length(keys.unprocessable())).toBe(1);
  expect(asked).toEqual([]);
  await server.close();
});

test("a topic says goodbye: people hear of it, and it is not subscribed again", async () => {
  const SubscribeURL = `${house.sandbox.url}/?Action=ConfirmSubscription`;
  const sent = await notification({ Type: "UnsubscribeConfirmation", Token: "a", SubscribeURL, Message: "farewell" });
  expect(await post(sent)).toBe(202);
  expect(house.ctx.alerts.identifiers()).toContain("emails:topic_unsubscribed");
  expect(await counts()).toEqual({ received: 1, verified: 1, accepted: 1 });
});

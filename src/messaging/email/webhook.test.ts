import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mortalConnection } from "../../../test/harness/chaos.ts";
import { CERTIFICATE_PATH, snsSignature } from "../../sandbox/sns-signer.ts";
import { type EmailHouse, openEmail, overheard } from "./email.fixture.ts";
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

test("a topic says goodbye: people hear of it, and it is not subscribed again", async () => {
  const SubscribeURL = `${house.sandbox.url}/?Action=ConfirmSubscription`;
  const sent = await notification({ Type: "UnsubscribeConfirmation", Token: "a", SubscribeURL, Message: "farewell" });
  expect(await post(sent)).toBe(202);
  expect(house.ctx.alerts.identifiers()).toContain("emails:topic_unsubscribed");
  expect(await counts()).toEqual({ received: 1, verified: 1, accepted: 1 });
});

import { createVerify, X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import type { KnobPatch } from "./knobs.ts";
import { confirmSubscriptions, openStage, type Stage } from "./stage.fixture.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage();
  confirmSubscriptions(stage.house);
  await eventually(() => stage.sandbox.ses.topic.confirmed);
});
afterEach(() => stage.close());

const SIGNED = {
  authorization: `AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20260101/us-east-1/ses/aws4_request, SignedHeaders=host;x-amz-date, Signature=${"0".repeat(64)}`,
  "x-amz-date": "20260101T000000Z",
};
const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = SIGNED) => {
  const response = await fetch(`${stage.sandbox.url}/v2/email/${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    type: response.headers.get("x-amzn-errortype"),
    body: (await response.json()) as Record<string, unknown>,
  };
};
const RAW = [
  "From: Carillon <hello@example.com>",
  "To: ada@example.com",
  "Subject: Your code",
  "X-Carillon-Email-Uid: crl_em_1",
  "MIME-Version: 1.0",
  'Content-Type: multipart/alternative; boundary="b"',
  "",
  "--b",
  "Content-Type: text/plain; charset=utf-8",
  "",
  "Type 123456 or open https://example.com/a?b=1&c=2",
  "--b",
  "Content-Type: text/html; charset=utf-8",
  "",
  '<p>Type <b>123456</b> or <a href="https://example.com/a?b=1&amp;c=2">click</a></p>',
  "--b--",
  "",
].join("\r\n");
const mailTo = (to: string, raw = RAW) => ({
  FromEmailAddress: "Carillon <hello@example.com>",
  Destination: { ToAddresses: [to] },
  Content: { Raw: { Data: Buffer.from(raw).toString("base64") } },
  EmailTags: [
    { Name: "template", Value: "code" },
    { Name: "uid", Value: "crl_em_1" },
  ],
});
const send = (to = "ada@example.com") => call("POST", "outbound-emails", mailTo(to));
const ses = (knobs: KnobPatch["ses"]) => stage.sandbox.knobs.patch({ ses: knobs });

interface Envelope extends Record<string, string | undefined> {
  readonly Message: string;
  readonly MessageId: string;
  readonly SignatureVersion: string;
}
const notifications = () =>
  stage.house.caught
    .filter(({ headers }) => headers["x-amz-sns-message-type"] === "Notification")
    .map(({ body }) => JSON.parse(body) as Envelope);
const reports = () =>
  notifications().map(
    ({ Message }) =>
      JSON.parse(Message) as {
        notificationType: string;
        mail: { messageId: string; destination: string[] };
        bounce?: { bounceType: string; bounceSubType: string; bouncedRecipients: { emailAddress: string }[] };
        complaint?: { complaintFeedbackType: string };
      },
  );
const kinds = () =>
  reports().map(({ notificationType, bounce, complaint }) =>
    [notificationType, bounce && `${bounce.bounceType}/${bounce.bounceSubType}`, complaint?.complaintFeedbackType]
      .filter(Boolean)
      .join(" "),
  );
const arrived = (count: number) => eventually(() => notifications().length === count, `${count} notifications`);

/** As a receiver of notifications checks them, from the documentation and not from the sandbox's code. */
async function hasRightSignature(envelope: Envelope): Promise<boolean> {
  const fields =
    envelope.Type === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const text = fields
    .flatMap((name) => (envelope[name] === undefined ? [] : [`${name}\n${envelope[name]}\n`]))
    .join("");
  const pem = await (await fetch(`${stage.sandbox.url}/SimpleNotificationService-sandbox.pem`)).text();
  return createVerify(envelope.SignatureVersion === "2" ? "RSA-SHA256" : "RSA-SHA1")
    .update(text)
    .verify(new X509Certificate(pem).publicKey, String(envelope.Signature), "base64");
}

describe("the mail service", () => {
  it("keeps a raw mail with its parts, and reports its delivery", async () => {
    const { status, body } = await send();
    expect(status).toBe(200);
    expect(body.MessageId).toMatch(/^[0-9a-f]{16}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-000000$/);
    await arrived(1);
    expect(reports()).toMatchObject([
      {
        notificationType: "Delivery",
        mail: {
          messageId: body.MessageId,
          destination: ["ada@example.com"],
          tags: { template: ["code"], uid: ["crl_em_1"] },
        },
      },
    ]);
    const [message] = stage.sandbox.inbox.all();
    expect(message).toMatchObject({
      channel: "email",
      provider_id: body.MessageId,
      to: "ada@example.com",
      from: "hello@example.com",
      subject: "Your code",
      fields: { tags: { template: "code", uid: "crl_em_1" } },
      mail: { code: "123456", links: ["https://example.com/a?b=1&c=2"], one_click_url: null },
    });
    expect(message!.raw!.toString()).toBe(RAW);
    expect(message!.mail!.headers).toContainEqual({ name: "X-Carillon-Email-Uid", value: "crl_em_1" });
    expect(message!.mail!.html).toContain("<b>123456</b>");
    expect(stage.sandbox.inbox.statusOf(message!).status).toBe("delivered");
  });

  it("composes a simple mail", async () => {
    const simple = {
      FromEmailAddress: "hello@example.com",
      Destination: { ToAddresses: ["ada@example.com"] },
      Content: { Simple: { Subject: { Data: "Grüße" }, Body: { Text: { Data: "hi" }, Html: { Data: "<i>hi</i>" } } } },
    };
    expect((await call("POST", "outbound-emails", simple)).status).toBe(200);
    const [message] = stage.sandbox.inbox.all();
    expect([message!.subject, message!.text.trim(), message!.mail!.html!.trim()]).toEqual(["Grüße", "hi", "<i>hi</i>"]);
  });

  it("looks at the shape of the signature, and at the request", async () => {
    expect(await call("POST", "outbound-emails", mailTo("a@example.com"), {})).toMatchObject({
      status: 403,
      type: "MissingAuthenticationTokenException",
    });
    const odd = { ...SIGNED, authorization: "AWS4-HMAC-SHA256 Credential=AKIA" };
    expect(await call("GET", "account", undefined, odd)).toMatchObject({ type: "IncompleteSignatureException" });
    expect(await call("POST", "outbound-emails", { Content: {} })).toMatchObject({ type: "BadRequestException" });
    expect(await call("GET", "elsewhere")).toMatchObject({ status: 404, type: "NotFoundException" });
    expect(stage.sandbox.inbox.size).toBe(0);
  });

  it("decides by the receiver, by its own addresses and by rules", async () => {
    ses({
      rules: [
        { pattern: "*@blocked.example", outcome: "bounce" },
        { pattern: "quiet@*", outcome: "silent" },
      ],
    });
    const outcome = async (to: string, count: number) => {
      stage.house.caught.length = 0;
      await send(to);
      await arrived(count);
      return kinds();
    };
    const at = "simulator.amazonses.com";
    expect(await outcome(`success+x@${at}`, 1)).toEqual(["Delivery"]);
    expect(await outcome(`bounce+label@${at}`, 1)).toEqual(["Bounce Permanent/General"]);
    expect(await outcome(`ooto@${at}`, 2)).toEqual(["Delivery", "Bounce Transient/General"]);
    expect(await outcome(`complaint@${at}`, 2)).toEqual(["Delivery", "Complaint abuse"]);
    expect(await outcome(`suppressionlist@${at}`, 1)).toEqual(["Bounce Permanent/OnAccountSuppressionList"]);
    expect(await outcome("Bob@Blocked.example", 1)).toEqual(["Bounce Permanent/General"]);
    expect(await outcome("quiet@example.com", 0)).toEqual([]);
  });

  it("keeps a suppression list for the account", async () => {
    const entry = { EmailAddress: "Ada@example.com", Reason: "COMPLAINT" };
    expect((await call("PUT", "suppression/addresses", entry)).status).toBe(200);
    expect((await call("GET", "suppression/addresses")).body).toMatchObject({
      SuppressedDestinationSummaries: [{ EmailAddress: "ada@example.com", Reason: "COMPLAINT" }],
    });
    expect((await call("GET", "suppression/addresses/ada%40example.com")).body).toMatchObject({
      SuppressedDestination: { Reason: "COMPLAINT" },
    });
    await send("ADA@example.com");
    await arrived(1);
    expect(kinds()).toEqual(["Bounce Permanent/OnAccountSuppressionList"]);
    expect((await call("DELETE", "suppression/addresses/ada%40example.com")).status).toBe(200);
    expect((await call("GET", "suppression/addresses/ada%40example.com")).status).toBe(404);
    expect((await call("PUT", "suppression/addresses", { EmailAddress: "x" })).status).toBe(400);
  });

  it("tells its quota and keeps to it", async () => {
    ses({ max_per_second: 2, quota_24h: 3 });
    const types: (string | null)[] = [];
    for (let index = 0; index < 3; index++) types.push((await send()).type);
    expect(types).toEqual([null, null, "TooManyRequestsException"]);
    await stage.clock.advance(1);
    expect([(await send()).type, (await send()).type]).toEqual([null, "LimitExceededException"]);
    expect((await call("GET", "account")).body).toMatchObject({
      SendingEnabled: true,
      SendQuota: { Max24HourSend: 3, MaxSendRate: 2, SentLast24Hours: 3 },
    });
    await stage.clock.advance(86_400);
    expect((await send()).status).toBe(200);
  });
});

describe("faults of the mail service", () => {
  it("have the status and the name that the real ones have", async () => {
    const answer = async (
      error: "throttle" | "500" | "503" | "MessageRejected" | "SendingPausedException" | "credentials",
    ) => {
      ses({ error, fail_next: 1 });
      const { status, type } = await send();
      return [status, type];
    };
    expect(await answer("throttle")).toEqual([429, "TooManyRequestsException"]);
    expect(await answer("500")).toEqual([500, "InternalFailure"]);
    expect(await answer("503")).toEqual([503, "ServiceUnavailable"]);
    expect(await answer("MessageRejected")).toEqual([400, "MessageRejected"]);
    expect(await answer("SendingPausedException")).toEqual([400, "SendingPausedException"]);
    expect(await answer("credentials")).toEqual([403, "UnrecognizedClientException"]);
    expect(stage.sandbox.inbox.size).toBe(0);
    expect((await send()).status).toBe(200);
  });

  it("reset the connection with no mail kept, or keep it and never answer", async () => {
    ses({ error: "reset", fail_next: 1 });
    await expect(send()).rejects.toThrow();
    expect(stage.sandbox.inbox.size).toBe(0);
    ses({ error: "timeout-after-accept", fail_next: 1 });
    const patience = new AbortController();
    const asking = fetch(`${stage.sandbox.url}/v2/email/outbound-emails`, {
      method: "POST",
      headers: SIGNED,
      body: JSON.stringify(mailTo("ada@example.com")),
      signal: patience.signal,
    });
    await arrived(1);
    patience.abort();
    await expect(asking).rejects.toThrow();
    expect(stage.sandbox.inbox.size).toBe(1);
  });

  it("happen at their rate by the seed, take time, and last as long as an outage", async () => {
    const run = async (seed: number) => {
      const other = await openStage({ seed });
      other.sandbox.knobs.patch({ ses: { error_rate: 0.5, error: "throttle" } });
      const seen: number[] = [];
      for (let index = 0; index < 20; index++) {
        const response = await fetch(`${other.sandbox.url}/v2/email/outbound-emails`, {
          method: "POST",
          headers: SIGNED,
          body: JSON.stringify(mailTo("ada@example.com")),
        });
        seen.push(response.status);
      }
      await other.close();
      return seen.join(" ");
    };
    const first = await run(5);
    expect(new Set(first.split(" "))).toEqual(new Set(["200", "429"]));
    expect(await run(5)).toBe(first);
    expect(await run(6)).not.toBe(first);
    ses({ latency_ms: 3000 });
    const slow = send();
    await eventually(() => stage.clock.sleeping > 0);
    await stage.clock.advance(3);
    expect((await slow).status).toBe(200);
    const now = stage.clock.now();
    ses({ latency_ms: 0, outage: { from: now, until: now + 60 } });
    expect((await send()).status).toBe(503);
    await stage.clock.advance(60);
    expect((await send()).status).toBe(200);
  });
});

describe("the topic", () => {
  it("asks for a confirmation that is signed, and has a certificate that holds", async () => {
    const { headers, body } = stage.house.caught[0]!;
    const envelope = JSON.parse(body) as Envelope;
    expect(headers).toMatchObject({
      "x-amz-sns-message-type": "SubscriptionConfirmation",
      "x-amz-sns-message-id": envelope.MessageId,
      "x-amz-sns-topic-arn": "arn:aws:sns:us-east-1:000000000000:carillon-email",
    });
    expect(await hasRightSignature(envelope)).toBe(true);
    const pem = await (await fetch(String(envelope.SigningCertURL))).text();
    const certificate = new X509Certificate(pem);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.publicKey.asymmetricKeyType).toBe("rsa");
    expect([certificate.validFrom, certificate.validTo]).toEqual([
      "Jan  1 00:00:00 2020 GMT",
      "Dec 31 23:59:59 2049 GMT",
    ]);
    expect(certificate.subject).toBe("CN=sns.sandbox.carillon");
  });

  it("tells nobody before its own token came back", async () => {
    const unconfirmed = await openStage();
    await eventually(() => unconfirmed.house.caught.length === 1);
    const { SubscribeURL } = JSON.parse(unconfirmed.house.caught[0]!.body) as { SubscribeURL: string };
    expect((await fetch(`${SubscribeURL}0`)).status).toBe(403);
    await fetch(`${unconfirmed.sandbox.url}/v2/email/outbound-emails`, {
      method: "POST",
      headers: SIGNED,
      body: JSON.stringify(mailTo("ada@example.com")),
    });
    await eventually(() => unconfirmed.sandbox.ses.topic.lost === 1);
    expect((await fetch(SubscribeURL)).status).toBe(200);
    expect(unconfirmed.sandbox.ses.topic.confirmed).toBe(true);
    expect(unconfirmed.house.caught).toHaveLength(1);
    await unconfirmed.close();
  });

  it("knocks until the house listens", async () => {
    const late = await openStage();
    const { house } = late;
    await eventually(() => house.caught.length === 1);
    await late.close();
    const early = await openStage({ publicUrl: house.url });
    await eventually(() => early.clock.sleeping > 0);
    expect(early.sandbox.ses.topic.confirmed).toBe(false);
    const { createServer } = await import("node:http");
    let knocked = 0;
    const server = createServer((_request, response) => {
      knocked += 1;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(Number(new URL(house.url).port), "127.0.0.1", resolve));
    await early.clock.advance(1);
    await eventually(() => knocked === 1);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await early.close();
  });

  it("signs notifications in both versions", async () => {
    await send();
    ses({ signature_version: "2" });
    await send();
    await arrived(2);
    expect(notifications().map(({ SignatureVersion }) => SignatureVersion)).toEqual(["1", "2"]);
    for (const each of notifications()) expect(await hasRightSignature(each)).toBe(true);
  });

  it("tries three times more, 20 s apart, while the house is in trouble, and gives up on a refusal", async () => {
    stage.house.statuses.push(503, 500, 429, 503, 200);
    await send();
    for (let attempt = 1; attempt <= 4; attempt++) {
      await arrived(attempt);
      await eventually(() => stage.sandbox.inbox.all()[0]!.webhooks.length === attempt);
      if (attempt < 4) await eventually(() => stage.clock.sleeping > 0);
      await stage.clock.advance(20);
    }
    expect(new Set(notifications().map(({ MessageId }) => MessageId)).size).toBe(1);
    expect(stage.sandbox.inbox.all()[0]!.webhooks.map(({ answered }) => answered)).toEqual([503, 500, 429, 503]);
    stage.house.statuses.length = 0;
    stage.house.statuses.push(403);
    await send();
    await arrived(5);
    await stage.clock.advance(100);
    await send();
    await arrived(6);
  });

  it("reports late, before the answer, twice, or not at all", async () => {
    ses({ notify_delay_s: 30 });
    await send();
    await stage.clock.advance(29);
    expect(notifications()).toEqual([]);
    await stage.clock.advance(1);
    await arrived(1);
    ses({ notify_delay_s: 0, notify_before_response: true });
    await send();
    expect(notifications()).toHaveLength(2);
    ses({ notify_before_response: false, duplicate_notifications: 2 });
    await send();
    await arrived(5);
    expect(new Set(notifications().map(({ MessageId }) => MessageId)).size).toBe(3);
    ses({ duplicate_notifications: 0, drop_notifications: true, notify_before_response: true });
    await send();
    expect(notifications()).toHaveLength(5);
  });

  it("lets the second report overtake the first", async () => {
    ses({ reorder: true });
    await send("complaint@simulator.amazonses.com");
    await arrived(2);
    expect(kinds()).toEqual(["Complaint abuse", "Delivery"]);
    await send();
    await eventually(() => stage.clock.sleeping > 0);
    await stage.clock.advance(30);
    await arrived(3);
  });

  it("forges in each way that a knob names", async () => {
    const forged = async (knobs: KnobPatch["ses"]) => {
      stage.sandbox.knobs.reset();
      stage.house.caught.length = 0;
      ses(knobs);
      await send();
      await arrived(1);
      const [envelope] = notifications();
      return {
        envelope: envelope!,
        right: await hasRightSignature(envelope!),
        length: stage.house.caught[0]!.body.length,
      };
    };
    expect((await forged({ bad_signature: true })).right).toBe(false);
    const topic = await forged({ wrong_topic: true });
    expect([topic.right, topic.envelope.TopicArn]).toEqual([true, "arn:aws:sns:us-east-1:999999999999:somebody-else"]);
    const foreign = await forged({ foreign_cert_url: true });
    expect([foreign.right, new URL(String(foreign.envelope.SigningCertURL)).host]).toEqual([
      true,
      "sns.us-east-1.amazonaws.com.example.net",
    ]);
    const oversized = await forged({ oversized_body: true });
    expect(oversized.right).toBe(true);
    expect(oversized.length).toBeGreaterThan(1_048_576);
    const novelty = await forged({ unknown_type: true });
    expect([novelty.right, reports()[0]!.notificationType]).toEqual([true, "Novelty"]);
  });

  it("reports what an action lets happen to a mail", async () => {
    ses({ rules: [{ pattern: "*", outcome: "silent" }] });
    await send();
    const [message] = stage.sandbox.inbox.all();
    const history = () => stage.sandbox.inbox.historyOf(message!).map(({ status, error }) => error ?? status);
    await stage.sandbox.act(message!, { action: "deliver", after_seconds: 3600 });
    await stage.clock.advance(3600);
    await arrived(1);
    await stage.sandbox.act(message!, { action: "bounce", bounce_type: "Transient", bounce_sub_type: "MailboxFull" });
    await arrived(2);
    await stage.sandbox.act(message!, { action: "complain", feedback_type: "not-spam" });
    await arrived(3);
    await stage.sandbox.act(message!, { action: "resend" });
    await arrived(4);
    expect(kinds()).toEqual(["Delivery", "Bounce Transient/MailboxFull", "Complaint not-spam", "Complaint not-spam"]);
    expect(history()).toEqual(["accepted", "delivered", "Transient/MailboxFull", "not-spam"]);
  });
});

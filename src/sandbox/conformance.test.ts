import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { silentLog } from "../kernel/log.ts";
import { type EmailFault, emailConformance, testMail } from "../providers/email.conformance.ts";
import { ExpoPush } from "../providers/expo.ts";
import { pushConformance } from "../providers/push.conformance.ts";
import { SesEmail } from "../providers/ses.ts";
import { sesNotificationOf } from "../providers/ses-notification.ts";
import { smsConformance } from "../providers/sms.conformance.ts";
import { SmtpEmail } from "../providers/smtp.ts";
import { SnsVerifier } from "../providers/sns.ts";
import { TwilioSms } from "../providers/twilio.ts";
import { verifyTwilioSignature } from "../providers/twilio-signature.ts";
import { sandboxClients } from "./clients.ts";
import type { SesKnobs, TwilioKnobs } from "./knobs.ts";
import { TOPIC_ARN } from "./sns.ts";
import { type Caught, openCatcher, openStage, type Stage } from "./stage.fixture.ts";

/** The clients that talk to the real providers, each against its simulator: neither may notice that the other is ours. */
const common = (stage: Stage) => ({
  baseUrl: stage.sandbox.url,
  timeout: 20,
  userAgent: "carillon/test",
  clock: stage.clock,
  log: silentLog,
});
const twilioAt = (stage: Stage) =>
  new TwilioSms({ ...common(stage), ...stage.sandbox.twilio.account, messagingServiceSid: `MG${"1".repeat(32)}` });
const sesAt = (stage: Stage) =>
  new SesEmail({
    ...common(stage),
    region: "us-east-1",
    endpoint: stage.sandbox.url,
    credentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" },
  });
const FAULTS: Readonly<Record<EmailFault, SesKnobs["error"]>> = {
  throttle: "throttle",
  server: "503",
  rejected: "MessageRejected",
  credentials: "credentials",
  reset: "reset",
};
const emailControl = ({ sandbox }: Stage) => ({
  failNext: (fault: EmailFault) => void sandbox.knobs.patch({ ses: { error: FAULTS[fault], fail_next: 1 } }),
  accepted: () => sandbox.inbox.all().map(({ to, raw }) => ({ to, mime: raw!.toString() })),
});

pushConformance("the Expo client at the sandbox", {
  async open() {
    const stage = await openStage();
    const { knobs, inbox } = stage.sandbox;
    const expo = () => knobs.get().expo;
    return {
      provider: new ExpoPush(common(stage)),
      control: {
        failNext: (status) => void knobs.patch({ expo: { failNext: { status, count: 1 } } }),
        dropNext: () => void knobs.patch({ expo: { dropConnectionAfterAccept: 1 } }),
        malformNext: (malformed) => void knobs.patch({ expo: { malformed } }),
        ticketError: (token, name) =>
          void knobs.patch({ expo: { ticketErrors: { ...expo().ticketErrors, [token]: name } } }),
        receiptError: (token, name) =>
          void knobs.patch({ expo: { receiptErrors: { ...expo().receiptErrors, [token]: name } } }),
        receiptNever: (token) => void knobs.patch({ expo: { receiptNever: [...expo().receiptNever, token] } }),
        receiptsReady: () => stage.clock.advance(900),
        accepted: () => inbox.all().map(({ to }) => to),
      },
      close: stage.close,
    };
  },
});

smsConformance("the Twilio client at the sandbox", {
  async open() {
    const stage = await openStage();
    const { knobs, inbox } = stage.sandbox;
    return {
      provider: twilioAt(stage),
      control: {
        failNext: (status, code) => void knobs.patch({ twilio: { failNext: { status, count: 1, code } } }),
        dropNext: () => void knobs.patch({ twilio: { dropConnectionAfterCreate: 1 } }),
        endAs: (number, status, code) => {
          const end = { status: status as TwilioKnobs["finalStatus"][string]["status"], code };
          knobs.patch({ twilio: { finalStatus: { ...knobs.get().twilio.finalStatus, [number]: end } } });
        },
        finish: () => stage.clock.advance(60),
        forget: (sid) => void knobs.patch({ twilio: { deleteResource: sid } }),
        created: () => inbox.all().map(({ to, text }) => ({ to, body: text })),
        now: () => stage.clock.now(),
      },
      close: stage.close,
    };
  },
});

emailConformance("the SES client at the sandbox", {
  async open() {
    const stage = await openStage();
    return { provider: sesAt(stage), control: emailControl(stage), close: stage.close };
  },
});

emailConformance("the SMTP client at the sandbox", {
  async open() {
    const stage = await openStage();
    const { hostname: host, port } = new URL(stage.sandbox.smtpUrl);
    return {
      provider: new SmtpEmail({ host, port: Number(port), secure: false, timeout: 10 }),
      control: emailControl(stage),
      close: stage.close,
    };
  },
});

it("clients that are pointed at the sandbox reach its inbox by every channel", async () => {
  const stage = await openStage({ secrets: { expoAccessToken: "s3cret" } });
  const { url, twilio, inbox } = stage.sandbox;
  const gone = await openCatcher();
  await gone.close();
  const address = { url: gone.url, twilio: twilio.account, expoAccessToken: "s3cret" };
  const clients = sandboxClients(() => address, common(stage));
  // Nobody is there yet; the sandbox turns up elsewhere, and the same clients follow it.
  expect(await clients.sms[0]!.create({ to: "+12025550100", body: "Hi" })).toMatchObject({ untaken: true });
  expect(await clients.email[0]!.send(testMail("ada@example.com"))).toMatchObject({ untaken: true });
  address.url = url;
  await clients.push[0]!.send([{ to: "ExponentPushToken[a]", title: "Hi", body: "there", channelId: "default" }]);
  await clients.sms[0]!.create({ to: "+12025550100", body: "Hi there" });
  await clients.email[0]!.send(testMail("ada@example.com"));
  expect(inbox.all().map(({ provider, to }) => [provider, to])).toEqual([
    ["expo", "ExponentPushToken[a]"],
    ["twilio", "+12025550100"],
    ["ses", "ada@example.com"],
  ]);
  const { suppressions } = clients.email[0]!;
  const listed = async (since: number) => {
    const found = [];
    for await (const page of suppressions!.since(since)) found.push(...page);
    return found;
  };
  await suppressions!.add({ email: "old@example.com", reason: "Bounce" });
  await stage.clock.advance(60);
  await suppressions!.add({ email: "new@example.com", reason: "Complaint" });
  expect(await listed(0)).toHaveLength(2);
  expect(await listed(stage.clock.now())).toEqual([{ email: "new@example.com", reason: "Complaint" }]);
  await suppressions!.remove("new@example.com");
  await suppressions!.remove("new@example.com");
  expect(await listed(0)).toEqual([{ email: "old@example.com", reason: "Bounce" }]);
  await clients.email[0]!.close();
  await stage.close();
});

describe("webhooks of the sandbox, checked as those of real providers are", () => {
  let stage: Stage;
  afterEach(() => stage.close());

  it("a subscription is verified and confirmed, then delivery, bounce and complaint are understood", async () => {
    stage = await openStage();
    const { clock, house, sandbox } = stage;
    const verifier = new SnsVerifier({ topicArns: [TOPIC_ARN], baseUrl: sandbox.url, clock });
    const verified = async ({ headers, body }: Caught) => verifier.verify(headers, Buffer.from(body));
    await eventually(() => house.caught.length === 1);
    const asked = await verified(house.caught[0]!);
    expect(asked.ok && (await verifier.confirm(asked.envelope))).toBe(true);
    expect(sandbox.ses.topic.confirmed).toBe(true);

    const provider = sesAt(stage);
    const sent = await provider.send(testMail("complaint@simulator.amazonses.com"));
    sandbox.knobs.patch({ ses: { signature_version: "2" } });
    await eventually(() => house.caught.length === 3);
    await provider.send(testMail("bounce@simulator.amazonses.com"));
    await eventually(() => house.caught.length === 4);
    const events = [];
    for (const caught of house.caught.slice(1)) {
      const verdict = await verified(caught);
      events.push(verdict.ok ? sesNotificationOf(verdict.envelope.Message) : verdict);
    }
    expect(events).toMatchObject([
      { kind: "event", event: { messageId: sent.ok && sent.messageId, notification: { type: "Delivery" } } },
      { kind: "event", event: { notification: { type: "Complaint", feedback_type: "abuse" } } },
      {
        kind: "event",
        event: { notification: { type: "Bounce", reason: { primary: "Permanent", secondary: "General" } } },
      },
    ]);
    for (const knob of ["bad_signature", "wrong_topic", "foreign_cert_url"] as const) {
      sandbox.knobs.reset();
      sandbox.knobs.patch({ ses: { [knob]: true } });
      const before = house.caught.length;
      await provider.send(testMail("ada@example.com"));
      await eventually(() => house.caught.length === before + 1);
      expect([knob, await verified(house.caught.at(-1)!)]).toMatchObject([
        knob,
        { ok: false, counter: "signature_invalid", status: 403 },
      ]);
    }
    await provider.close();
  });

  it("a status callback and an inbound text carry a signature that holds, and a bad one does not", async () => {
    stage = await openStage();
    const { clock, house, sandbox } = stage;
    const texts = () => house.caught.filter(({ path }) => path.startsWith("/api/1/sms/"));
    const holds = ({ path, headers, body }: Caught) =>
      verifyTwilioSignature(sandbox.twilio.account.authToken, String(headers["x-twilio-signature"]), {
        publicUrl: house.url,
        path,
        fields: new URLSearchParams(body),
      });
    const statusCallback = `${house.url}/api/1/sms/webhook`;
    sandbox.knobs.patch({ twilio: { stuckAt: "queued" } });
    await twilioAt(stage).create({ to: "+12025550100", body: "Hello", statusCallback });
    await clock.advance(1);
    await sandbox.twilio.inbound({ from: "+12025550100", body: "Grüße & STOP?" });
    await eventually(() => texts().length === 2);
    sandbox.knobs.patch({ twilio: { callbacks: "badSignature" } });
    await twilioAt(stage).create({ to: "+12025550101", body: "Hello", statusCallback });
    await clock.advance(1);
    await eventually(() => texts().length === 3);
    expect(texts().map(holds)).toEqual([true, true, false]);
  });
});

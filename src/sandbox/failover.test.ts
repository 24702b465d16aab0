import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { EmailChannel, PushChannel, SmsChannel } from "../providers/channels.ts";
import { testMail } from "../providers/email.conformance.ts";
import { ExpoPush } from "../providers/expo.ts";
import { CIRCUIT_THRESHOLD } from "../providers/keys.ts";
import { SesEmail } from "../providers/ses.ts";
import { SmtpEmail } from "../providers/smtp.ts";
import { TwilioSms } from "../providers/twilio.ts";
import { Sandbox } from "./sandbox.ts";
import { openCatcher } from "./stage.fixture.ts";

/** Real clients of two providers a channel: who gets a message when the preferred one is in trouble. */
let ctx: TestContext;
let sandbox: Sandbox;
let closing: (() => Promise<void>)[];
beforeEach(async () => {
  ctx = await openTestContext();
  const house = await openCatcher();
  sandbox = await Sandbox.start({ clock: ctx.clock, log: ctx.log, publicUrl: house.url });
  closing = [() => ctx.close(), house.close, () => sandbox.close()];
});
afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

const common = (baseUrl: string) => ({
  baseUrl,
  timeout: 20,
  userAgent: "carillon/test",
  clock: ctx.clock,
  log: ctx.log,
});
const ses = (endpoint: string) => {
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  const provider = new SesEmail({ ...common(endpoint), region: "us-east-1", endpoint, credentials });
  closing.push(() => provider.close());
  return provider;
};
const smtp = () => {
  const { hostname: host, port } = new URL(sandbox.smtpUrl);
  const provider = new SmtpEmail({ host, port: Number(port), secure: false, timeout: 10 });
  closing.push(() => provider.close());
  return provider;
};
const twilio = (url: string) =>
  new TwilioSms({ ...common(url), ...sandbox.twilio.account, messagingServiceSid: "MG1" });
const named = <P extends { name: string }>(name: string, provider: P): P =>
  new Proxy(provider, {
    get: (target, property) => {
      if (property === "name") return name;
      const value = Reflect.get(target, property);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
/** An address where nobody listens. */
async function nowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
const carriers = () => sandbox.inbox.all().map(({ provider }) => provider);

describe("when the preferred provider of mails is in trouble", () => {
  const mail = (at: number) => testMail("ada@example.com", `failover-${at}`);

  it("and cannot be reached, the next one carries the very same mail", async () => {
    const channel = new EmailChannel(ctx, [ses(await nowhere()), smtp()]);
    expect(await channel.send(mail(1))).toMatchObject({ ok: true, provider: "smtp", hasReceipts: false });
    expect(carriers()).toEqual(["smtp"]);
  });

  it("and cuts the connection after it took a mail, nobody else gets that mail until its retry", async () => {
    const channel = new EmailChannel(ctx, [ses(sandbox.url), smtp()]);
    sandbox.knobs.patch({ ses: { error: "reset", fail_next: 1 } });
    expect(await channel.send(mail(1))).toMatchObject({ ok: false, retryable: true, provider: "ses" });
    expect(carriers()).toEqual([]);
  });

  it("and answers 503 ten times, the next one takes over within the same run until time closes the circuit", async () => {
    const channel = new EmailChannel(ctx, [ses(sandbox.url), smtp()]);
    const now = ctx.clock.now();
    sandbox.knobs.patch({ ses: { error: "503", fail_next: CIRCUIT_THRESHOLD } });
    const fates = [];
    for (let at = 0; at < CIRCUIT_THRESHOLD + 3; at++) fates.push(await channel.send(mail(at)));
    expect(fates.map(({ provider }) => provider)).toEqual([
      ...Array.from({ length: CIRCUIT_THRESHOLD }, () => "ses"),
      "smtp",
      "smtp",
      "smtp",
    ]);
    expect(fates.filter((fate) => !fate.ok && fate.backoff)).toHaveLength(CIRCUIT_THRESHOLD - 1);
    expect(ctx.clock.now()).toBe(now);
    await ctx.clock.advance(301);
    expect(await channel.send(mail(99))).toMatchObject({ ok: true, provider: "ses" });
  });

  it("and refuses the mail, throttles us, or pauses the account, nobody else is asked", async () => {
    const channel = new EmailChannel(ctx, [ses(sandbox.url), smtp()]);
    for (const error of ["MessageRejected", "throttle", "SendingPausedException"] as const) {
      sandbox.knobs.patch({ ses: { error, fail_next: 1 } });
      expect([error, await channel.send(mail(1))]).toMatchObject([error, { ok: false, provider: "ses" }]);
    }
    expect(carriers()).toEqual([]);
  });

  it("and our keys for it are wrong, the next one carries", async () => {
    const channel = new EmailChannel(ctx, [ses(sandbox.url), smtp()]);
    sandbox.knobs.patch({ ses: { error: "ExpiredTokenException", fail_next: 1 } });
    expect(await channel.send(mail(1))).toMatchObject({ ok: true, provider: "smtp" });
  });
});

describe("when a mail server says that it is closed", () => {
  it("has surely not taken the mail, so that the next provider carries it", async () => {
    const channel = new EmailChannel(ctx, [smtp(), ses(sandbox.url)]);
    sandbox.knobs.patch({ ses: { error: "503", fail_next: 1 } });
    expect(await channel.send(testMail("ada@example.com"))).toMatchObject({ ok: true, provider: "ses" });
    expect(carriers()).toEqual(["ses"]);
  });
});

describe("with two accounts for texts and for notifications", () => {
  it("the second carries what the first was never asked for, and is asked about it later", async () => {
    const channel = new SmsChannel(ctx, [named("far", twilio(await nowhere())), named("near", twilio(sandbox.url))]);
    const sent = await channel.create({ to: "+12025550100", body: "Hi" });
    expect(sent).toMatchObject({ ok: true, provider: "near" });
    const sid = sent.ok ? sent.resource.sid : "";
    expect(await channel.fetch(sid, sent.provider)).toMatchObject({ ok: true, resource: { sid } });
    expect(await channel.fetch(sid, "far")).toMatchObject({ ok: false, identifier: "NetworkError" });
    const push = new PushChannel(ctx, [
      named("far", new ExpoPush(common(await nowhere()))),
      named("near", new ExpoPush(common(sandbox.url))),
    ]);
    const [ticket] = await push.send([{ to: "ExponentPushToken[a]", title: "t", body: "b" }]);
    expect(ticket).toMatchObject({ ok: true, provider: "near" });
  });

  it("a text whose answer was cut off is not given to the second", async () => {
    const channel = new SmsChannel(ctx, [named("one", twilio(sandbox.url)), named("two", twilio(sandbox.url))]);
    sandbox.knobs.patch({ twilio: { dropConnectionAfterCreate: 1 } });
    expect(await channel.create({ to: "+12025550100", body: "Hi" })).toMatchObject({
      ok: false,
      identifier: "NetworkError",
      provider: "one",
    });
    expect(carriers()).toEqual(["twilio"]);
  });
});

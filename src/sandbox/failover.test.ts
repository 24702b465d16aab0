import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { loadConfig, type Setting } from "../kernel/config.ts";
import { EmailChannel } from "../providers/channels.ts";
import { testMail } from "../providers/email.conformance.ts";
import { CIRCUIT_THRESHOLD } from "../providers/keys.ts";
import { openProviders } from "../providers/open-providers.ts";
import { SesEmail } from "../providers/ses.ts";
import { providerSettings } from "../providers/settings.ts";
import { SmtpEmail } from "../providers/smtp.ts";
import { Sandbox } from "./sandbox.ts";
import { type Catcher, openCatcher } from "./stage.fixture.ts";

/** Real clients of two providers a channel: who gets a message when the preferred one is in trouble. */
let ctx: TestContext;
let house: Catcher;
let sandbox: Sandbox;
let closing: (() => Promise<void>)[];
beforeEach(async () => {
  ctx = await openTestContext();
  house = await openCatcher();
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
/** An address where nobody listens. */
async function nowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
const carriers = (asked = sandbox) => asked.inbox.all().map(({ provider }) => provider);

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
  const text = { to: "+12025550100", body: "Hi" };
  const notification = { to: "ExponentPushToken[a]", title: "t", body: "b" };
  /** Another company's machines: they know neither our first account nor what it carried. */
  let other: Sandbox;
  beforeEach(async () => {
    const secrets = { twilio: { accountSid: `AC${"6b".repeat(16)}`, authToken: "other" }, expoAccessToken: "other" };
    other = await Sandbox.start({ clock: ctx.clock, log: ctx.log, publicUrl: house.url, secrets, seed: 2 });
    closing.push(() => other.close());
  });

  /** The channels as the settings of an operator open them, the first account being at an address. */
  async function channels(first: string, authToken = sandbox.twilio.account.authToken) {
    const environment = {
      CARILLON_PUSH_PROVIDER: "expo,expo_standby",
      CARILLON_PUSH_EXPO_BASE_URL: first,
      CARILLON_PUSH_EXPO_STANDBY_BASE_URL: other.url,
      CARILLON_PUSH_EXPO_STANDBY_ACCESS_TOKEN: "other",
      CARILLON_SMS_PROVIDER: "twilio,twilio_standby",
      CARILLON_SMS_TWILIO_BASE_URL: first,
      CARILLON_SMS_TWILIO_ACCOUNT_SID: sandbox.twilio.account.accountSid,
      CARILLON_SMS_TWILIO_AUTH_TOKEN: authToken,
      CARILLON_SMS_TWILIO_MESSAGING_SERVICE_SID: "MG1",
      CARILLON_SMS_TWILIO_STANDBY_BASE_URL: other.url,
      CARILLON_SMS_TWILIO_STANDBY_ACCOUNT_SID: other.twilio.account.accountSid,
      CARILLON_SMS_TWILIO_STANDBY_AUTH_TOKEN: other.twilio.account.authToken,
      CARILLON_SMS_TWILIO_STANDBY_MESSAGING_SERVICE_SID: "MG2",
    };
    const declared = providerSettings.flatMap((group) => Object.values(group) as Setting<unknown>[]);
    const dataDirectory = mkdtempSync(join(tmpdir(), "carillon-test-failover-"));
    closing.push(async () => rmSync(dataDirectory, { recursive: true, force: true }));
    const around = { ...ctx, dataDirectory, userAgent: "carillon/test" };
    const opened = await openProviders(loadConfig(declared, { environment }), around);
    closing.push(() => opened.close());
    return opened;
  }

  it("the second carries what the first was never asked for, and alone is believed about it", async () => {
    const { sms, push } = await channels(await nowhere());
    const sent = await sms.create(text);
    expect(sent).toMatchObject({ ok: true, provider: "twilio_standby" });
    const sid = sent.ok ? sent.resource.sid : "";
    expect(await sms.fetch(sid)).toMatchObject({ ok: true, resource: { sid } });
    expect(await sms.fetch(sid, "twilio")).toMatchObject({ ok: false, identifier: "NetworkError" });
    const [sentPush] = await push.send([notification]);
    expect(sentPush).toMatchObject({ ok: true, provider: "expo_standby" });
    const ticket = sentPush!.ticket!.id!;
    await ctx.clock.advance(60);
    expect((await push.receipts([ticket], "expo_standby")).get(ticket)).toMatchObject({ ok: true });
    expect((await push.receipts([ticket], "expo")).get(ticket)).toMatchObject({ identifier: "NetworkError" });
    expect([carriers(), carriers(other)]).toEqual([[], ["twilio", "expo"]]);
  });

  it("a text is found with the account that made it, whichever that was", async () => {
    const { sms } = await channels(sandbox.url);
    const first = await sms.create(text);
    sandbox.knobs.patch({ twilio: { failNext: { status: 401, count: 1 } } });
    const second = await sms.create(text);
    expect([first.provider, second.provider]).toEqual(["twilio", "twilio_standby"]);
    for (const sent of [first, second]) {
      const sid = sent.ok ? sent.resource.sid : "";
      expect(await sms.fetch(sid)).toMatchObject({ ok: true, resource: { sid } });
    }
    const listed = await sms.list({ to: text.to, since: 0 });
    expect(listed.ok && listed.messages).toHaveLength(2);
    expect(await sms.fetch(`SM${"0".repeat(32)}`)).toMatchObject({ identifier: "ClientError404" });
  });

  it("the second takes over for as long as the circuit of the first is open", async () => {
    const { sms, push } = await channels(sandbox.url);
    const outage = { failNext: { status: 503, count: CIRCUIT_THRESHOLD } };
    sandbox.knobs.patch({ twilio: outage, expo: outage });
    const carried: (string | null)[][] = [];
    const next = async () =>
      carried.push([(await sms.create(text)).provider, (await push.send([notification]))[0]!.provider]);
    for (let at = 0; at <= CIRCUIT_THRESHOLD; at++) await next();
    await ctx.clock.advance(301);
    await next();
    const usual = ["twilio", "expo"];
    expect(carried).toEqual([
      ...Array.from({ length: CIRCUIT_THRESHOLD }, () => usual),
      ["twilio_standby", "expo_standby"],
      usual,
    ]);
    expect(await sms.states()).toMatchObject([{ provider: "twilio" }, { provider: "twilio_standby" }]);
  });

  it("the second carries while the first refuses our credentials", async () => {
    const { sms } = await channels(sandbox.url, "outdated");
    expect(await sms.create(text)).toMatchObject({ ok: true, provider: "twilio_standby" });
  });

  it("a text whose answer was cut off is not given to the second", async () => {
    const { sms } = await channels(sandbox.url);
    sandbox.knobs.patch({ twilio: { dropConnectionAfterCreate: 1 } });
    expect(await sms.create(text)).toMatchObject({ ok: false, identifier: "NetworkError", provider: "twilio" });
    expect([carriers(), carriers(other)]).toEqual([["twilio"], []]);
  });
});

import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { Config, loadConfig, type Setting } from "../kernel/config.ts";
import { sandboxClients } from "../sandbox/clients.ts";
import { SANDBOX_TWILIO, Sandbox } from "../sandbox/sandbox.ts";
import { testMail } from "./email.conformance.ts";
import { answersJson, type FixtureServer, startServer } from "./http-server.fixture.ts";
import { openProviders, type StandIns } from "./open-providers.ts";
import type { PushProvider } from "./push.ts";
import { emailSettings, expoAccounts, providerSettings, pushSettings, smsSettings } from "./settings.ts";

const dataDirectory = mkdtempSync(join(tmpdir(), "carillon-test-providers-"));
let ctx: TestContext;
let server: FixtureServer;
beforeAll(async () => {
  ctx = await openTestContext();
  server = await startServer((request, response) => {
    if (request.path.includes("push"))
      return answersJson(200, { data: [{ status: "ok", id: "t" }] })(request, response);
    if (request.path.includes("Messages"))
      return answersJson(201, { sid: `SM${"0".repeat(32)}`, status: "queued" })(request, response);
    answersJson(200, { MessageId: "m" })(request, response);
  });
});
afterAll(async () => {
  await server.close();
  await ctx.close();
  rmSync(dataDirectory, { recursive: true, force: true });
});

const open = (config: Config, standIns?: StandIns) =>
  openProviders(config, { ...surroundings(), dataDirectory, userAgent: "carillon/9.9.9" }, standIns);
const surroundings = () => ({ clock: ctx.clock, log: ctx.log, alerts: ctx.alerts, redis: ctx.redis });

/** Settings as an operator writes them. */
const configOf = (environment: Record<string, string>) =>
  loadConfig(
    providerSettings.flatMap((group) => Object.values(group) as Setting<unknown>[]),
    { environment },
  );

test("the settings of an operator open a client for each channel, under the name of this version", async () => {
  const providers = await open(
    configOf({
      CARILLON_PUSH_PROVIDER: "expo",
      CARILLON_PUSH_EXPO_BASE_URL: server.url,
      CARILLON_PUSH_EXPO_ACCESS_TOKEN: "expo secret",
      CARILLON_SMS_PROVIDER: "twilio",
      CARILLON_SMS_TWILIO_BASE_URL: server.url,
      CARILLON_SMS_TWILIO_ACCOUNT_SID: "AC1",
      CARILLON_SMS_TWILIO_AUTH_TOKEN: "twilio secret",
      CARILLON_SMS_TWILIO_MESSAGING_SERVICE_SID: "MG1",
      CARILLON_EMAIL_PROVIDER: "ses, smtp",
      CARILLON_EMAIL_SES_ENDPOINT: server.url,
      CARILLON_EMAIL_SES_ACCESS_KEY_ID: "AKID",
      CARILLON_EMAIL_SES_SECRET_ACCESS_KEY: "ses secret",
      CARILLON_EMAIL_SMTP_HOST: "127.0.0.1",
      CARILLON_EMAIL_DELIVER_ONLY_TO: "example.org",
    }),
  );
  const [push] = await providers.push.send([{ to: "ExponentPushToken[a]", title: "t", body: "b" }]);
  expect(push).toMatchObject({ ok: true, provider: "expo" });
  expect(server.requests.at(-1)!.headers).toMatchObject({
    authorization: "Bearer expo secret",
    "user-agent": "carillon/9.9.9",
  });
  expect(await providers.sms.create({ to: "+12025550100", body: "b" })).toMatchObject({ ok: true, provider: "twilio" });
  expect(await providers.email.send(testMail("a@example.org"))).toMatchObject({ ok: true, provider: "ses" });
  expect(server.requests.at(-1)!.headers["user-agent"]).toContain("carillon/9.9.9");
  expect(await providers.email.send(testMail("a@elsewhere.example"))).toMatchObject({
    ok: false,
    subidentifier: "SuppressedInDevEnvironment",
  });
  expect(providers.objectStore.bucket).toBe("carillon");
  await providers.close();
});

test("without settings nothing is sent, unless somebody stands in", async () => {
  const bare = await open(new Config([]));
  expect(await bare.sms.create({ to: "+1", body: "x" })).toMatchObject({ credentials: true, provider: null });
  const seen: number[] = [];
  const counting: PushProvider = {
    name: "sandbox",
    async send(messages) {
      seen.push(messages.length);
      return [];
    },
    receipts: async () => new Map(),
  };
  const stoodIn = await open(new Config([]), { push: [counting] });
  await stoodIn.push.send([{ to: "t", title: "t", body: "b" }]);
  expect(seen).toEqual([1]);
  const configured = new Config([]).with([pushSettings.provider, ["expo"]], [expoAccounts.expo.baseUrl, server.url]);
  await (await open(configured, { push: [counting] })).push.send([{ to: "t", title: "t", body: "b" }]);
  expect(seen).toEqual([1]);
});

test("real clients pointed at the simulated providers stand in for a channel each", async () => {
  const sandbox = await Sandbox.start({ clock: ctx.clock, log: ctx.log, publicUrl: server.url });
  const clients = sandboxClients(() => ({ url: sandbox.url, twilio: SANDBOX_TWILIO }), {
    ...surroundings(),
    userAgent: "t",
  });
  const providers = await open(new Config([]), clients);
  const [push] = await providers.push.send([{ to: "ExponentPushToken[a]", title: "t", body: "b" }]);
  expect(push).toMatchObject({ ok: true, provider: "expo" });
  expect(await providers.sms.create({ to: "+12025550100", body: "b" })).toMatchObject({ ok: true, provider: "twilio" });
  expect(await providers.email.send(testMail("a@example.org"))).toMatchObject({ ok: true, provider: "ses" });
  await providers.close();
  await sandbox.close();
});

test.each<[string, Record<string, string>]>([
  ["CARILLON_SMS_TWILIO_ACCOUNT_SID", { CARILLON_SMS_PROVIDER: "twilio" }],
  ["CARILLON_SMS_TWILIO_AUTH_TOKEN", { CARILLON_SMS_PROVIDER: "twilio", CARILLON_SMS_TWILIO_ACCOUNT_SID: "AC1" }],
  ["CARILLON_SMS_TWILIO_STANDBY_ACCOUNT_SID", { CARILLON_SMS_PROVIDER: "twilio_standby" }],
  ["CARILLON_EMAIL_SMTP_HOST", { CARILLON_EMAIL_PROVIDER: "smtp" }],
  ["CARILLON_EMAIL_SES_SECRET_ACCESS_KEY", { CARILLON_EMAIL_PROVIDER: "ses", CARILLON_EMAIL_SES_ACCESS_KEY_ID: "A" }],
  [
    "CARILLON_EMAIL_SMTP_PASSWORD",
    { CARILLON_EMAIL_PROVIDER: "smtp", CARILLON_EMAIL_SMTP_HOST: "h", CARILLON_EMAIL_SMTP_USER: "u" },
  ],
])("a missing %s stops the start and is named", async (name, environment) => {
  await expect(open(configOf(environment))).rejects.toMatchObject({
    code: "invalid_settings",
    message: expect.stringContaining(`${name} is missing`),
  });
});

test("a DKIM key that would leave mails unsigned stops the start, and one that signs does not", async () => {
  const withKey = (key: string) =>
    open(
      configOf({
        CARILLON_EMAIL_PROVIDER: "smtp",
        CARILLON_EMAIL_SMTP_HOST: "127.0.0.1",
        CARILLON_EMAIL_SMTP_DKIM_DOMAIN: "example.com",
        CARILLON_EMAIL_SMTP_DKIM_SELECTOR: "carillon",
        CARILLON_EMAIL_SMTP_DKIM_PRIVATE_KEY: key,
      }),
    );
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  await (await withKey(key)).close();
  const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  for (const wrong of ["a secret", key.replaceAll("\n", "\\n"), other]) {
    const refused = await withKey(wrong).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: "invalid_settings",
      message: expect.stringContaining("CARILLON_EMAIL_SMTP_DKIM_PRIVATE_KEY"),
    });
    expect((refused as Error).message).not.toContain(wrong);
  }
});

test("the simulated provider may be asked for by name, and only by itself", async () => {
  const asked = configOf({ CARILLON_SMS_PROVIDER: "sandbox", CARILLON_EMAIL_PROVIDER: " sandbox " });
  expect([asked.get(smsSettings.provider), asked.get(emailSettings.provider)]).toEqual([[], []]);
  expect(() => configOf({ CARILLON_EMAIL_PROVIDER: "ses,sandbox" })).toThrow("CARILLON_EMAIL_PROVIDER");
});

test("names of providers and addresses are checked at the start", () => {
  expect(() => configOf({ CARILLON_EMAIL_PROVIDER: "pigeon" })).toThrow("CARILLON_EMAIL_PROVIDER");
  expect(() => configOf({ CARILLON_PUSH_PROVIDER: "expo,expo" })).toThrow("names a provider twice");
  expect(() => configOf({ CARILLON_PUSH_EXPO_BASE_URL: "exp.host" })).toThrow("must be an address");
});

test("every credential of a provider is kept out of logs and listings", () => {
  const secrets = providerSettings
    .flatMap((group) => Object.values(group) as Setting<unknown>[])
    .filter(({ secret }) => secret)
    .map(({ name }) => name);
  expect(secrets).toEqual([
    "push.expo.accessToken",
    "push.expoStandby.accessToken",
    "sms.twilio.authToken",
    "sms.twilioStandby.authToken",
    "email.ses.secretAccessKey",
    "email.smtp.password",
    "email.smtp.dkimPrivateKey",
  ]);
});

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { startTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import type { Domain } from "../domain.ts";
import { domains } from "../domains.ts";
import { createAdminToken } from "../infrastructure/access/service.ts";
import { systemClock } from "../kernel/clock.ts";
import { silentLog } from "../kernel/log.ts";
import { enqueuePushes } from "../messaging/push/service.ts";
import { enqueueSms } from "../messaging/sms/service.ts";
import { Sandbox } from "../sandbox/sandbox.ts";
import { type House, openHouse } from "./house.ts";
import { loadSettings } from "./settings.ts";

/** What an operator gets who gave push and texts a second account, while nobody answers for the first. */
let folder: string;
let redis: TestRedis;
let standby: Sandbox;
let house: House;
let token: string;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "carillon-standby-"));
  redis = await startTestRedis();
  const [port, nobody] = [await freePort(), `http://127.0.0.1:${await freePort()}`];
  const publicUrl = `http://127.0.0.1:${port}`;
  const account = { accountSid: `AC${"6b".repeat(16)}`, authToken: "the second secret" };
  const secrets = { twilio: account, expoAccessToken: "the second token" };
  standby = await Sandbox.start({ clock: systemClock, log: silentLog, publicUrl, secrets });
  standby.knobs.patch({ expo: { receiptDelaySeconds: 0 }, twilio: { stepSeconds: 0.05 } });
  const environment = {
    REDIS_URL: `unix://${redis.server.socketPath}`,
    CARILLON_DATA_DIR: folder,
    CARILLON_HTTP_PORT: String(port),
    CARILLON_SANDBOX_PORT: "0",
    CARILLON_SANDBOX_SMTP_PORT: "0",
    CARILLON_PUSH_RECEIPT_DELAY: "1",
    CARILLON_PUSH_PROVIDER: "expo,expo_standby",
    CARILLON_PUSH_EXPO_BASE_URL: nobody,
    CARILLON_PUSH_EXPO_STANDBY_BASE_URL: standby.url,
    CARILLON_PUSH_EXPO_STANDBY_ACCESS_TOKEN: secrets.expoAccessToken,
    CARILLON_SMS_PUBLIC_URL: publicUrl,
    CARILLON_SMS_PROVIDER: "twilio,twilio_standby",
    CARILLON_SMS_TWILIO_BASE_URL: nobody,
    CARILLON_SMS_TWILIO_ACCOUNT_SID: `AC${"5a".repeat(16)}`,
    CARILLON_SMS_TWILIO_AUTH_TOKEN: "the first secret",
    CARILLON_SMS_TWILIO_MESSAGING_SERVICE_SID: "MG1",
    CARILLON_SMS_TWILIO_STANDBY_BASE_URL: standby.url,
    CARILLON_SMS_TWILIO_STANDBY_ACCOUNT_SID: account.accountSid,
    CARILLON_SMS_TWILIO_STANDBY_AUTH_TOKEN: account.authToken,
    CARILLON_SMS_TWILIO_STANDBY_MESSAGING_SERVICE_SID: "MG2",
  };
  const config = loadSettings(environment, folder);
  house = await openHouse({ config, roles: { web: true, worker: true }, log: silentLog });
  ({ token } = await createAdminToken(house.ctx, { label: "test" }));
}, 120_000);
afterAll(async () => {
  await house?.close();
  await standby?.close();
  await redis.close();
  rmSync(folder, { recursive: true });
});

const ask = async <T>(path: string) => {
  const response = await fetch(`${house.url}/api/1/admin/${path}`, { headers: { authorization: `Bearer ${token}` } });
  return (await response.json()) as T;
};
/** Starts a recurring job that would otherwise wait for its next time. */
const hurry = (name: string) => {
  const runner = domains.flatMap(({ runners = [] }: Domain) => runners).find((one) => one.name === name);
  house.ctx.jobs.nudge(runner!, {});
};

interface Told {
  readonly items: readonly { channel: string; provider: string; steps?: Record<string, number> }[];
}

test("a notification and a text go through the second account to their ends, and everybody can see who carried them", async () => {
  const callbacks = (channel: string) => ({
    failureJob: { name: `runners.${channel}.default_failure`, kwargs: {} },
    successJob: { name: `runners.${channel}.default_success`, kwargs: {} },
  });
  const contents = { title: "Good morning", body: "Breathe", channel_id: "default" };
  const pushToken = "ExponentPushToken[standby-1234567]";
  const [pushed, texted] = [
    await enqueuePushes(house.ctx, [{ pushToken, contents, ...callbacks("push") }]),
    await enqueueSms(house.ctx, [{ phoneNumber: "+12025550123", body: "Breathe", ...callbacks("sms") }]),
  ];
  const stepsOf = async (sent: typeof pushed | typeof texted) => {
    const { steps } = await ask<{ steps: { step: string; provider: string | null }[] }>(
      `messages/${sent.ok && sent.uids[0]}`,
    );
    return steps.map(({ step, provider }) => (provider === null ? step : `${step} ${provider}`));
  };
  const withEnd = async (sent: typeof pushed | typeof texted, end: string) => {
    hurry("runners.push.ticket_hot_to_cold");
    hurry("runners.messages.store_log");
    const steps = await stepsOf(sent);
    return steps.some((step) => step.startsWith(end)) ? steps : undefined;
  };
  const push = await eventually(() => withEnd(pushed, "confirmed"), "the receipt of the notification");
  expect(push).toEqual(["queued", "accepted expo_standby", "confirmed expo_standby"]);
  // Its status came with the signature of the second account.
  const text = await eventually(() => withEnd(texted, "ended"), "the end of the text");
  expect(text.slice(0, 2)).toEqual(["queued", "accepted twilio_standby"]);

  const carried = await eventually(async () => {
    hurry("runners.messages.store_log");
    const { items } = await ask<Told>("providers/carried?days=2");
    const complete = items.some(({ steps }) => steps?.confirmed) && items.some(({ channel }) => channel === "sms");
    return complete ? items : undefined;
  }, "the steps in SQL");
  const takers = carried.flatMap(({ channel, provider, steps }) =>
    steps?.accepted === 1 ? [`${channel} ${provider}`] : [],
  );
  expect(takers.sort()).toEqual(["push expo_standby", "sms twilio_standby"]);
  const { items } = await ask<Told>("providers");
  expect(items.map(({ provider }) => provider)).toEqual(["expo", "expo_standby", "twilio", "twilio_standby", "ses"]);
}, 60_000);

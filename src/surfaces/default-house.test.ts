import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { startTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import type { Domain } from "../domain.ts";
import { domains } from "../domains.ts";
import { sandboxAddress } from "../infrastructure/sandbox/service.ts";
import { enqueueMails } from "../messaging/email/service.ts";
import { enqueuePushes } from "../messaging/push/service.ts";
import { enqueueSms } from "../messaging/sms/service.ts";
import { type House, openHouse } from "./house.ts";
import { loadSettings } from "./settings.ts";

/**
 * What a newcomer gets: no account, no settings. Here even the ports are taken, those of the house and of the sandbox, so
 * that everybody has to follow the addresses that came out. The one setting is how long a ticket rests, 15 minutes otherwise.
 */
let folder: string;
let redis: TestRedis;
let house: House;
const WARMING = "runners.push.ticket_hot_to_cold";
const strangers: Server[] = [];
const warnings: string[] = [];

async function takenPort(): Promise<string> {
  const server = createServer((_, response) => response.writeHead(418).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  strangers.push(server);
  return String((server.address() as AddressInfo).port);
}

let environment: Record<string, string>;
const open = (roles: { web: boolean; worker: boolean }) =>
  openHouse({
    config: loadSettings(environment, folder),
    roles,
    log: pino({ level: "warn" }, { write: (line: string) => void warnings.push(line) }),
  });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "carillon-newcomer-"));
  redis = await startTestRedis();
  environment = {
    REDIS_URL: `unix://${redis.server.socketPath}`,
    CARILLON_DATA_DIR: folder,
    CARILLON_HTTP_PORT: await takenPort(),
    CARILLON_SANDBOX_PORT: await takenPort(),
    CARILLON_SANDBOX_SMTP_PORT: await takenPort(),
    CARILLON_PUSH_RECEIPT_DELAY: "1",
  };
  house = await open({ web: true, worker: true });
}, 120_000);
afterAll(async () => {
  await house?.close();
  await redis.close();
  for (const server of strangers) server.close();
  rmSync(folder, { recursive: true });
});

const ask = async (path: string, init?: RequestInit) => {
  const response = await fetch(`${house.url}${path}`, init);
  return response.status === 204 ? undefined : ((await response.json()) as Record<string, never>);
};
const messageTo = async (to: string) => {
  const { items } = (await ask(`/sandbox/api/inbox?to=${encodeURIComponent(to)}`)) as unknown as {
    items: { id: string }[];
  };
  return items[0] && ask(`/sandbox/api/inbox/${items[0].id}`);
};
const countOf = async (pattern: string, field: string) => {
  const names = (await house.ctx.redis.commands.keys(`${pattern}:daily:*`)).filter((name) => /:\d+$/.test(name));
  const counts = await Promise.all(names.map((name) => house.ctx.redis.commands.hget(name, field)));
  return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
};

test("a newcomer's first notification, text and mail are seen in the inbox, delivered, and their callbacks run", async () => {
  const { ctx } = house;
  const knobs = { method: "PATCH", headers: { "content-type": "application/json" } };
  await ask("/api/1/sandbox/knobs", {
    ...knobs,
    body: '{"expo":{"receiptDelaySeconds":0},"twilio":{"stepSeconds":0.05}}',
  });
  const token = "ExponentPushToken[newcomer-1234567]";
  await enqueuePushes(ctx, [
    {
      pushToken: token,
      contents: { title: "Good morning", body: "Breathe", channel_id: "default" },
      failureJob: { name: "runners.push.default_failure", kwargs: {} },
      successJob: { name: "runners.push.default_success", kwargs: {} },
    },
  ]);
  await enqueueSms(ctx, [
    {
      phoneNumber: "+12025550123",
      body: "Breathe",
      failureJob: { name: "runners.sms.default_failure", kwargs: {} },
      successJob: { name: "runners.sms.default_success", kwargs: {} },
    },
  ]);
  const mails = [{ email: "ada@example.com", template: "verifyEmailCode", parameters: { code: "123456" } }];
  await enqueueMails(ctx, mails);

  const delivered = async (to: string) => {
    const message = (await messageTo(to)) as { status?: string } | undefined;
    return message?.status === "delivered" ? message : undefined;
  };
  const ends = {
    push: await eventually(() => delivered(token)),
    sms: await eventually(() => delivered("+12025550123")),
    email: await eventually(() => delivered("ada@example.com")),
  };
  expect(ends).toMatchObject({
    push: { channel: "push", provider: "expo", subject: "Good morning" },
    sms: { channel: "sms", provider: "twilio", text: "Breathe" },
    email: { channel: "email", provider: "ses", mail: { code: "123456" } },
  });
  // The providers told the house, which believed them.
  const told = (message: unknown) => (message as { webhooks: { answered: number }[] }).webhooks;
  await eventually(async () => {
    const [text, mail] = [await messageTo("+12025550123"), await messageTo("ada@example.com")];
    return (
      told(text).length === 4 &&
      told(mail).length === 1 &&
      [...told(text), ...told(mail)].every((w) => w.answered < 300)
    );
  }, "webhooks answered");
  // Tickets are looked through every five minutes; a newcomer would wait, a test does not.
  const warming = domains.flatMap(({ runners = [] }: Domain) => runners).find(({ name }) => name === WARMING)!;
  await eventually(async () => {
    ctx.jobs.nudge(warming, {});
    return countOf("stats:push_receipts", "succeeded");
  }, "the receipt of the notification");
  await eventually(() => countOf("stats:sms_events", "removed"), "the last news of the text");
  await eventually(() => countOf("stats:email_events", "succeeded"), "the delivery of the mail");
  // Nothing is left to do: what was queued ran, callbacks included.
  const left = () =>
    Promise.all(
      ["jobs:hot", "jobs:failed", "sms:pending", "email:receipt_pending"].map((key) => ctx.redis.commands.exists(key)),
    );
  await eventually(async () => (await left()).every((there) => there === 0), "nothing left to do");
  expect(warnings.filter((line) => !/ports of the sandbox are taken/.test(line))).toEqual([]);
}, 60_000);

test("the house and the simulated providers know each other's address, though their ports were taken", async () => {
  const state = (await ask("/api/1/sandbox")) as unknown as {
    url: string;
    public_url: string;
    sns: { confirmed: boolean; lost: number };
  };
  expect(state.public_url).toBe(house.url);
  expect(new URL(state.url).port).not.toBe(environment.CARILLON_SANDBOX_PORT);
  expect(new URL(house.url!).port).not.toBe(environment.CARILLON_HTTP_PORT);
  expect(state.sns).toMatchObject({ confirmed: true, lost: 0 });
});

test("a worker in another process sends to the sandbox where it really is", async () => {
  const worker = await open({ web: false, worker: true });
  expect(sandboxAddress(worker.ctx.config).url).toBe(sandboxAddress(house.ctx.config).url);
  const outcome = await worker.ctx.providers.sms.create({ to: "+12025550124", body: "from afar" });
  expect(outcome).toMatchObject({ ok: true, provider: "twilio" });
  await worker.close();
}, 60_000);

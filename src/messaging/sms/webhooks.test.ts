import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mortalConnection } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { createUser } from "../../people/users/service.ts";
import { twilioAccounts } from "../../providers/settings.ts";
import { signTwilioRequest } from "../../providers/twilio-signature.ts";
import { SANDBOX_TWILIO } from "../../sandbox/sandbox.ts";
import { buildServer } from "../../surfaces/http/index.ts";
import { addPhones, installEffects } from "../contacts/service.ts";
import { INBOUND_WEBHOOK } from "./addresses.ts";
import { smsEvent } from "./entries.ts";
import { takeInbound, wishOf } from "./inbound.ts";
import { sms } from "./index.ts";
import { followWishesJob } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsContext, type SmsHouse } from "./sms.fixture.ts";
import { smsWebhookStats } from "./stats.ts";
import { takeStatusWebhook } from "./status-webhook.ts";

const SID = `SM${"ab".repeat(16)}`;
const PERSON = "+14155550132";
const PATH = "/api/1/sms/webhook";

let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

const sign = (fields: Record<string, string>, path = PATH) =>
  signTwilioRequest(SANDBOX_TWILIO.authToken, { publicUrl: house.url, path, fields: Object.entries(fields) });

async function post(
  body: string,
  {
    signature,
    path = PATH,
    type = "application/x-www-form-urlencoded",
  }: { signature?: string; path?: string; type?: string },
) {
  const headers = { "content-type": type, ...(signature === undefined ? {} : { "x-twilio-signature": signature }) };
  const response = await fetch(`${house.url}${path}`, { method: "POST", body, headers });
  return { status: response.status, body: await response.text(), type: response.headers.get("content-type") };
}

const signed = (fields: Record<string, string>, path = PATH) =>
  post(new URLSearchParams(fields).toString(), { signature: sign(fields, path), path });

const status = { MessageSid: SID, MessageStatus: "sending", ErrorCode: "", AccountSid: SANDBOX_TWILIO.accountSid };
const FORGED = Buffer.alloc(20, 7).toString("base64");

test("each kind of webhook gets its answer and one counter", async () => {
  const asked = [
    await post("a=1", {}),
    await post("a=1", { signature: FORGED, type: "application/json" }),
    await post("a=1", { signature: "nonsense" }),
    await post("x".repeat(1_048_577), { signature: FORGED }),
    await post("", { signature: FORGED }),
    await post("a=1&a=2", { signature: FORGED }),
    await post("a=1", { signature: FORGED }),
    await signed({ ...status, MessageStatus: "dancing" }),
    await signed({ ...status, AccountSid: `AC${"0".repeat(32)}` }),
    await signed(status),
    await post(new URLSearchParams(status).toString(), {
      signature: sign(status),
      type: 'application/x-www-form-urlencoded; Charset="UTF-8"',
    }),
  ];
  expect(asked.map((answer) => answer.status)).toEqual([401, 400, 403, 413, 403, 400, 403, 200, 200, 200, 200]);
  expect((await house.counts(smsWebhookStats)).events).toEqual({
    received: 11,
    verified: 4,
    accepted: 2,
    unprocessable: 2,
    signature_missing: 1,
    signature_invalid: 3,
    body_max_size_exceeded: 1,
    body_parse_error: 2,
  });
  const [event] = await house.ctx.redis.commands.lrange(keys.event(), 0, -1);
  expect(JSON.parse(event!)).toMatchObject({ sid: SID, status: "sending", error_code: null, received_via: "webhook" });
  // It is written by hand, for speed.
  expect(smsEvent.encode(smsEvent.decode(Buffer.from(event!)))).toBe(event);
  expect(await house.length(keys.unprocessable())).toBe(2);
});

test("webhooks of either account count, each signed with the secret of one of them", async () => {
  const second = { accountSid: `AC${"7c".repeat(16)}`, authToken: "the second secret" };
  const accounts = [SANDBOX_TWILIO, second, { accountSid: `AC${"8d".repeat(16)}`, authToken: "a stranger's" }];
  const { accountSid, authToken } = twilioAccounts.twilio_standby;
  const ctx = house.process({
    config: [
      [accountSid as never, second.accountSid],
      [authToken as never, second.authToken],
    ],
  });
  const answers: number[] = [];
  for (const { accountSid: AccountSid, authToken: token } of accounts) {
    const fields = Object.entries({ ...status, AccountSid });
    const signature = signTwilioRequest(token, { publicUrl: house.url, path: PATH, fields });
    const headers = { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature };
    const body = Buffer.from(new URLSearchParams(fields).toString());
    answers.push(await takeStatusWebhook(ctx, { headers, body, path: PATH }));
  }
  expect(answers).toEqual([200, 200, 403]);
  expect(await house.length(keys.event())).toBe(2);
});

test("a webhook whose body breaks off is answered with 500, and a status one is counted", async () => {
  const headers = { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": FORGED };
  expect(await takeStatusWebhook(house.ctx, { path: PATH, headers, body: "broken" })).toBe(500);
  expect((await house.counts(smsWebhookStats)).events).toEqual({ received: 1, body_read_error: 1 });
  expect(await takeInbound(house.ctx, { path: INBOUND_WEBHOOK, headers, body: "broken" })).toEqual({ status: 500 });
  expect((await house.counts(smsWebhookStats)).events.received).toBe(1);
  await house.audit();
});

test("any other text is answered that it was received, and every text is announced without its words or its number", async () => {
  const answer = async (ctx: SmsContext, Body: string, more: Record<string, string> = {}) => {
    const fields = { From: PERSON, To: "+15005550006", Body, ...more };
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-twilio-signature": sign(fields, INBOUND_WEBHOOK),
    };
    const body = Buffer.from(new URLSearchParams(fields).toString());
    return takeInbound(ctx, { path: INBOUND_WEBHOOK, headers, body });
  };
  const announced = () => house.ctx.alerts.recorded.filter(({ level }) => level === "ops").map(({ text }) => text);
  const before = announced().length;
  const received = `<Response><Message>Nobody reads this number. Reply STOP to get no more texts.</Message></Response>`;
  expect(await answer(house.ctx, "who is this?")).toEqual({ status: 200, body: expect.stringContaining(received) });
  await answer(house.ctx, "STOP");
  await answer(house.ctx, "Start");
  expect(await answer(house.ctx, "help", { OptOutType: "HELP" })).toEqual({ status: 204 });
  expect(announced().slice(before)).toEqual([
    "A text came in.",
    "A text came in that says STOP.",
    "A text came in that says START.",
    "A text came in.",
  ]);
  const own = house.process({ config: [[settings.replyReceived as never, `<"you" & 'us'>`]] });
  const escaped = "<Message>&lt;&quot;you&quot; &amp; &apos;us&apos;&gt;</Message>";
  expect(await answer(own, "hm")).toEqual({ status: 200, body: expect.stringContaining(escaped) });
});

test("after a thousand random webhooks the counts add up, and what was accepted is in the queue", async () => {
  const request = fc.record({
    signature: fc.constantFrom("right", "forged", "malformed", "none"),
    type: fc.constantFrom("application/x-www-form-urlencoded", "text/plain"),
    fields: fc.oneof(
      fc.constant(status),
      fc.dictionary(fc.stringMatching(/^[A-Za-z]{1,8}$/), fc.string(), { maxKeys: 4 }),
    ),
    repeated: fc.boolean(),
  });
  const requests = fc.sample(request, { numRuns: 1000, seed: 7 });
  for (let from = 0; from < requests.length; from += 50)
    await Promise.all(
      requests.slice(from, from + 50).map(({ signature, type, fields, repeated }) => {
        const form = new URLSearchParams(fields).toString();
        const given = { right: sign(fields), forged: FORGED, malformed: "x", none: undefined }[signature];
        return post(repeated ? `${form}&MessageSid=1&MessageSid=2` : form, { signature: given, type });
      }),
    );
  const { events } = await house.counts(smsWebhookStats);
  expect(events.received).toBe(1000);
  expect(events.accepted).toBeGreaterThan(20);
  expect(await house.length(keys.event())).toBe(events.accepted);
  expect(await house.length(keys.unprocessable())).toBe(events.unprocessable);
  await house.audit();
});

test("twenty forged webhooks in a row raise one warning that our own address may be wrong", async () => {
  const before = house.ctx.alerts.recorded.length;
  await signed(status);
  for (let count = 0; count < 25; count++) await post("a=1", { signature: FORGED });
  const warned = house.ctx.alerts.recorded.slice(before).map(({ identifier }) => identifier);
  expect(warned.filter((identifier) => identifier === "sms:webhook_signatures")).toHaveLength(1);
});

test("while Redis is away a true webhook fails, so that it comes again, and a forged one is still refused", async () => {
  const redis = await mortalConnection(house.base.server, { dieAt: 1, death: "before" });
  const ctx = house.process({ redis });
  const headers = { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": sign(status) };
  const received = { path: PATH, headers, body: Buffer.from(new URLSearchParams(status).toString()) };
  await expect(takeStatusWebhook(ctx, received)).rejects.toThrow();
  const forged = { ...received, headers: { ...headers, "x-twilio-signature": FORGED } };
  expect(await takeStatusWebhook(ctx, forged)).toBe(403);
  expect([await house.length(keys.event()), (await house.counts(smsWebhookStats)).events]).toEqual([0, {}]);
  expect((await signed(status)).status).toBe(200);
  redis.commands.disconnect();
});

/** A database that takes every statement and answers none. */
class SilentSql extends MortalSql {
  override pass<T>(): Promise<T> {
    return new Promise(() => {});
  }
}

test("webhooks are answered before any SQL, whether it hangs or is gone", async () => {
  const databases = [new SilentSql(house.base.sql), new MortalSql(house.base.sql, { dieAt: 1 })];
  for (const sql of databases) {
    await house.clear();
    const ctx = Object.defineProperty(house.process(), "sql", { value: sql });
    const app = await buildServer(ctx, [sms]);
    const inject = async (path: string, fields: Record<string, string>) => {
      const headers = { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": sign(fields, path) };
      const payload = new URLSearchParams(fields).toString();
      return (await app.inject({ method: "POST", url: path, payload, headers })).statusCode;
    };
    expect(await inject(PATH, status)).toBe(200);
    expect(await inject(PATH, { ...status, MessageStatus: "dancing" })).toBe(200);
    for (const Body of ["STOP", "START", "hello"])
      expect(await inject(INBOUND_WEBHOOK, { From: PERSON, To: "+15005550006", Body })).toBe(200);
    expect(await house.length(keys.event())).toBe(1);
    expect(await house.ctx.redis.commands.hget(keys.wishes(), PERSON)).toContain("start");
    await app.close();
  }
});

test("a webhook signed for another address or method of encoding is forged to us", async () => {
  const elsewhere = { publicUrl: "https://other.example", path: PATH, fields: Object.entries(status) };
  const asked = [
    await post(new URLSearchParams(status).toString(), {
      signature: signTwilioRequest(SANDBOX_TWILIO.authToken, elsewhere),
    }),
    await post(new URLSearchParams(status).toString(), { signature: sign(status), path: `${PATH}?x=1` }),
    await post(`${new URLSearchParams(status)}&More=1`, { signature: sign(status) }),
    await post(new URLSearchParams({ ...status, MessageStatus: "delivered" }).toString(), { signature: sign(status) }),
  ];
  expect(asked.map((answer) => answer.status)).toEqual([403, 403, 403, 403]);
  expect(await house.length(keys.event())).toBe(0);
});

test("only a whole word, or STOP at the beginning, ends texts", () => {
  for (const text of ["STOP", " stop! ", "StopAll", "end", "Quit.", "stop texting me", "Unsubscribe please", "REVOKE"])
    expect(wishOf(text), text).toBe("stop");
  for (const text of ["START", "yes", "Unstop."]) expect(wishOf(text), text).toBe("start");
  for (const text of ["we end at noon", "see you this weekend", "yes I will come", "please stop", "", "cancel that"])
    expect(wishOf(text), text).toBe("none");
  expect([wishOf("hello", "STOP"), wishOf("hello", "START"), wishOf("stop", "START")]).toEqual([
    "stop",
    "start",
    "stop",
  ]);
});

test("STOP is honoured for every account with the number, and START takes it back", async () => {
  const changes: string[] = [];
  const takeAway = installEffects({
    reminders: {
      reachChanged: async (_tx, found) => {
        for (const { ifAdded, ifRemoved } of found) changes.push(ifRemoved ?? ifAdded ?? "");
      },
    },
  });
  for (const sub of ["ada", "bob"]) await createUser(house.ctx, [], { sub });
  await addPhones(
    house.ctx,
    ["ada", "bob"].map((userSub) => ({
      userSub,
      phoneNumber: PERSON,
      verified: true,
      receivesNotifications: true,
      cause: "verify" as const,
    })),
  );
  changes.length = 0;
  const inbound = "/api/1/sms/inbound_webhook";
  const say = (Body: string, more: Record<string, string> = {}) =>
    signed({ From: PERSON, To: "+15005550006", Body, ...more }, inbound);
  const stopped = await say("Stop");
  await house.run(followWishesJob);
  expect([stopped.status, stopped.type]).toEqual([200, "text/xml; charset=utf-8"]);
  expect(stopped.body).toContain("<Response><Message>You will get no more texts");
  expect(changes).toEqual(["sms_stop", "sms_stop"]);
  expect(await house.query("select reason from suppressed_phone_numbers")).toEqual([{ reason: "Stop" }]);
  await say("we end at noon");
  expect(await house.query("select reason from suppressed_phone_numbers")).toHaveLength(1);
  expect((await say("START", { OptOutType: "START" })).status).toBe(204);
  await house.run(followWishesJob);
  expect(await house.query("select reason from suppressed_phone_numbers")).toEqual([]);
  const empty = await signed({ From: PERSON }, inbound);
  expect([empty.status, empty.body.endsWith("<Response></Response>")]).toEqual([200, true]);
  const forged = await post("From=1", { signature: FORGED, path: inbound });
  expect([forged.status, (await house.counts(smsWebhookStats)).events]).toEqual([403, {}]);
  takeAway();
});

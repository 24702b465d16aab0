import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { answersText, hangsUp, isSilent } from "../../providers/http-server.fixture.ts";
import { deliver, prune, RETRY_DELAYS, sweep } from "./jobs.ts";
import { emitEvents, type WebhookEvent } from "./service.ts";
import { settings } from "./settings.ts";
import { openWebhooks, verified, type WebhooksHouse } from "./webhooks.fixture.ts";

let house: WebhooksHouse;
beforeAll(async () => {
  house = await openWebhooks();
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear();
  house.ctx.alerts.recorded.length = 0;
});

const DAY = 86_400;
const arrived = (name: string, data: object = {}): WebhookEvent => ({
  type: "touch.delivered",
  key: name,
  at: 1_790_000_000.25,
  data: { touch_uid: name, ...data },
});

test("an event reaches its endpoint signed so that any receiver of the standard can check it", async () => {
  const { secret, uid } = await house.endpoint();
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  await emitEvents(house.ctx, [arrived("crl_tch_1", { user_sub: "ada" })]);
  await house.work();
  const [request] = house.receiver.requests;
  expect(request).toMatchObject({
    method: "POST",
    path: "/hook",
    headers: { "content-type": "application/json", "webhook-id": expect.stringMatching(/^crl_whm_[\w-]{22}$/) },
  });
  expect(verified(request!, secret, house.ctx.clock.now())).toEqual({
    type: "touch.delivered",
    timestamp: "2026-09-21T14:13:20.250Z",
    data: { touch_uid: "crl_tch_1", user_sub: "ada" },
  });
  expect(() => verified(request!, `whsec_${Buffer.alloc(32).toString("base64")}`, house.ctx.clock.now())).toThrow();
  const now = house.ctx.clock.now();
  expect(await house.messages(uid)).toEqual([
    {
      uid: request!.headers["webhook-id"],
      endpoint_uid: uid,
      type: "touch.delivered",
      status: "delivered",
      attempts: 1,
      next_attempt_at: null,
      last_attempt_at: now,
      last_status: 204,
      last_error: null,
      delivered_at: now,
      created_at: now,
    },
  ]);
});

test("the receiver of these tests knows the example that the standard publishes", () => {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const request = { headers, method: "POST", path: "/", port: 1, body: Buffer.from('{"test": 2432232314}') };
  expect(verified(request, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1_614_265_330)).toEqual({ test: 2432232314 });
});

test("connections are used again though receivers answer with words, and endless words do not hold anybody up", async () => {
  const { uid } = await house.endpoint();
  const talk = answersText(200, "thank you");
  const endless: typeof talk = (_, response) => {
    const go = () => {
      if (!response.destroyed) response.write("x".repeat(8_192), go);
    };
    response.writeHead(200);
    go();
  };
  house.receiver.once.push(talk, talk, endless);
  for (const name of ["one", "two", "three"]) {
    await emitEvents(house.ctx, [arrived(name)]);
    await house.work();
  }
  const [first, second] = house.receiver.requests;
  expect(second!.port).toBe(first!.port);
  expect(await house.messages(uid, "?status=delivered")).toHaveLength(3);
});

test("each endpoint hears only of the types it asked for, and telling twice changes nothing", async () => {
  const all = await house.endpoint();
  const clicks = await house.endpoint({ types: ["link.clicked", "link.clicked"], url: `${house.receiver.url}/clicks` });
  expect(clicks.types).toEqual(["link.clicked"]);
  const events = [arrived("one"), { ...arrived("one"), type: "link.clicked" as const }, arrived("two")];
  await emitEvents(house.ctx, events);
  await emitEvents(house.ctx, [...events].reverse());
  await house.work();
  await emitEvents(house.ctx, events);
  expect(await house.work()).toEqual([]);
  expect((await house.messages(all.uid)).map(({ type }) => type)).toEqual([
    "touch.delivered",
    "link.clicked",
    "touch.delivered",
  ]);
  expect(await house.messages(clicks.uid)).toMatchObject([{ type: "link.clicked", status: "delivered" }]);
  expect(new Set(house.receiver.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(4);
  expect(house.receiver.requests).toHaveLength(4);
});

test("where there is no endpoint, telling costs one look at SQL in five seconds", async () => {
  let looks = 0;
  const { sql } = house.base;
  const ctx = house.process({
    sql: {
      ...sql,
      tables: () => {
        looks += 1;
        return sql.tables();
      },
    },
  });
  for (let turn = 0; turn < 100; turn++) await emitEvents(ctx, [arrived(String(turn))]);
  expect(looks).toBe(1);
  await house.base.clock.advance(5);
  await emitEvents(ctx, [arrived("later")]);
  expect(looks).toBe(2);
  expect(await house.work()).toEqual([]);
});

test("what another process subscribed to is told within seconds", async () => {
  await emitEvents(house.ctx, [arrived("early")]);
  const elsewhere = house.process({ sql: { ...house.base.sql } });
  await emitEvents(elsewhere, [arrived("early")]);
  await house.endpoint();
  await house.base.clock.advance(5);
  await emitEvents(elsewhere, [arrived("late")]);
  await house.work();
  expect(house.receiver.requests).toHaveLength(1);
});

test("a receiver that fails gets the message again after each delay, and once the last is over it is given up with one warning", async () => {
  const { uid, secret } = await house.endpoint();
  const failures = [answersText(500, "no"), hangsUp, answersText(302, "", { location: "/elsewhere" })];
  house.receiver.once.push(...Array.from({ length: 9 }, (_, at) => failures[at % 3]!));
  await emitEvents(house.ctx, [arrived("stubborn")]);
  await house.work();
  for (const delay of RETRY_DELAYS) {
    expect(await house.asleep()).toEqual([delay]);
    expect(await house.pass(delay - 1)).toEqual([]);
    expect(house.ctx.alerts.recorded).toEqual([]);
    expect(await house.pass(1)).toEqual([deliver.name]);
  }
  expect(await house.asleep()).toEqual([]);
  expect(house.receiver.requests).toHaveLength(9);
  expect(house.receiver.requests.map(({ path }) => path)).not.toContain("/elsewhere");
  expect(new Set(house.receiver.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  // Each attempt is signed for its own moment, so that receivers who refuse old timestamps take it.
  verified(house.receiver.requests.at(-1)!, secret, house.ctx.clock.now());
  expect(await house.messages(uid)).toMatchObject([
    { status: "failed", attempts: 9, last_status: 302, last_error: "answered with a redirect", next_attempt_at: null },
  ]);
  expect(house.ctx.alerts.recorded).toMatchObject([{ level: "warning", identifier: "webhooks:given_up" }]);
  expect(house.ctx.alerts.recorded[0]!.text).not.toContain("/hook");
});

test("a receiver that is silent for 15 seconds has failed, and what waits behind it is not held up", async () => {
  const quiet = await house.endpoint({ url: `${house.receiver.url}/quiet` });
  const events = Array.from({ length: 30 }, (_, at) => arrived(String(at)));
  house.receiver.once.push(...Array.from({ length: 30 }, () => isSilent));
  await emitEvents(house.ctx, events);
  const working = house.work();
  await eventually(() => house.receiver.requests.length === 8);
  await house.base.clock.advance(14);
  expect(house.receiver.requests).toHaveLength(8);
  await house.base.clock.advance(1);
  await working;
  expect(house.receiver.requests).toHaveLength(8);
  const messages = await house.messages(quiet.uid);
  expect(messages).toHaveLength(30);
  for (const message of messages)
    expect(message).toMatchObject({ status: "pending", attempts: 1, last_error: "no answer within 15 s" });
  house.receiver.once.length = 0;
  await house.pass(5);
  expect(house.receiver.requests).toHaveLength(38);
  expect(await house.messages(quiet.uid, "?status=delivered")).toHaveLength(30);
});

test("410 switches the endpoint off, and nothing more is sent or stored until it is switched on", async () => {
  const { uid } = await house.endpoint();
  house.receiver.once.push(answersText(410, ""));
  await emitEvents(house.ctx, [arrived("last")]);
  await house.work();
  const path = `/api/1/admin/webhooks/${uid}`;
  expect((await house.call("GET", path)).json()).toMatchObject({ enabled: false, disabled_reason: "gone" });
  expect(house.ctx.alerts.identifiers()).toEqual(["webhooks:endpoint_disabled"]);
  await emitEvents(house.ctx, [arrived("unheard")]);
  const [message, ...others] = await house.messages(uid);
  expect([message!.status, others]).toEqual(["failed", []]);
  const resend = `/api/1/admin/webhook_messages/${message!.uid}/resend`;
  for (const refused of [await house.call("POST", resend), await house.call("POST", `${path}/test`)])
    expect([refused.statusCode, refused.json().type]).toEqual([409, "webhook_endpoint_disabled"]);

  expect((await house.call("PATCH", path, { body: { enabled: true } })).json()).toMatchObject({
    enabled: true,
    disabled_reason: null,
    failing_since: null,
  });
  expect((await house.call("POST", resend)).statusCode).toBe(202);
  await emitEvents(house.ctx, [arrived("heard")]);
  await house.work();
  expect(await house.messages(uid, "?status=delivered")).toHaveLength(2);
});

test("an endpoint that only fails for days is switched off, one success begins the count anew", async () => {
  const { uid } = await house.endpoint();
  const path = `/api/1/admin/webhooks/${uid}`;
  const fail = async (name: string) => {
    house.receiver.once.push(answersText(503, ""));
    await emitEvents(house.ctx, [arrived(name)]);
    await house.workWithout();
  };
  await fail("one");
  const since = house.ctx.clock.now();
  expect((await house.call("GET", path)).json()).toMatchObject({ failing_since: since, enabled: true });
  await house.base.clock.advance(4 * DAY);
  await emitEvents(house.ctx, [arrived("good")]);
  await house.work();
  expect((await house.call("GET", path)).json()).toMatchObject({ failing_since: null, enabled: true });
  await fail("two");
  await house.base.clock.advance(house.ctx.config.get(settings.disableAfter) - 1);
  await fail("three");
  expect((await house.call("GET", path)).json()).toMatchObject({ enabled: true });
  expect(house.ctx.alerts.identifiers()).toEqual([]);
  await house.base.clock.advance(1);
  await fail("four");
  expect((await house.call("GET", path)).json()).toMatchObject({ enabled: false, disabled_reason: "failing" });
  expect(house.ctx.alerts.identifiers()).toEqual(["webhooks:endpoint_disabled"]);
  // What still waited for it is given up without a request and without another warning.
  const before = house.receiver.requests.length;
  await house.pass(10);
  expect(house.receiver.requests).toHaveLength(before);
  expect(await house.messages(uid, "?status=pending")).toEqual([]);
  expect(house.ctx.alerts.identifiers()).toEqual(["webhooks:endpoint_disabled"]);
});

test("a worker that stops gives back what it has not sent, without counting an attempt", async () => {
  const { uid } = await house.endpoint();
  await emitEvents(
    house.ctx,
    Array.from({ length: 20 }, (_, at) => arrived(String(at))),
  );
  const raws = await house.messages(uid);
  const stopping = {
    ...house.ctx,
    sql: house.ctx.sql,
    shuttingDown: () => house.receiver.requests.length > 0,
    budget: { exhausted: () => false },
  };
  await deliver.runMany!(
    stopping as never,
    raws.map((message) => ({ uid: message.uid })),
  );
  const sent = house.receiver.requests.length;
  expect(sent).toBeLessThan(20);
  expect(await house.messages(uid, "?status=delivered")).toHaveLength(sent);
  for (const message of await house.messages(uid, "?status=pending")) expect(message.attempts).toBe(0);
  await house.work();
  expect(house.receiver.requests).toHaveLength(20);
});

test("events that come while SQL is away wait in Redis, and those that reach neither are told of", async () => {
  await house.endpoint();
  const away = new MortalSql(house.base.sql);
  away.dead = true;
  await emitEvents(house.process({ sql: away }), [arrived("patient")]);
  expect(house.ctx.alerts.recorded).toEqual([]);
  await house.work();
  expect(house.receiver.requests).toHaveLength(1);
  const lonely = house.process({ sql: away });
  Object.assign(lonely.jobs, { enqueueNamed: () => Promise.reject(new Error("Redis is away")) });
  await emitEvents(lonely, [arrived("lost")]);
  expect(lonely.alerts.recorded).toMatchObject([{ identifier: "webhooks:lost" }]);
});

test("messages whose job was lost are queued again after a minute, once a minute", async () => {
  const { uid } = await house.endpoint();
  await emitEvents(house.ctx, [arrived("forgotten")]);
  await house.base.flush();
  await house.base.clock.advance(60);
  await house.run(sweep);
  expect(await house.work()).toEqual([]);
  await house.base.clock.advance(1);
  await house.run(sweep);
  await house.run(sweep);
  expect(await house.work()).toEqual([deliver.name]);
  expect(await house.messages(uid)).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("messages that ended are forgotten after a month, and those that wait are not", async () => {
  const { uid } = await house.endpoint();
  await emitEvents(house.ctx, [arrived("old")]);
  await house.work();
  await emitEvents(house.ctx, [arrived("waiting")]);
  await house.base.clock.advance(house.ctx.config.get(settings.keepFor));
  await house.run(prune);
  expect(await house.messages(uid)).toHaveLength(2);
  await house.base.clock.advance(1);
  await house.run(prune);
  expect(await house.messages(uid)).toMatchObject([{ status: "pending" }]);
});

test("what was to be told about a person is forgotten with them", async () => {
  const { uid } = await house.endpoint();
  await house.person("ada");
  await emitEvents(house.ctx, [arrived("hers", { user_sub: "ada" }), arrived("his", { user_sub: "bob" })]);
  expect((await house.call("DELETE", "/api/1/admin/users/ada")).statusCode).toBe(204);
  await house.work();
  expect(house.receiver.requests).toHaveLength(1);
  expect(await house.messages(uid)).toHaveLength(1);
});

test("whatever receivers answer, each event ends as one message a wanting endpoint, delivered or given up for its reason", async () => {
  const answers = { ok: 204, slow: 429, broken: 500, gone: 410 } as const;
  const plan = fc.array(fc.constantFrom("ok", "slow", "broken", "gone"), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(plan, fc.integer({ min: 1, max: 4 }), async (story, count) => {
      await house.clear();
      const { uid } = await house.endpoint();
      house.receiver.once.push(...story.map((answer) => answersText(answers[answer], "")));
      const events = Array.from({ length: count }, (_, at) => arrived(String(at)));
      await emitEvents(house.ctx, events);
      await emitEvents(house.ctx, events);
      await house.work();
      for (const delay of RETRY_DELAYS) await house.pass(delay);
      const messages = await house.messages(uid);
      expect(messages).toHaveLength(count);
      const { enabled } = (await house.call("GET", `/api/1/admin/webhooks/${uid}`)).json();
      for (const { status, attempts, last_error } of messages) {
        if (status === "delivered") expect([attempts > 0 && attempts <= 9, last_error]).toEqual([true, null]);
        else expect([status, attempts === 9 || !enabled]).toEqual(["failed", true]);
      }
      expect(enabled).toBe(!house.receiver.requests.some((_, at) => story[at] === "gone"));
      expect(await house.asleep()).toEqual([]);
    }),
    { numRuns: 15 },
  );
}, 60_000);

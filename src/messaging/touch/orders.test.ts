import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { persistLink } from "../links/jobs.ts";
import { keys as linkKeys } from "../links/keys.ts";
import { deskOf, newUse } from "../links/uses.ts";
import { forgetRequestsJob, log, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { dropOrders, Order, prepareOrders, queueOrders } from "./order.ts";
import { onceForKey } from "./requests.ts";
import { settings } from "./settings.ts";
import { openTouch, type TouchHouse } from "./touch.fixture.ts";

const PHONE = "+14155550101";

let house: TouchHouse;
let ada: string;
beforeAll(async () => {
  house = await openTouch();
});
afterAll(() => house.close());
beforeEach(clear);

async function clear(): Promise<void> {
  await house.clear("touch_requests", "user_touches");
  await house.query("delete from touch_points where event_slug <> 'daily_reminder'");
  const text = (example: string) => ({ type: "string", example });
  await house.point("greeting", {
    event_schema: {
      type: "object",
      properties: { name: text("Ana"), url: text("https://example.com/l/x") },
      required: ["name"],
    },
    messages: {
      sms: [{ priority: 1, uid: "crl_tpsms_a", body_format: "Hi {name} {url}", body_parameters: ["name", "url"] }],
    },
  });
  ada = await house.reachable("ada", { phones: [PHONE] });
}

const order = (more: object = {}) => ({
  user_sub: "ada",
  touch_point_event_slug: "greeting",
  channels: ["sms"],
  event_parameters: { name: "Ana" },
  links: [{ parameter: "url", code_style: "short" }],
  ...more,
});
const post = (body: object, key?: string, path = "") =>
  house.call("POST", `/api/1/admin/touches${path}`, {
    body,
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
  });
const outcome = (answer: { statusCode: number; body: string }) => [answer.statusCode, JSON.parse(answer.body).type];
const queued = async () => (await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1)).map((raw) => JSON.parse(raw));

test("an order becomes a touch whose link is in its words, and leaves nothing else behind", async () => {
  const answer = await post(order());
  expect(answer.statusCode).toBe(202);
  const [touch] = answer.json().touches;
  expect(touch).toEqual({
    uid: expect.stringMatching(/^crl_tch_/),
    user_sub: "ada",
    channel: "sms",
    codes: [expect.any(String)],
  });
  expect(await queued()).toMatchObject([
    {
      aud: "send",
      uid: touch.uid,
      user_sub: "ada",
      touch_point_event_slug: "greeting",
      event_parameters: { name: "Ana", url: `http://127.0.0.1:8787/l/${touch.codes[0]}` },
      success_callback: { name: "runners.touch.persist_links", kwargs: { codes: touch.codes } },
      failure_callback: { name: "runners.touch.abandon_links", kwargs: { codes: touch.codes } },
    },
  ]);
  expect(await house.ctx.redis.commands.keys("touch:handover_seen:*")).toEqual([]);
  await house.audit();
});

test("orders that cannot be kept are refused before anything is made, each with what is wrong", async () => {
  const cases: readonly (readonly [object, readonly [number, string]])[] = [
    [{ user_sub: "nobody" }, [404, "user_not_found"]],
    [{ touch_point_event_slug: "no_such" }, [404, "touch_point_not_found"]],
    [{ event_parameters: {} }, [409, "parameters_mismatch"]],
    [{ event_parameters: { name: 7 } }, [409, "parameters_mismatch"]],
    [{ channels: ["push"] }, [409, "parameters_mismatch"]],
    [{ links: [{ parameter: "url", page_identifier: "nowhere" }] }, [422, "unknown_page"]],
    [{ links: [{ parameter: "url", page_extra: { no: "\u0000" } }] }, [422, "unknown_page"]],
    [{ channels: [] }, [422, "invalid_request"]],
    [{ channels: ["fax"] }, [422, "invalid_request"]],
    [{ touch_point_event_slug: "1bad" }, [422, "invalid_request"]],
    [{ more: 1 }, [422, "invalid_request"]],
  ];
  for (const [more, expected] of cases) expect([more, outcome(await post(order(more)))]).toEqual([more, expected]);
  expect((await house.call("POST", "/api/1/admin/touches", { token: ada, body: order() })).statusCode).toBe(403);
  expect((await house.call("POST", "/api/1/admin/touches", { token: "", body: order() })).statusCode).toBe(401);
  const large = order({ event_parameters: { name: "x".repeat(1_100_000) } });
  expect((await post(large)).statusCode).toBe(413);
  expect((await post(order({ event_parameters: { name: "x".repeat(70_000) } }))).statusCode).toBe(422);
  expect([await queued(), await house.length(linkKeys.buffer())]).toEqual([[], 0]);
});

test("without room an order is refused with when to come back, and its links are given up", async () => {
  const ctx = house.process({ settings: [[settings.queueLimit, 1]] });
  const orders = [Order.parse(order()), Order.parse(order())];
  const steps = {
    prepare: (seed: string | undefined) => prepareOrders(ctx, orders, seed),
    send: (prepared: Awaited<ReturnType<typeof prepareOrders>>, uid: string) => queueOrders(ctx, orders, prepared, uid),
    drop: (prepared: Awaited<ReturnType<typeof prepareOrders>>) => dropOrders(ctx, prepared),
  };
  await expect(onceForKey(ctx, undefined, orders, steps)).rejects.toMatchObject({ status: 503, retryAfter: 15 });
  expect([await queued(), await house.length(linkKeys.buffer())]).toEqual([[], 0]);
  // With a key the repeat uses what was prepared.
  await expect(onceForKey(ctx, "again", orders, steps)).rejects.toMatchObject({ status: 503 });
  const kept = await house.ctx.redis.commands.zrange(linkKeys.buffer(), 0, "-1");
  const roomy = {
    ...steps,
    send: (prepared: Awaited<ReturnType<typeof prepareOrders>>, uid: string) =>
      queueOrders(house.ctx, orders, prepared, uid),
  };
  const sent = await onceForKey(house.ctx, "again", orders, roomy);
  expect(sent.flatMap(({ codes }) => codes).sort()).toEqual([...kept].sort());
  expect(await queued()).toHaveLength(2);
});

test("a repeated order with one key is sent once and answered alike, also when both come at once", async () => {
  const both = await Promise.all([post(order(), "key-1"), post(order(), "key-1")]);
  const later = await post(order(), "key-1");
  expect(both[0].statusCode).toBe(202);
  expect([both[1].json(), later.json()]).toEqual([both[0].json(), both[0].json()]);
  expect(await queued()).toHaveLength(1);
  expect((await queued())[0].success_callback.kwargs.codes).toEqual(later.json().touches[0].codes);
  expect(await house.length(linkKeys.buffer())).toBe(1);
  expect(outcome(await post(order({ event_parameters: { name: "Bob" } }), "key-1"))).toEqual([
    409,
    "idempotency_key_reused",
  ]);
  expect(outcome(await post(order(), "has a space"))).toEqual([422, "invalid_touch"]);
  await house.base.clock.advance(604_801);
  await house.run(forgetRequestsJob);
  expect(await house.query("select 1 from touch_requests")).toEqual([]);
});

test("an order with a key survives a death at every command and statement: a repeat sends once what the first answered", async () => {
  const orders = [Order.parse(order())];
  const run = (ctx: TouchHouse["ctx"]) =>
    onceForKey(ctx, "key", orders, {
      prepare: (seed) => prepareOrders(ctx, orders, seed),
      send: (prepared, uid) => queueOrders(ctx, orders, prepared, uid),
      drop: (prepared) => dropOrders(ctx, prepared),
    });
  const afterlife = async () => {
    const [first, again] = [await run(house.ctx), await run(house.ctx)];
    expect(again).toEqual(first);
    const waiting = await queued();
    expect(waiting.map(({ uid }) => uid)).toEqual(first.map(({ uid }) => uid));
    expect(waiting[0].success_callback.kwargs.codes).toEqual(first[0]!.codes);
    await house.audit();
  };
  await dieAtEveryCommand(house.base.server, {
    prepare: clear,
    life: async (redis) => void (await run(house.process({ redis }))),
    afterlife,
  });
  await clear();
  const whole = new MortalSql(house.base.sql);
  await run(house.process({ sql: whole }));
  for (let dieAt = 1; dieAt <= whole.sent; dieAt++)
    for (const death of ["before", "after"] as const) {
      await clear();
      await run(house.process({ sql: new MortalSql(house.base.sql, { dieAt, death }) })).catch(() => {});
      await afterlife();
    }
  expect(whole.sent).toBeGreaterThan(4);
}, 120_000);

test("many people are told with one request, all of them or none", async () => {
  await house.reachable("bob", { phones: ["+14155550102"] });
  const body = { touches: [order(), order({ user_sub: "bob", channels: ["sms", "sms"] })] };
  const answer = await post(body, undefined, "/batch");
  expect(answer.json().touches.map(({ user_sub }: { user_sub: string }) => user_sub)).toEqual(["ada", "bob"]);
  expect(await queued()).toHaveLength(2);
  const partly = { touches: [order(), order({ user_sub: "nobody" })] };
  expect(outcome(await post(partly, undefined, "/batch"))).toEqual([404, "user_not_found"]);
  expect((await post({ touches: [] }, undefined, "/batch")).statusCode).toBe(422);
  expect(await queued()).toHaveLength(2);
});

test("touches tell the name of their person, and none where nobody gave one", async () => {
  await house.query("update users set given_name = 'Ada', family_name = 'Lovelace' where sub = 'ada'");
  await house.reachable("bob", { phones: ["+14155550177"] });
  const sent = [order(), order({ user_sub: "bob" })];
  const [hers, his] = (await post({ touches: sent }, undefined, "/batch")).json().touches;
  await house.run(send);
  for (const text of await house.texts()) await house.end(text, "arrived");
  await house.work();
  await house.run(log);
  const named = { user_sub: "ada", given_name: "Ada", family_name: "Lovelace" };
  const nameless = { user_sub: "bob", given_name: null, family_name: null };
  const { items } = (await house.call("GET", "/api/1/admin/touches")).json();
  expect(items.map(({ uid }: { uid: string }) => uid).sort()).toEqual([hers.uid, his.uid].sort());
  expect(items).toEqual(expect.arrayContaining([expect.objectContaining(named), expect.objectContaining(nameless)]));
  for (const [{ uid }, subject] of [
    [hers, named],
    [his, nameless],
  ] as const)
    expect((await house.call("GET", `/api/1/admin/touches/${uid}`)).json()).toMatchObject({ subject });
});

test("the timeline of a touch tells every step from the queue to the click, wherever the click is", async () => {
  const { uid, codes } = (await post(order())).json().touches[0];
  const timeline = async () => (await house.call("GET", `/api/1/admin/touches/${uid}`)).json();
  const steps = async () => (await timeline()).moments.map(({ step }: { step: string }) => step);
  expect(await timeline()).toMatchObject({ uid, state: "queued", pending: false });
  await house.base.clock.advance(1);
  await house.run(send);
  expect(await timeline()).toMatchObject({ state: "dispatched", pending: true });
  await house.base.clock.advance(1);
  await deskOf(house.ctx).take(newUse(house.ctx, "on_click", codes[0]));
  // Before the trail is written the callbacks name the link.
  expect(await steps()).toContain("clicked");
  const [text] = await house.texts();
  await house.base.clock.advance(1);
  await house.end(text!, "arrived");
  await house.work();
  await house.run(log);
  expect(await timeline()).toMatchObject({
    state: "delivered",
    pending: false,
    subject: { user_sub: "ada", channel: "sms" },
    arrivals: [{ destination: text!.phone_number, message: { body: text!.body } }],
    codes,
  });
  const latest = (await house.call("GET", "/api/1/admin/touches?limit=1")).json();
  expect(latest.items).toMatchObject([{ uid, user_sub: "ada", channel: "sms", destination: text!.phone_number }]);
  expect((await house.call("GET", `/api/1/admin/touches?before=${latest.next}`)).json().items).toEqual([]);
  expect(await steps()).toEqual(expect.arrayContaining(["queued", "dispatched", "clicked", "delivered"]));
  await house.base.clock.advance(1_800);
  await house.run(persistLink);
  expect((await steps()).filter((step: string) => step === "clicked")).toHaveLength(1);
  const moments = (await timeline()).moments.map(({ at }: { at: number }) => at);
  expect(moments).toEqual([...moments].sort((one, other) => one - other));
  const unknown = await house.call("GET", "/api/1/admin/touches/crl_tch_unknown");
  expect(outcome(unknown)).toEqual([404, "touch_not_found"]);
  expect((await house.call("GET", "/api/1/admin/touches/nonsense")).statusCode).toBe(422);
  expect((await house.call("GET", `/api/1/admin/touches/${uid}`, { token: ada })).statusCode).toBe(403);
});

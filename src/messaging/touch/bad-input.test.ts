import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { createLinks, linkCallbacks } from "../links/service.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { sendTouches } from "./enqueue.ts";
import { send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { touchSendStats } from "./stats.ts";
import { openTouch, type TouchHouse } from "./touch.fixture.ts";

let house: TouchHouse;
let callbacks: { successCallback: object; failureCallback: object };
beforeAll(async () => {
  house = await openTouch();
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear("user_touches", "suppressed_phone_numbers");
  await house.query("delete from touch_points where event_slug <> 'daily_reminder'");
  await house.point("greeting");
  await house.reachable("ada", { phones: ["+14155550101", "+14155550102"] });
  const [link] = await createLinks(house.ctx, [{ touchUid: "crl_tch_any", page: { identifier: "home" } }]);
  const { success, failure } = linkCallbacks([link!.code]);
  callbacks = { successCallback: success, failureCallback: failure };
});

const touchTo = (more: object = {}) => ({
  userSub: "ada",
  slug: "greeting",
  channel: "sms" as const,
  parameters: { name: "Ana" },
  ...more,
});

test("a touch that could never be sent is refused where somebody hears of it", async () => {
  const refused: readonly (readonly [object, string])[] = [
    [{ failureCallback: { name: "runners.nobody", kwargs: {} } }, "No job is named runners.nobody"],
    [{ failureCallback: { name: "runners.touch.abandon_links", kwargs: { codes: 7 } } }, "do not fit"],
    [{ channel: "fax" }, "channel"],
    [{ userSub: "" }, "user_sub"],
    [{ uid: "nonsense" }, "uid"],
    [{ parameters: { name: "x".repeat(70_000) } }, "bytes"],
  ];
  for (const [more, reason] of refused)
    await expect(sendTouches(house.ctx, [touchTo(more)]), reason).rejects.toThrow(reason);
  expect(await house.length(keys.toSend())).toBe(0);
});

test("a touch that cannot be read is set aside, and whoever waits for its end hears of it if that can be read", async () => {
  const { failureCallback } = callbacks;
  const raws = [
    { aud: "send", failure_callback: failureCallback },
    { aud: "send", failure_callback: { name: "runners.nobody", kwargs: {} } },
    { aud: "send", failure_callback: 7 },
  ].map((entry) => JSON.stringify(entry));
  await house.ctx.redis.commands.rpush(keys.toSend(), ...raws, "not json");
  await sendTouches(house.ctx, [touchTo()]);
  await house.ctx.redis.commands.del(jobKeys.hot());
  await house.run(send);
  expect((await house.waiting()).filter((name) => name.endsWith("_links"))).toEqual(["runners.touch.abandon_links"]);
  expect(await house.ctx.redis.commands.llen("quarantine:touch:to_send")).toBe(4);
  expect(await house.texts()).toHaveLength(2);
  expect((await house.counts(touchSendStats)).events).toEqual({ queued: 1, attempted: 1, reachable: 1 });
});

test("people are warned once a run of a slug that nobody declared, however many touches name it", async () => {
  const ctx = house.process();
  await sendTouches(
    ctx,
    ["no_such", "no_such", "other_one"].map((slug) => touchTo({ slug })),
  );
  await house.run(send, ctx);
  const told = ctx.alerts.recorded.filter(({ identifier }) => identifier === "touch:improper");
  expect(told).toHaveLength(2);
});

test("the report of a message that the touch does not know, or of a touch that nobody waits for, changes nothing", async () => {
  await sendTouches(house.ctx, [touchTo(callbacks)]);
  await house.run(send);
  const [text] = await house.texts();
  await house.ctx.redis.commands.del(jobKeys.hot());
  const [uid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "0");
  await house.end({ ...text!, uid: "crl_sms_stranger" }, "refused");
  await house.work();
  expect(await house.length(keys.remaining({ uid: uid! }))).toBe(2);
  const kwargs = { ...text!.failure_job.kwargs, touch_uid: "crl_tch_stranger" };
  await house.end({ ...text!, failure_job: { ...text!.failure_job, kwargs } }, "refused");
  await house.work();
  expect(await house.length(keys.remaining({ uid: uid! }))).toBe(2);
  await house.audit();
});

test("while SQL is down touches stay where they are, and each is sent once when it is back", async () => {
  await sendTouches(house.ctx, [touchTo(callbacks), touchTo(callbacks)]);
  const whole = new MortalSql(house.base.sql);
  await house.run(send, house.process({ sql: whole }));
  await house.texts();
  await house.ctx.redis.commands.del(keys.toLog());
  for (let dieAt = 1; dieAt <= whole.sent; dieAt++) {
    await sendTouches(house.ctx, [touchTo(), touchTo()]);
    const down = house.process({ sql: new MortalSql(house.base.sql, { dieAt, death: "before" }) });
    await expect(house.run(send, down)).rejects.toThrow();
    await house.base.clock.advance(121);
    await house.run(send);
    expect(await house.texts()).toHaveLength(4);
    expect(await house.length(keys.sendPurgatory())).toBe(0);
  }
  expect(whole.sent).toBeGreaterThanOrEqual(3);
  await house.audit();
});

test("at its limit the queue takes as many as there is room for, and a channel at its limit is one too few to wait", async () => {
  const ctx = house.process({ settings: [[settings.queueLimit, 10]] });
  const many = (count: number) =>
    sendTouches(
      ctx,
      Array.from({ length: count }, () => touchTo()),
    );
  await many(9);
  expect((await many(3)).map(({ outcome }) => outcome)).toEqual(["queued", "backpressure", "backpressure"]);
  // Twenty texts wait: at a limit of twenty the next touch is sent, below it is not.
  await house.run(send);
  await many(1);
  await house.run(send, house.process({ settings: [[settings.channelQueueLimit, 19]] }));
  expect(await house.length(keys.toSend())).toBe(1);
  await house.run(send, house.process({ settings: [[settings.channelQueueLimit, 20]] }));
  expect(await house.length(keys.toSend())).toBe(0);
  expect((await house.counts(touchSendStats)).events).toEqual({ queued: 11, attempted: 11, reachable: 11 });
});

test("messages that channels are still taking count against their limit, once", async () => {
  await house.reachable("bob", { phones: ["+14155550103"] });
  const run = async (limit: number) => {
    const small = [
      [settings.channelQueueLimit, limit],
      [settings.batch, 2],
      [settings.segment, 2],
    ] as const;
    await house.run(send, house.process({ settings: small }));
    return (await house.call("GET", "/api/1/admin/touch/last_send_job")).json();
  };
  await sendTouches(
    house.ctx,
    Array.from({ length: 6 }, () => touchTo({ userSub: "bob" })),
  );
  // The second pair is on its way while the third is thought about: four are more than three.
  expect(await run(3)).toMatchObject({ attempted: 4, stop_reason: "backpressure" });
  expect([await house.length(smsKeys.toSend()), await house.length(keys.toSend())]).toEqual([4, 2]);
  // Four that have arrived are not five, although they were on their way a moment ago.
  await sendTouches(house.ctx, [touchTo({ userSub: "bob" }), touchTo({ userSub: "bob" })]);
  expect(await run(5)).toMatchObject({ attempted: 2, stop_reason: "backpressure" });
  const texts = await house.texts();
  expect(texts).toHaveLength(6);
  expect(await run(5)).toMatchObject({ attempted: 2 });
  const all = [...texts, ...(await house.texts())];
  expect([all.length, new Set(all.map(({ uid }) => uid)).size]).toEqual([8, 8]);
});

test("touches wait while more rows about them wait to be written than may", async () => {
  await sendTouches(house.ctx, [touchTo()]);
  await house.ctx.redis.commands.rpush(keys.toLog(), "1", "2");
  await house.run(send, house.process({ settings: [[settings.logLimit, 2]] }));
  expect(await house.length(keys.toSend())).toBe(1);
  await house.run(send, house.process({ settings: [[settings.logLimit, 3]] }));
  expect(await house.length(keys.toSend())).toBe(0);
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { keys as emailKeys } from "../email/keys.ts";
import { createLinks, recordTouches } from "../links/service.ts";
import { linkStats } from "../links/stats.ts";
import type { LinkTables } from "../links/tables.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { smsSendStats } from "../sms/stats.ts";
import { acceptHandover, sendTouches, touchEntryOf } from "./enqueue.ts";
import { log, send, staleDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { touchSendStats, touchStaleStats } from "./stats.ts";
import { openTouch, type TouchHouse } from "./touch.fixture.ts";

const [ONE, TWO, THREE] = ["+14155550101", "+14155550102", "+14155550103"] as const;
const persist = { name: "runners.touch.persist_links", kwargs: { codes: ["enxF"] } };
const abandon = { name: "runners.touch.abandon_links", kwargs: { codes: ["enxF"] } };
const callbacks = { successCallback: persist, failureCallback: abandon };

let house: TouchHouse;
beforeAll(async () => {
  house = await openTouch();
});
afterAll(() => house.close());
beforeEach(clear);

async function clear(): Promise<void> {
  await house.clear("suppressed_emails", "suppressed_phone_numbers");
  await house.query("delete from touch_points where event_slug <> 'daily_reminder'");
  await house.point("greeting");
  const [link] = await createLinks(house.ctx, [{ touchUid: "crl_tch_any", page: { identifier: "home" } }]);
  for (const { kwargs } of [persist, abandon]) kwargs.codes = [link!.code];
}

const touchTo = (sub: string, more: object = {}) => ({
  userSub: sub,
  slug: "greeting",
  channel: "sms" as const,
  parameters: { name: "Ana" },
  ...more,
});
const trail = async (sub: string) =>
  (await house.call("GET", `/api/1/admin/users/${sub}/touch_debug_log`))
    .json()
    .items.map(({ event }: { event: { type: string } }) => event.type);
const isPending = async () =>
  (await house.ctx.redis.commands.keys("touch:pending*")).map((name) => name.replace(/crl_tch_[^:]+/, "{uid}")).sort();

test("a touch with two phones ends well with its first arrival, once, whatever is reported before and after", async () => {
  await house.reachable("ada", { phones: [ONE, TWO, THREE] });
  await sendTouches(house.ctx, [touchTo("ada", callbacks)]);
  await house.run(send);
  expect(await isPending()).toEqual(["touch:pending", "touch:pending:{uid}", "touch:pending:{uid}:remaining"]);
  const texts = await house.texts();
  expect(texts.map(({ body, phone_number }) => [body, phone_number])).toEqual([
    ["greeting Ana", ONE],
    ["greeting Ana", TWO],
    ["greeting Ana", THREE],
  ]);
  expect((await house.counts(touchSendStats)).words).toEqual({
    attempted: { "greeting:sms": 1 },
    reachable: { "greeting:sms:3": 1 },
  });
  await house.audit();
  const handled = async (at: number, how: "arrived" | "refused") => {
    await house.ctx.redis.commands.del("jobs:hot", "rjobs:queued");
    await house.end(texts[at]!, how);
    return (await house.work()).filter((name) => name.includes("_links"));
  };
  expect(await handled(0, "refused")).toEqual([]);
  expect(await handled(1, "arrived")).toEqual(["runners.touch.persist_links"]);
  expect(await isPending()).toEqual([]);
  expect(await handled(1, "arrived")).toEqual([]);
  expect(await handled(2, "refused")).toEqual([]);
  await house.run(log);
  expect((await trail("ada")).sort()).toEqual([
    "send_attempt",
    "send_reachable",
    "send_success",
    "send_unretryable",
    "send_unretryable",
  ]);
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/touches")).json();
  expect(items).toMatchObject([{ channel: "sms", event_slug: "greeting", destination: TWO }]);
  await house.audit();
});

test("a touch whose three messages fail in any order fails once, with the last", async () => {
  await house.reachable("ada", { phones: [ONE, TWO, THREE] });
  await sendTouches(house.ctx, [touchTo("ada", callbacks)]);
  await house.run(send);
  const [one, two, three] = await house.texts();
  await house.ctx.redis.commands.del("jobs:hot");
  for (const text of [three!, one!, three!, two!, two!]) await house.end(text, "refused");
  expect((await house.work()).filter((name) => name.includes("_links"))).toEqual(["runners.touch.abandon_links"]);
  expect(await isPending()).toEqual([]);
});

test("a failure that is tried again ends nothing", async () => {
  await house.reachable("ada", { phones: [ONE] });
  await sendTouches(house.ctx, [touchTo("ada", callbacks)]);
  await house.run(send);
  const [text] = await house.texts();
  await house.end(text!, "failed");
  await house.work();
  expect(await house.length(keys.pending())).toBe(1);
  expect(await house.length(smsKeys.retrying())).toBe(1);
  await house.run(log);
  expect(await trail("ada")).toContain("send_retry");
  await house.audit();
});

test("a touch without callbacks is not waited for, and its arrival is written all the same", async () => {
  await house.reachable("ada", { phones: [ONE] });
  await sendTouches(house.ctx, [touchTo("ada")]);
  await house.run(send);
  expect(await isPending()).toEqual([]);
  const [text] = await house.texts();
  await house.end(text!, "arrived");
  await house.work();
  await house.run(log);
  expect((await house.call("GET", "/api/1/admin/users/ada/touches")).json().items).toHaveLength(1);
});

test("whoever cannot be reached fails at once: suppressed in other letters, unknown, deleted, or with a broken event", async () => {
  await house.reachable("ada", { emails: ["Ada@Example.com"] });
  await house.query(
    "insert into suppressed_emails (uid, email_address, reason, scope, created_at) values ('crl_se_1', 'ada@example.COM', 'Bounce', 'all', now())",
  );
  await house.reachable("bob", { phones: [ONE] });
  const reminder = { slug: "daily_reminder", channel: "email" as const };
  await sendTouches(house.ctx, [
    touchTo("ada", {
      ...reminder,
      parameters: { name: "A", time_of_day: "morning", url: "https://a.b", unsubscribe_url: "https://a.b" },
      failureCallback: abandon,
    }),
    touchTo("nobody", { failureCallback: abandon }),
    touchTo("bob", { slug: "no_such_event", failureCallback: abandon }),
    touchTo("bob", { parameters: { name: 7 }, failureCallback: abandon }),
    touchTo("bob", { parameters: {}, failureCallback: abandon }),
    touchTo("bob", { channel: "push", failureCallback: abandon }),
  ]);
  await house.run(send);
  expect((await house.waiting()).filter((name) => name.endsWith("abandon_links"))).toHaveLength(6);
  expect((await house.counts(touchSendStats)).events).toEqual({ queued: 6, attempted: 6, unreachable: 6 });
  expect((await house.counts(touchSendStats)).words.unreachable).toMatchObject({ "daily_reminder:email": 1 });
  await house.run(log);
  expect((await trail("ada")).sort()).toEqual(["send_attempt", "send_unreachable"]);
  expect((await trail("bob")).filter((type: string) => type === "send_event_improper")).toHaveLength(4);
  expect(await house.length(emailKeys.toSend())).toBe(0);
  await house.audit();
});

test("a touch that waited for eight hours and a second means nothing any more, one that waited a little less is sent", async () => {
  await house.reachable("ada", { phones: [ONE] });
  await sendTouches(house.ctx, [touchTo("ada", callbacks)]);
  await house.base.clock.advance(2);
  await sendTouches(house.ctx, [touchTo("ada", callbacks)]);
  await house.base.clock.advance(28_799);
  await house.run(send);
  expect((await house.counts(touchSendStats)).events).toMatchObject({ attempted: 2, stale: 1, reachable: 1 });
  expect(await house.texts()).toHaveLength(1);
  expect((await house.waiting()).filter((name) => name.endsWith("abandon_links"))).toHaveLength(1);
});

test("producers are refused beyond the limit, each touch for itself, and a handed over group never", async () => {
  const ctx = house.process({ settings: [[settings.queueLimit, 3]] });
  const outcomes = await sendTouches(
    ctx,
    Array.from({ length: 5 }, () => touchTo("ada")),
  );
  expect(outcomes.map(({ outcome }) => outcome)).toEqual([
    "queued",
    "queued",
    "queued",
    "backpressure",
    "backpressure",
  ]);
  const group = { uid: "crl_rho_1", entries: [touchEntryOf(ctx, touchTo("ada"))] };
  expect([await acceptHandover(ctx, group), await acceptHandover(ctx, group)]).toEqual(["accepted", "duplicate"]);
  expect((await house.counts(touchSendStats)).events.queued).toBe(4);
  expect(await house.length(keys.toSend())).toBe(4);
});

test("touches wait where producers see them while a channel has too much to do", async () => {
  await house.reachable("ada", { phones: [ONE] });
  const ctx = house.process({ settings: [[settings.channelQueueLimit, 1]] });
  await sendTouches(ctx, [touchTo("ada"), touchTo("ada")]);
  await house.run(send, ctx);
  await sendTouches(ctx, [touchTo("ada")]);
  await house.run(send, ctx);
  expect([await house.length(keys.toSend()), await house.length(smsKeys.toSend())]).toEqual([1, 2]);
  expect((await house.call("GET", "/api/1/admin/touch/last_send_job")).json()).toMatchObject({
    stop_reason: "backpressure",
    attempted: 0,
  });
});

test("what nobody can read is set aside, and its neighbours are sent", async () => {
  await house.reachable("ada", { phones: [ONE] });
  await sendTouches(house.ctx, [touchTo("ada")]);
  await house.ctx.redis.commands.rpush(keys.toSend(), "not json", '{"aud":"send"}');
  await sendTouches(house.ctx, [touchTo("ada")]);
  await house.run(send);
  expect(await house.texts()).toHaveLength(2);
  expect(await house.ctx.redis.commands.llen("quarantine:touch:to_send")).toBe(2);
  await house.ctx.redis.commands.rpush(keys.toLog(), '{"table":"users","action":"insert","fields":{},"queued_at":1}');
  await house.run(log);
  expect(await house.ctx.redis.commands.llen("quarantine:touch:to_log")).toBe(1);
});

test("a touch whose end nobody tells fails after its time, once, and people are told", async () => {
  await house.reachable("ada", { phones: [ONE] });
  await sendTouches(house.ctx, [touchTo("ada", callbacks), touchTo("ada", { successCallback: persist })]);
  await house.run(send);
  await house.ctx.redis.commands.del("jobs:hot");
  await house.base.clock.advance(136_799);
  await house.run(staleDetection);
  expect(await house.length(keys.pending())).toBe(2);
  await house.base.clock.advance(2);
  await house.run(staleDetection);
  await house.run(staleDetection);
  expect(await isPending()).toEqual([]);
  expect((await house.waiting()).filter((name) => name.includes("_links"))).toEqual(["runners.touch.abandon_links"]);
  expect((await house.counts(touchStaleStats)).events).toEqual({ stale: 2 });
  expect(house.ctx.alerts.recorded.some(({ identifier }) => identifier === "touch:stale")).toBe(true);
});

test("a touch whose end nobody told ends well where its arrival is in SQL, if the installation asks for evidence", async () => {
  await house.reachable("ada", { phones: [ONE] });
  const sent = await sendTouches(house.ctx, [touchTo("ada", callbacks), touchTo("ada", callbacks)]);
  await house.run(send);
  await house.ctx.redis.commands.del("jobs:hot");
  await recordTouches(house.ctx.sql.tables<LinkTables>(), [
    {
      row_uid: "crl_tch_r_evidence",
      uid: sent[0]!.uid,
      user_sub: "ada",
      channel: "sms",
      touch_point_id: null,
      destination: ONE,
      message: {},
      created_at: 1,
    },
  ]);
  await house.base.clock.advance(136_801);
  await house.run(staleDetection, house.process({ settings: [[settings.evidence, true]] }));
  expect(await isPending()).toEqual([]);
  expect([...(await house.waiting())].sort()).toEqual(["runners.touch.abandon_links", "runners.touch.persist_links"]);
  expect((await house.counts(touchStaleStats)).events).toEqual({ stale: 1 });
});

test("nobody gets more touches on a channel and day than the installation allows, and the rest fail with their reason", async () => {
  await house.reachable("ada", { phones: [ONE], emails: ["ada@example.com"] });
  await house.reachable("bob", { phones: [TWO] });
  const capped = house.process({
    settings: [
      [settings.dailyCap, 2],
      [settings.batch, 2],
    ],
  });
  const run = async (...touches: ReturnType<typeof touchTo>[]) => {
    await sendTouches(house.ctx, touches);
    await house.run(send, capped);
    return (await house.texts()).map(({ phone_number }) => phone_number);
  };
  const failing = touchTo("ada", { failureCallback: abandon });
  expect(await run(touchTo("ada"), touchTo("ada"), failing, touchTo("bob"))).toEqual([ONE, ONE, TWO]);
  expect((await house.waiting()).filter((name) => name.endsWith("abandon_links"))).toHaveLength(1);
  expect((await house.counts(touchSendStats)).events).toMatchObject({ attempted: 4, reachable: 3, unreachable: 1 });
  await house.run(log);
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/touch_debug_log")).json();
  const reasons = items.flatMap(({ event }: { event: { reason?: string } }) => event.reason ?? []);
  expect(reasons).toEqual(["the person got 2 by sms today, and no more are sent"]);
  expect(await run(touchTo("ada"), touchTo("bob"))).toEqual([TWO]);
  await house.base.clock.advance(86_400);
  expect(await run(touchTo("ada"))).toEqual([ONE]);
  // Without a limit nobody is counted.
  await house.ctx.redis.commands.flushall();
  await sendTouches(house.ctx, [touchTo("ada")]);
  await house.run(send);
  expect(await house.ctx.redis.commands.keys("touch:sent_on:*")).toEqual([]);
});

test("states are written once each, and a second writer of one version is counted as refused", async () => {
  await house.reachable("ada", { phones: [ONE] });
  const state = (version: number, value: string) =>
    JSON.stringify({
      table: "user_touch_point_states",
      action: version === 0 ? "insert" : "update",
      ...(version === 0 ? {} : { expected_version: version }),
      fields: { touch_point_uid: "crl_tpo_daily_reminder", user_sub: "ada", channel: "sms", state: [value] },
      queued_at: 1,
    });
  const write = async (...rows: string[]) => {
    await house.ctx.redis.commands.rpush(keys.toLog(), ...rows);
    await house.run(log);
    return (await house.call("GET", "/api/1/admin/touch/last_log_job")).json();
  };
  expect(await write(state(0, "a"), state(0, "b"))).toMatchObject({ accepted_inserts: 1, failed_inserts: 1 });
  expect(await write(state(1, "b"), state(1, "c"))).toMatchObject({ accepted_updates: 1, failed_updates: 1 });
  // The same again, as after a death before the purgatory was emptied.
  expect(await write(state(1, "b"))).toMatchObject({ accepted_updates: 1, failed_updates: 0 });
  expect(await write(state(1, "z"))).toMatchObject({ accepted_updates: 0, failed_updates: 1 });
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/touch_point_states")).json();
  expect(items).toMatchObject([{ state: ["b"], version: 2, event_slug: "daily_reminder" }]);
});

test("two touches to one person in one batch are chosen one after the other and written as one state", async () => {
  const messages = ["a", "b", "c"].map((name, at) => ({
    priority: at,
    uid: `crl_tpsms_${name}`,
    body_format: name,
    body_parameters: [],
  }));
  await house.point("series", { messages: { sms: messages } });
  await house.reachable("ada", { phones: [ONE] });
  await sendTouches(house.ctx, [touchTo("ada", { slug: "series" }), touchTo("ada", { slug: "series" })]);
  await house.run(send);
  await house.run(log);
  await sendTouches(house.ctx, [touchTo("ada", { slug: "series" }), touchTo("ada", { slug: "series" })]);
  await house.run(send);
  await house.run(log);
  expect((await house.texts()).map(({ body }) => body)).toEqual(["a", "b", "c", "a"]);
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/touch_point_states")).json();
  expect(items).toMatchObject([{ version: 2 }]);
});

test("sending survives a death at every command: every touch has its message once, and its callback once", async () => {
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await clear();
      await house.reachable("ada", { phones: [ONE] });
      await sendTouches(house.ctx, [
        ...Array.from({ length: 5 }, () => touchTo("ada", callbacks)),
        touchTo("nobody", { failureCallback: abandon }),
      ]);
    },
    life: (redis) => house.run(send, house.process({ redis, settings: [[settings.segment, 2]] })),
    afterlife: async () => {
      await house.base.clock.advance(121);
      await house.run(send);
      const texts = await house.texts();
      expect(new Set(texts.map(({ uid }) => uid)).size).toBe(5);
      expect(texts).toHaveLength(5);
      expect(await house.length(keys.pending())).toBe(5);
      expect((await house.waiting()).filter((name) => name.endsWith("abandon_links"))).toHaveLength(1);
      expect((await house.counts(touchSendStats)).events).toEqual({
        queued: 6,
        attempted: 6,
        reachable: 5,
        unreachable: 1,
      });
      expect((await house.counts(smsSendStats)).events).toEqual({ queued: 5 });
      for (const key of [keys.handoverSms(), keys.sendPurgatory(), keys.toSend()])
        expect(await house.length(key)).toBe(0);
      await house.audit();
    },
  });
  expect(deaths).toBeGreaterThan(20);
}, 120_000);

test("writing rows survives a death at every command and every statement: each row is there once", async () => {
  const prepare = async () => {
    await clear();
    await house.reachable("ada", { phones: [ONE] });
    await sendTouches(house.ctx, [touchTo("ada", callbacks), touchTo("ada", callbacks)]);
    await house.run(send);
    for (const text of await house.texts()) {
      await house.end(text, "arrived");
      await house.ctx.redis.commands.hdel("rjobs:queued", "x");
    }
    const handlers = (await house.waiting()).filter((name) => name.endsWith("success_handler"));
    expect(handlers).toHaveLength(2);
    // Everything but the log job itself.
    await house.workWithout("runners.touch.log");
  };
  const afterlife = async () => {
    await house.base.clock.advance(121);
    await house.run(log);
    expect((await house.query("select uid from user_touches")).length).toBe(2);
    expect((await house.query("select uid from user_touch_debug_log")).length).toBe(6);
    expect(await house.query("select version from user_touch_point_states")).toEqual([{ version: 1 }]);
    expect([await house.length(keys.toLog()), await house.length(keys.logPurgatory())]).toEqual([0, 0]);
  };
  await dieAtEveryCommand(house.base.server, {
    prepare,
    life: (redis) => house.run(log, house.process({ redis })),
    afterlife,
  });
  await prepare();
  const whole = new MortalSql(house.base.sql);
  await house.run(log, house.process({ sql: whole }));
  for (let dieAt = 1; dieAt <= whole.sent; dieAt++)
    for (const death of ["before", "after"] as const) {
      await prepare();
      await house.run(log, house.process({ sql: new MortalSql(house.base.sql, { dieAt, death }) })).catch(() => {});
      await afterlife();
    }
}, 240_000);

test("callbacks of messages that die at any command and come again end each touch once", async () => {
  let job = "";
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await clear();
      await house.reachable("ada", { phones: [ONE] });
      await sendTouches(house.ctx, [touchTo("ada", callbacks)]);
      await house.run(send);
      const [text] = await house.texts();
      await house.ctx.redis.commands.del("jobs:hot", "rjobs:queued");
      await house.end(text!, "arrived");
      job = (await house.ctx.redis.commands.lindex("jobs:hot", 0))!;
    },
    life: async (redis) => void (await house.work(house.process({ redis }))),
    afterlife: async () => {
      await house.base.clock.advance(121);
      await house.ctx.redis.commands.rpush("jobs:hot", job);
      const done = await house.work();
      const persisted = (await house.counts(linkStats)).events.persist_queue_attempts;
      // Queued once and perhaps run twice, since a death may come between running it and saying so.
      expect(done.filter((name) => name === "runners.touch.persist_links").length).toBeLessThanOrEqual(1);
      expect(persisted).toBeGreaterThanOrEqual(1);
      expect(await isPending()).toEqual([]);
      await house.audit();
    },
  });
}, 120_000);

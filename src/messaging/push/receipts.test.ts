import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { jobKeys } from "../../jobs/index.ts";
import { dataRawErrors, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { keys } from "./keys.ts";
import { enqueuePushes } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, token } from "./push.fixture.ts";
import { settings } from "./settings.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";
import { readFailure, readSuccess } from "./story.ts";

let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const raw = (key: string) => house.redis.topology.key(key as never);
const noted = {
  failureJob: { name: "runners.test.failure", kwargs: { who: "me" } },
  successJob: { name: "runners.test.success", kwargs: { who: "me" } },
};

/** Queues notifications to these devices, and has the provider take them. */
async function send(...names: string[]) {
  const queued = await enqueuePushes(
    house.main.ctx,
    names.map((name) => newPush(name, noted)),
  );
  await house.run("send");
  await house.takeCallbacks();
  return queued.ok ? queued.uids : [];
}

const moved = async () => Number(await house.redis.commands.hget(raw(keys.coldToHotReport()), "last_num_moved"));

test("what became hot is asked about at once, and where nothing did nobody is", async () => {
  await send("ada");
  const waiting = async () =>
    (await house.redis.commands.lrange(raw(jobKeys.hot()), 0, -1)).map((entry) => JSON.parse(entry).name as string);
  await house.run("ticket_hot_to_cold");
  await house.server.settled();
  expect(await waiting()).toEqual([]);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.server.settled();
  expect(await waiting()).toEqual(["runners.push.check"]);
});

test("a ticket rests for 900 s, is checked after that, and its success job hears the whole story", async () => {
  const started = house.clock.now();
  const [uid] = await send("ada");
  await house.clock.advance(899);
  await house.run("ticket_hot_to_cold");
  expect(await moved()).toBe(0);
  await house.clock.advance(1);
  await house.run("ticket_hot_to_cold");
  expect(await moved()).toBe(1);
  await house.run("check");
  const [callback, ...others] = await house.takeCallbacks();
  expect(others).toEqual([]);
  expect(callback).toMatchObject({ name: "runners.test.success", kwargs: { who: "me" } });
  expect(readSuccess(callback!.kwargs.data_raw)).toMatchObject({
    attempt: { aud: "success", uid, push_token: token("ada"), contents: { title: "Good morning" } },
    result: {
      ticket_created_at: started,
      ticket: { status: "ok", message: null, details: null },
      receipt_checked_at: house.clock.now(),
      receipt: { status: "ok" },
    },
  });
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 1, succeeded: 1 });
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 1 });
  expect(await house.redis.commands.hgetall(raw(keys.checkReport()))).toMatchObject({
    last_num_checked: "1",
    last_num_succeeded: "1",
    last_stop_reason: "list_exhausted",
  });
});

test("a receipt that never comes is asked for four times, 900 s apart, and its ticket keeps its place", async () => {
  const delivered = newPush("sandbox-slow-a");
  await enqueuePushes(house.main.ctx, [delivered]);
  await house.run("send");
  const [, score] = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1", "WITHSCORES");
  for (let check = 0; check < 4; check++) {
    await house.clock.advance(899);
    await house.run("ticket_hot_to_cold");
    expect(await moved()).toBe(0);
    await house.clock.advance(1);
    await house.run("ticket_hot_to_cold");
    expect(await moved()).toBe(1);
    await house.run("check");
    const stories = (await house.takeCallbacks()).map(({ kwargs }) => kwargs);
    expect(stories.map(({ data_raw }) => readFailure(data_raw).failure_info)).toMatchObject([
      { action: "check", identifier: "NotReadyYet", retryable: true },
    ]);
    await house.runCallbacks(stories.map((kwargs) => ({ name: "runners.push.default_failure", kwargs })));
    const held = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1", "WITHSCORES");
    if (check === 3) expect(held).toEqual([]);
    else {
      expect(held[1]).toBe(score);
      expect(JSON.parse(held[0]!)).toMatchObject({ retry: check + 1, last_queued_at: house.clock.now() });
    }
    expect(await house.violations()).toEqual([]);
  }
  expect(await house.counts(pushReceiptStats)).toEqual({ failed_due_to_not_ready_yet: 4, retried: 3, abandoned: 1 });
});

test("every error of a receipt is counted under its own name and told with what the provider said", async () => {
  const names = [
    "DeviceNotRegistered",
    "MessageTooBig",
    "MessageRateExceeded",
    "MismatchSenderId",
    "InvalidCredentials",
  ];
  await send(...names.map((name) => `sandbox-receipt-${name}-a`), "sandbox-receipt-Unheard-a");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  const told = (await house.takeCallbacks()).map(({ kwargs }) => readFailure(kwargs.data_raw).failure_info);
  expect(told.map(({ identifier }) => identifier).sort()).toEqual([...names, "InternalError"].sort());
  for (const each of told) expect(each).toMatchObject({ retryable: false, ticket: null, receipt: { status: "error" } });
  expect(await house.counts(pushReceiptStats)).toEqual({
    failed_due_to_device_not_registered: 1,
    failed_due_to_message_too_big: 1,
    failed_due_to_message_rate_exceeded: 1,
    failed_due_to_mismatched_sender_id: 1,
    failed_due_to_invalid_credentials: 1,
    failed_due_to_internal_error: 1,
  });
});

test("while the provider is down no receipt is lost, and what it says later counts", async () => {
  await send("ada", "bob");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  await house.run("check");
  const failed = await house.takeCallbacks();
  expect(failed).toHaveLength(2);
  await house.runCallbacks(failed.map(({ kwargs }) => ({ name: "runners.push.default_failure", kwargs })));
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  expect(await house.takeCallbacks()).toHaveLength(2);
  expect(await house.counts(pushReceiptStats)).toEqual({ failed_due_to_server_error: 2, retried: 2, succeeded: 2 });
});

test("everything about a notification counts on the day it was queued, also after midnight", async () => {
  await house.clock.advance(43_190);
  await send("ada");
  await house.clock.advance(1220);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  expect(await house.counts(pushReceiptStats)).toEqual({});
  expect(await house.counts(pushReceiptStats, 1)).toEqual({ succeeded: 1 });
  expect(await house.counts(pushTicketStats, 1)).toEqual({ queued: 1, succeeded: 1 });
});

test("the walk through the cold set moves exactly what has rested, whatever scores and rests there are", async () => {
  const now = house.clock.now();
  const ticket = (index: number, score: number, rested: boolean) => ({
    score,
    member: JSON.stringify({
      // As we write them, and as others may.
      ...(index % 3 === 0 ? {} : { aud: "check" }),
      uid: `t${index}`,
      ...(index % 3 === 1 ? {} : { attempt_initially_queued_at: score }),
      initially_queued_at: score,
      retry: index % 2,
      last_queued_at: rested ? score : now,
      push_ticket: {},
    }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 901, max: 905 }), fc.boolean()), { maxLength: 30 }),
      async (tickets) => {
        await house.redis.commands.del(raw(keys.cold()), raw(keys.hot()));
        // Many more than one stretch looks at: first those that have rested, then most of them resting anew with an old score.
        const first = Array.from({ length: 600 }, (_, index) => ticket(5000 + index, now - 910, true));
        const later = Array.from({ length: 1100 }, (_, index) => ticket(1000 + index, now - 904, index % 100 === 0));
        const crowd = [...first, ...later];
        const all = [...tickets.map(([age, rested], index) => ticket(index, now - age, rested)), ...crowd];
        await house.redis.commands.zadd(raw(keys.cold()), ...all.flatMap(({ score, member }) => [score, member]));
        await house.run("ticket_hot_to_cold");
        const hot = await house.redis.commands.lrange(raw(keys.hot()), 0, -1);
        const rested = all.filter(({ member }) => JSON.parse(member).last_queued_at < now).map(({ member }) => member);
        expect(hot.sort()).toEqual(rested.sort());
        expect(await house.length(keys.cold())).toBe(all.length - rested.length);
      },
    ),
    { numRuns: 12 },
  );
});

test("the rest of a ticket that others wrote is read from the ticket itself, not from what looks like one inside it", async () => {
  const now = house.clock.now();
  const job = { name: "x", kwargs: { retry: 0, last_queued_at: now - 5_000 } };
  const tickets = [
    { success_job: job, aud: "check", uid: "t", retry: 0, last_queued_at: now },
    { aud: "check", uid: "t", success_job: job, retry: 0, last_queued_at: now },
    { aud: "check", uid: "t", retry: 1, last_queued_at: now, success_job: job },
  ];
  const members = tickets.flatMap((ticket) => [now - 5_000, JSON.stringify(ticket)]);
  await house.redis.commands.zadd(raw(keys.cold()), ...members);
  await house.run("ticket_hot_to_cold");
  expect([await house.length(keys.cold()), await house.length(keys.hot())]).toEqual([3, 0]);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  expect([await house.length(keys.cold()), await house.length(keys.hot())]).toEqual([0, 3]);
});

test("what is no ticket leaves the cold set with the others and is set aside by whoever reads it", async () => {
  await send("ada");
  await house.redis.commands.zadd(raw(keys.cold()), 5, "not json");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  expect(await house.takeCallbacks()).toHaveLength(1);
  const aside = await house.redis.commands.lrange(raw(quarantineOf(keys.hot())), 0, -1);
  expect(aside.map((entry) => JSON.parse(entry).raw)).toEqual(["not json"]);
});

test("a callback whose story is damaged fails alone", async () => {
  const good = await send("sandbox-slow-a");
  expect(good).toHaveLength(1);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  const [{ kwargs } = { kwargs: { data_raw: "" } }] = await house.takeCallbacks();
  const runner = house.main.ctx.jobs.runners.get("runners.push.default_failure")!;
  const outcomes = await runner.runMany!(house.main.ctx as never, [
    { data_raw: "!" },
    kwargs,
    { data_raw: encodeDataRaw({ attempt: 5 }) },
  ]);
  expect(outcomes!.map(({ ok }) => ok)).toEqual([false, true, false]);
  for (const outcome of [outcomes![0]!, outcomes![2]!])
    expect(!outcome.ok && dataRawErrors.bad_data_raw.matches(outcome.error)).toBe(true);
  expect(await house.length(keys.cold())).toBe(1);
});

test("a message that is too old is given up although it has tries left", async () => {
  const impatient = house.another({ config: [[settings.maxAge, 800]] as never });
  await send("sandbox-slow-a");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  const [{ kwargs } = { kwargs: { data_raw: "" } }] = await house.takeCallbacks();
  await house.runCallbacks([{ name: "runners.push.default_failure", kwargs }], impatient);
  expect(await house.counts(pushReceiptStats)).toEqual({ failed_due_to_not_ready_yet: 1, abandoned: 1 });
});

test("a check that dies at any command loses nothing and queues each callback once", async () => {
  const deaths = await dieAtEveryCommand(house.server, {
    async prepare() {
      await house.reset();
      await send("ada", "sandbox-slow-a", "sandbox-receipt-MessageTooBig-a");
      await house.clock.advance(900);
      await house.run("ticket_hot_to_cold");
      await house.redis.commands.del(raw(jobKeys.hot()));
    },
    life: (redis) => house.run("check", house.another({ redis })),
    async afterlife({ command }) {
      await house.clock.advance(130);
      await house.run("check");
      const names = (await house.takeCallbacks()).map(({ name }) => name);
      expect(names.sort(), command).toEqual(["runners.test.failure", "runners.test.failure", "runners.test.success"]);
      expect(await house.counts(pushReceiptStats)).toEqual({
        succeeded: 1,
        failed_due_to_not_ready_yet: 1,
        failed_due_to_message_too_big: 1,
      });
      expect(await house.length(keys.hot())).toBe(0);
      expect(await house.length(keys.ticketPurgatory())).toBe(0);
      expect(await house.violations()).toEqual([]);
    },
  });
  expect(deaths).toBeGreaterThan(8);
}, 60_000);

test("a walk from cold to hot that dies at any command leaves every ticket in one place and moves it at last", async () => {
  const deaths = await dieAtEveryCommand(house.server, {
    async prepare() {
      await house.reset();
      await send("ada", "bob", "eve");
      await house.clock.advance(900);
      await house.redis.commands.del(raw(jobKeys.hot()));
    },
    life: (redis) => house.run("ticket_hot_to_cold", house.another({ redis })),
    async afterlife() {
      expect(await house.violations()).toEqual([]);
      await house.clock.advance(130);
      await house.run("ticket_hot_to_cold");
      expect(await house.length(keys.hot())).toBe(3);
      expect(await house.length(keys.cold())).toBe(0);
    },
  });
  expect(deaths).toBeGreaterThan(6);
}, 60_000);

test("callbacks that die at any command and are delivered again decide every try once", async () => {
  let callbacks: Awaited<ReturnType<PushHouse["takeCallbacks"]>> = [];
  await dieAtEveryCommand(house.server, {
    async prepare() {
      await house.reset();
      await enqueuePushes(house.main.ctx, [newPush("sandbox-slow-a"), newPush("sandbox-slow-b")]);
      await house.run("send");
      await house.clock.advance(900);
      await house.run("ticket_hot_to_cold");
      await house.run("check");
      house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
      await enqueuePushes(house.main.ctx, [newPush("ada")]);
      await house.run("send");
      callbacks = await house.takeCallbacks();
      expect(callbacks).toHaveLength(3);
    },
    life: (redis) => house.runCallbacks(callbacks, house.another({ redis })),
    async afterlife() {
      await house.runCallbacks(callbacks);
      expect(await house.length(keys.cold())).toBe(2);
      expect(await house.length(keys.retrying())).toBe(1);
      expect(await house.counts(pushTicketStats)).toMatchObject({ queued: 3, retried: 1, succeeded: 2 });
      expect(await house.counts(pushReceiptStats)).toEqual({ failed_due_to_not_ready_yet: 2, retried: 2 });
      expect(await house.violations()).toEqual([]);
    },
  });
}, 60_000);

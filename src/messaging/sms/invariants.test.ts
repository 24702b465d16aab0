import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { calendarOf, rotate } from "../../mechanisms/dated-counters/index.ts";
import { invariants } from "./invariants.ts";
import { send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { smsEntries } from "./service.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsContext, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsSendStats } from "./stats.ts";

const PERSON = "+14155550132";
const job = (name: string) => ({ name, kwargs: {} });
const text = {
  phoneNumber: PERSON,
  body: "hi",
  failureJob: job("runners.sms.default_failure"),
  successJob: job("runners.sms.default_success"),
};

let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

async function broken(ctx: SmsContext = house.ctx): Promise<string[]> {
  const found = await Promise.all(
    invariants.map(async ({ name, check }) => ((await check(ctx)).length > 0 ? [name] : [])),
  );
  return found.flat();
}

async function pendingText(): Promise<string> {
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  await house.text(PERSON);
  await house.run(send);
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  return sid!;
}

test("the audit of texts finds nothing in a sound house", async () => {
  await pendingText();
  await house.text("+14155550133");
  expect(await broken()).toEqual([]);
});

test("the audit of texts finds halves of messages, ends that are still awaited, and hashes that contradict themselves", async () => {
  const { commands } = house.ctx.redis;
  const harms: ((sid: string) => Promise<unknown>)[] = [
    (sid) => commands.del(keys.pendingItem({ sid })),
    (sid) => commands.zrem(keys.pending(), sid),
    (sid) => commands.hset(keys.pendingItem({ sid }), "message_resource_status", "sent"),
    (sid) => commands.hset(keys.pendingItem({ sid }), "num_failures", "3"),
    (sid) => commands.hset(keys.pendingItem({ sid }), "message_resource_sid", "another"),
    (sid) => commands.hset(keys.pendingItem({ sid }), "failure_job", "not json"),
    (sid) => commands.hset(keys.pendingItem({ sid }), "message_resource_created_at", "5"),
    (sid) => commands.zadd(keys.pending(), house.base.clock.now() + 1_000, sid),
  ];
  for (const harm of harms) {
    await house.clear();
    await harm(await pendingText());
    expect(await broken()).toEqual(["sms:pending_is_whole"]);
  }
});

test("how late a message may be due follows from the setting", async () => {
  const sid = await pendingText();
  await house.ctx.redis.commands.zadd(keys.pending(), house.base.clock.now() + 1_000, sid);
  expect(await broken(house.process({ config: [[settings.silence as never, 3_600]] }))).toEqual([]);
});

test("the audit of texts finds one that is in two places, however long the queues are", async () => {
  const [entry] = smsEntries(house.ctx, [text]);
  const { commands } = house.ctx.redis;
  const others = Array.from({ length: 1_200 }, (_, at) => JSON.stringify({ ...entry, uid: `crl_sms_${at}` }));
  await commands.rpush(keys.toSend(), ...others, JSON.stringify(entry));
  await commands.zadd(keys.retrying(), 5, JSON.stringify({ ...entry, retry: 1 }));
  expect(await broken()).toEqual(["sms:text_in_one_place"]);
});

test("a text that moves while the audit looks is not taken for one in two places", async () => {
  const [entry] = smsEntries(house.ctx, [text]);
  const { commands } = house.ctx.redis;
  await commands.rpush(keys.toSend(), JSON.stringify(entry));
  const moving = new Proxy(commands, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== "lrange") return typeof value === "function" ? value.bind(target) : value;
      return async (...args: [string, number, number]) => {
        const read = await target.lrange(...args);
        if (args[0] === keys.toSend()) await target.lmove(keys.toSend(), keys.sendPurgatory(), "LEFT", "RIGHT");
        return read;
      };
    },
  });
  const ctx = Object.create(house.ctx, {
    redis: {
      value: Object.create(house.ctx.redis, {
        commands: { value: moving },
        topology: { value: house.ctx.redis.topology },
      }),
    },
  }) as SmsContext;
  const [check] = invariants.filter(({ name }) => name === "sms:text_in_one_place");
  expect(await check!.check(ctx)).toEqual([]);
  expect(await house.length(keys.sendPurgatory())).toBe(1);
});

test("the audit of texts finds purgatories beyond a batch, and counts that do not add up", async () => {
  const { commands } = house.ctx.redis;
  await commands.rpush(keys.recoveryPurgatory(), ...Array.from({ length: 501 }, (_, at) => String(at)));
  const today = calendarOf(house.ctx).unixDate(house.base.clock.now());
  await commands.set(smsEventStats.earliest(), today);
  await commands.hset(smsEventStats.day(today), { attempted: "2", received_via_webhook: "1" });
  expect(await broken()).toEqual(["sms:purgatories_are_batches", "sms:counts_add_up"]);
});

test("the audit of texts finds what a finished run left in a purgatory, or one that died long ago, and not what a run holds that works or just died", async () => {
  const { commands } = house.ctx.redis;
  await house.run(send);
  await commands.rpush(keys.sendPurgatory(), JSON.stringify(smsEntries(house.ctx, [text])[0]));
  expect(await broken()).toEqual(["sms:purgatories_are_held"]);
  await commands.set(keys.sendLock(), "held");
  expect(await broken()).toEqual([]);
  await commands.del(keys.sendLock());
  await commands.hset(keys.sendReport(), "started_at", house.base.clock.now() + 1);
  expect(await broken()).toEqual([]);
  await house.base.clock.advance(602);
  expect(await broken()).toEqual(["sms:purgatories_are_held"]);
  await house.run(send);
  expect(await broken()).toEqual([]);
});

test("a day whose sums of sending do not add up is stored as it is, and somebody hears of it", async () => {
  const calendar = calendarOf(house.ctx);
  const today = calendar.unixDate(house.base.clock.now());
  await house.text(PERSON);
  await house.run(send);
  await rotate(house.ctx, smsSendStats, { calendar, through: today });
  expect(house.ctx.alerts.identifiers()).not.toContain("stats:mismatch");
  await house.text(PERSON);
  await rotate(house.ctx, smsSendStats, { calendar, through: today });
  expect(house.ctx.alerts.identifiers()).toContain("stats:mismatch");
  expect(await house.query("select queued, succeeded_pending from sms_send_stats")).toEqual([
    { queued: 2, succeeded_pending: 1 },
  ]);
});

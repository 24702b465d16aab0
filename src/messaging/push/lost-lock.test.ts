import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { keys } from "./keys.ts";
import { openPushHouse, type PushHouse } from "./push.fixture.ts";
import { coldToHot } from "./scripts.ts";
import { settings } from "./settings.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";

/** A process that was stopped for minutes, or cut off, comes back to find that another one does its work. */
let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const raw = (key: string) => house.redis.topology.key(key as never);
const noted = {
  failureJob: { name: "runners.test.failure", kwargs: {} },
  successJob: { name: "runners.test.success", kwargs: {} },
};

/** Another process takes the lock over, and this one learns of it at its next renewal. */
async function loseLock(lock: string): Promise<void> {
  const other = JSON.stringify({ acquired_at: 1, hostname: "other", lock_id: "b".repeat(22) });
  await house.redis.commands.set(raw(lock), other, "PX", 120_000);
  await house.clock.advance(31);
  await house.redis.commands.ping();
}

test("a sender whose lock is lost sends nothing more, settles what was sent, and leaves the rest to the next", async () => {
  const uids = await house.queue(350, noted);
  const process = house.another({ config: [[settings.window, 100]] as never });
  const { push } = process.ctx.providers;
  const real = push.send.bind(push);
  let requests = 0;
  push.send = async (messages) => {
    requests += 1;
    const tickets = await real(messages);
    if (requests === 2) await loseLock(keys.sendLock());
    return tickets;
  };
  await house.run("send", process);
  expect(requests).toBe(2);
  expect(await house.length(keys.cold())).toBe(200);
  const left = await house.redis.commands.lrange(raw(keys.sendPurgatory()), 0, -1);
  expect(left.map((entry) => JSON.parse(entry).uid)).toEqual(uids.slice(200));
  expect(await house.redis.commands.hget(raw(keys.sendReport()), "last_finished_at")).toBeNull();
  expect(JSON.parse((await house.redis.commands.get(raw(keys.sendLock())))!).hostname).toBe("other");
  await house.redis.commands.del(raw(keys.sendLock()));
  await house.run("send");
  expect(house.sandbox.inbox.all()).toHaveLength(350);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 350, succeeded: 350 });
});

test("a checker whose lock is lost asks for no more receipts, and each callback is queued once all the same", async () => {
  await house.queue(900, noted);
  const quick = [[settings.maxPerSecond, 100_000]] as never;
  await house.run("send", house.another({ config: quick }));
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  const process = house.another();
  const { push } = process.ctx.providers;
  const real = push.receipts.bind(push);
  let requests = 0;
  push.receipts = async (ids, carrier) => {
    requests += 1;
    const found = await real(ids, carrier);
    await loseLock(keys.checkLock());
    return found;
  };
  await house.run("check", process);
  // Both were under way by then.
  expect(requests).toBe(2);
  const first = await house.takeCallbacks();
  expect(first).toHaveLength(600);
  await house.redis.commands.del(raw(keys.checkLock()));
  await house.run("check");
  expect(await house.takeCallbacks()).toHaveLength(300);
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 900 });
});

test("two processes that hold the same batch settle each notification once", async () => {
  await house.queue(100, noted);
  const process = house.another();
  const { push } = process.ctx.providers;
  const real = push.send.bind(push);
  push.send = async (messages) => {
    const tickets = await real(messages);
    // Meanwhile the next holder found the batch in the purgatory, sent it and settled it.
    await loseLock(keys.sendLock());
    await house.redis.commands.del(raw(keys.sendLock()));
    await house.run("send");
    return tickets;
  };
  await house.run("send", process);
  expect(house.sandbox.inbox.all()).toHaveLength(200);
  expect(await house.length(keys.cold())).toBe(100);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 100, succeeded: 100 });
  expect(await house.violations()).toEqual([]);
});

test("a head that others have settled meanwhile is not cut off once more, whoever holds the lock", async () => {
  const { commands } = house.redis;
  const uids = await house.queue(300, noted);
  const process = house.another({ config: [[settings.window, 100]] as never });
  const { push } = process.ctx.providers;
  const real = push.send.bind(push);
  let requests = 0;
  push.send = async (messages) => {
    const tickets = await real(messages);
    if (++requests === 1) await commands.lpop(raw(keys.sendPurgatory()), 100);
    return tickets;
  };
  await house.run("send", process);
  const tickets = await commands.zrange(raw(keys.cold()), 0, "-1");
  expect(tickets.map((ticket) => JSON.parse(ticket).uid).sort()).toEqual(uids.slice(100).sort());
  expect(await house.length(keys.sendPurgatory())).toBe(0);
});

test("a head is cut off by its number only under the lock, since others may have filled the purgatory again", async () => {
  const { commands } = house.redis;
  await house.queue(100, noted);
  const process = house.another();
  const { push } = process.ctx.providers;
  const real = push.send.bind(push);
  push.send = async (messages) => {
    const tickets = await real(messages);
    // The next holder settled all but the last, and claimed as many others: that one stands where it stood.
    await loseLock(keys.sendLock());
    const purgatory = raw(keys.sendPurgatory());
    const last = (await commands.lrange(purgatory, -1, -1))[0]!;
    await commands.del(purgatory);
    await commands.rpush(purgatory, ...Array.from({ length: 99 }, (_, at) => `other ${at}`), last);
    return tickets;
  };
  await house.run("send", process);
  expect(await house.length(keys.cold())).toBe(1);
  expect(await house.length(keys.sendPurgatory())).toBe(99);
});

test("a walk from cold to hot whose lock is lost moves nothing more", async () => {
  const now = house.clock.now();
  const members = Array.from({ length: 1200 }, (_, at) => [now - 2000 + at / 1000, JSON.stringify({ uid: `t${at}` })]);
  await house.redis.commands.zadd(raw(keys.cold()), ...members.flat());
  const process = house.another();
  const run = process.ctx.redis.run.bind(process.ctx.redis);
  let stretches = 0;
  Object.defineProperty(process.ctx.redis, "run", {
    value: async (script: never, ...rest: [never, never]) => {
      const answer = await run(script, ...rest);
      if (script === (coldToHot as unknown)) {
        stretches += 1;
        await loseLock(keys.coldToHotLock());
      }
      return answer;
    },
  });
  await house.run("ticket_hot_to_cold", process);
  expect(stretches).toBe(1);
  expect(await house.length(keys.hot())).toBe(500);
  expect(await house.length(keys.cold())).toBe(700);
  await house.redis.commands.del(raw(keys.coldToHotLock()));
  await house.run("ticket_hot_to_cold");
  expect(await house.length(keys.hot())).toBe(1200);
});

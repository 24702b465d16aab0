import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { lockErrors, OWNER_LEASE } from "../../mechanisms/lock/index.ts";
import { type EmailContext, type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { receiptReconciliation, send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { enqueueMails } from "./service.ts";
import { settings } from "./settings.ts";
import { emailSendStats } from "./stats.ts";

const PERSON = "ada@example.com";

let house: EmailHouse;
let taker: Taker;
let slow: EmailContext;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear();
  taker = new Taker();
  slow = house.process({
    provider: taker,
    config: [
      [settings.window, 1],
      [settings.maxPerSecond, 1_000],
    ],
  });
});

const campaign = async (size: number) => {
  const answer = await enqueueMails(
    house.ctx,
    Array.from({ length: size }, (_, at) => sample(`p${at}@example.com`)),
  );
  if (!answer.ok) throw new Error(answer.reason);
  return answer.uids;
};
const stopReason = () => house.ctx.redis.commands.hget(keys.sendReport(), "stop_reason");
const uidsIn = async (key: string) =>
  (await house.ctx.redis.commands.lrange(key, 0, -1)).map((raw) => JSON.parse(raw).uid as string);
/** A request that takes a while, during which the process has time for other things. */
const aRequest = async () => {
  await house.base.clock.advance(0.02);
  for (let turn = 0; turn < 3; turn++) await house.query("select 1");
};

test("a code that is queued in the middle of a campaign's batch is among the next mails, not after the batch", async () => {
  await campaign(45);
  let code = "";
  taker.meanwhile = async () => {
    if (taker.taken.length === 5) code = await house.code(PERSON);
    await aRequest();
  };
  await house.run(send, slow);
  expect(taker.taken).toHaveLength(46);
  expect(taker.taken.indexOf(code)).toBeLessThan(20);
  expect(await stopReason()).toBe("list_exhausted");
  await house.audit();
});

test("the purgatory never holds more than a batch, and three batches are sent in one run", async () => {
  await campaign(120);
  let [most, looks] = [0, 0];
  taker.meanwhile = async () => {
    if (++looks % 10 === 0) await house.code(PERSON);
    most = Math.max(most, await house.length(keys.sendPurgatory()));
  };
  await house.run(send, house.process({ provider: taker, config: [[settings.maxPerSecond, 1_000]] }));
  expect(most).toBeGreaterThan(40);
  expect(most).toBeLessThanOrEqual(50);
  const { attempted, accepted } = (await house.counts(emailSendStats)).events;
  expect([attempted, accepted]).toEqual([taker.taken.length, taker.taken.length]);
  expect(new Set(taker.taken).size).toBe(taker.taken.length);
  expect(await stopReason()).toBe("list_exhausted");
});

test("a stop returns campaign and codes to the heads of their own lanes, in order", async () => {
  const uids = await campaign(45);
  const codes: string[] = [];
  let stopped = false;
  taker.meanwhile = async () => {
    if (taker.taken.length === 3) for (const one of ["a", "b", "c"]) codes.push(await house.code(`${one}@example.com`));
    stopped ||= codes.some((uid) => taker.taken.includes(uid));
    await aRequest();
  };
  await house.run(send, slow, () => stopped);
  expect(await stopReason()).toBe("signal");
  const sent = new Set(taker.taken);
  expect(await uidsIn(keys.toSend())).toEqual(uids.filter((uid) => !sent.has(uid)));
  expect(await uidsIn(keys.urgent())).toEqual(codes.filter((uid) => !sent.has(uid)));
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  taker.meanwhile = () => {};
  await house.run(send, slow);
  expect(new Set(taker.taken)).toEqual(new Set([...uids, ...codes]));
  expect(taker.taken).toHaveLength(48);
});

test("what a dead run left of both lanes goes first, its codes before its campaign", async () => {
  const uids = await campaign(2);
  const code = await house.code(PERSON);
  for (const lane of [keys.toSend(), keys.urgent()])
    for (const raw of await house.ctx.redis.commands.lrange(lane, 0, -1)) {
      await house.ctx.redis.commands.rpush(keys.sendPurgatory(), raw);
      await house.ctx.redis.commands.lrem(lane, 1, raw);
    }
  const later = await house.code(PERSON);
  await house.run(send, slow);
  expect(taker.taken).toEqual([code, ...uids, later]);
  expect(slow.alerts.identifiers()).toContain("runners.emails.send:recovering");
});

test("a run whose lock was lost asks the provider for nothing more, and leaves its mails to the next holder", async () => {
  await campaign(30);
  const { commands } = house.ctx.redis;
  const thief = JSON.stringify({ hostname: "other", acquired_at: house.base.clock.now(), lock_id: "t".repeat(22) });
  taker.meanwhile = async () => {
    if (taker.taken.length !== 3) return;
    await commands.set(keys.sendLock(), thief, "EX", OWNER_LEASE);
    // The next renewal tells the run.
    await house.base.clock.advance(31);
    await aRequest();
  };
  await expect(house.run(send, slow)).rejects.toSatisfy(lockErrors.lock_lost.matches);
  expect(taker.taken).toHaveLength(4);
  expect(await commands.get(keys.sendLock())).toBe(thief);
  const held = await house.length(keys.sendPurgatory());
  expect(held + (await house.length(keys.toSend()))).toBe(26);
  await commands.del(keys.sendLock());
  taker.meanwhile = () => {};
  await house.run(send, slow);
  expect(taker.taken).toHaveLength(30);
  expect(new Set(taker.taken).size).toBe(30);
});

/** A process that loses a lock while it makes its first call of a script. */
function losing(lock: string, script: string): EmailContext {
  const around = house.process({ provider: taker });
  const run = around.redis.run.bind(around.redis) as (...args: unknown[]) => Promise<unknown>;
  let lost = false;
  let notice = () => {};
  const noticed = new Promise<void>((resolve) => {
    notice = resolve;
  });
  Object.defineProperty(around.redis, "run", {
    async value(called: { readonly name: string }, ...rest: unknown[]) {
      const answer = await run(called, ...rest);
      if (called.name === "lock.renew" && lost) notice();
      if (called.name !== script || lost) return answer;
      lost = true;
      const thief = { hostname: "other", acquired_at: house.base.clock.now(), lock_id: "t".repeat(22) };
      await house.ctx.redis.commands.set(lock, JSON.stringify(thief), "EX", OWNER_LEASE);
      await house.base.clock.advance(31);
      await noticed;
      return answer;
    },
  });
  return around;
}

test("a run that works news in or gives up on receipts ends with its lock, and the rest is the next holder's", async () => {
  const { commands } = house.ctx.redis;
  const received_at = house.base.clock.now() - 10;
  const news = Array.from({ length: 250 }, (_, at) =>
    JSON.stringify({ message_id: `m${at}`, notification: { type: "Delivery" }, received_at }),
  );
  await commands.rpush(keys.event(), ...news);
  await house.run(receiptReconciliation, losing(keys.reconciliationLock(), "email.reconcile")).catch(() => {});
  expect((await house.length(keys.event())) + (await house.length(keys.eventPurgatory()))).toBe(150);

  await house.mail(sample(PERSON));
  await house.run(send, slow);
  const [id] = await commands.zrange(keys.pending(), 0, "0");
  const hash = await commands.hgetall(`email:receipt_pending:${id}`);
  for (let copy = 1; copy < 150; copy++) {
    const message_id = `copy-${copy}`;
    await commands.hset(`email:receipt_pending:${message_id}`, { ...hash, message_id });
    await commands.zadd(keys.pending(), Number(hash.send_accepted_at), message_id);
  }
  await house.base.clock.advance(86_500);
  await house.run(staleReceiptDetection, losing(keys.staleLock(), "email.close_stale")).catch(() => {});
  expect(await house.length(keys.pending())).toBe(50);
});

test("a run that is out of time goes on at once when mails are left", async () => {
  await campaign(10);
  taker.meanwhile = async () => {
    if (taker.taken.length === 2) await house.base.clock.advance(51);
  };
  await house.ctx.redis.commands.del("jobs:hot", "rjobs:queued");
  await house.run(send, slow);
  expect(await stopReason()).toBe("time_exhausted");
  expect(await house.length(keys.toSend())).toBeGreaterThan(0);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  await house.base.clock.advance(1);
  const waiting = await house.ctx.redis.commands.lrange("jobs:hot", 0, -1);
  expect(waiting.map((raw) => JSON.parse(raw).name)).toContain(send.name);
});

test("a mail that gets the id of one that awaits its receipt closes the older one, and both end once", async () => {
  taker.idFor = () => "always-the-same";
  const [first, second] = [await house.mail(sample(PERSON)), await house.mail(sample("bob@example.com"))];
  await house.run(send, slow);
  expect(taker.taken).toEqual([first, second]);
  expect(await house.callbacks(slow)).toEqual(["runners.emails.default_failure"]);
  expect(await house.ctx.redis.commands.hget("email:receipt_pending:always-the-same", "uid")).toBe(second);
  expect(slow.alerts.identifiers()).toContain("emails:message_id_twice");
  await house.audit();
});

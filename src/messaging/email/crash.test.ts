import { afterAll, beforeAll, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import type { RedisConnection } from "../../kernel/redis/index.ts";
import { type EmailHouse, openEmail, sample, Taker } from "./email.fixture.ts";
import { defaultFailure, receiptReconciliation, send, staleReceiptDetection } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { emailEventStats, emailSendStats } from "./stats.ts";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());

const PEOPLE = ["a@example.com", "b@example.com", "c@example.com"];
const WINDOW = 2;

let taker = new Taker();
let uids: string[] = [];
const process = (redis?: RedisConnection) =>
  house.process({ ...(redis ? { redis } : {}), provider: taker, config: [[settings.window, WINDOW]] });
/** A dead process's lock lives on for a while; the next run comes after it. */
const afterLock = () => house.base.clock.advance(130);

async function queueMails(): Promise<void> {
  await house.clear();
  taker = new Taker();
  uids = [];
  for (const person of PEOPLE) uids.push(await house.mail(sample(person)));
}

test("a send job that dies at any command loses no mail and repeats at most those in its window", async () => {
  const deaths = await dieAtEveryCommand(house.base.server, {
    prepare: queueMails,
    life: (mortal) => house.run(send, process(mortal)),
    async afterlife() {
      await house.audit();
      await afterLock();
      await house.run(send, process());
      await house.audit();
      expect(new Set(taker.taken)).toEqual(new Set(uids));
      expect(taker.taken.length - uids.length).toBeLessThanOrEqual(WINDOW);
      expect(await house.length(keys.pending())).toBe(3);
      for (const key of [keys.toSend(), keys.sendPurgatory()]) expect(await house.length(key)).toBe(0);
      expect((await house.counts(emailSendStats)).events).toMatchObject({ queued: 3, attempted: 3, accepted: 3 });
    },
  });
  expect(deaths).toBeGreaterThan(10);
}, 120_000);

test("a failing run that dies at any command queues one failure job for each mail", async () => {
  await dieAtEveryCommand(house.base.server, {
    async prepare() {
      await queueMails();
      taker.fails = true;
    },
    life: (mortal) => house.run(send, process(mortal)),
    async afterlife() {
      await afterLock();
      await house.run(send, process());
      expect(await house.callbacks()).toEqual(PEOPLE.map(() => defaultFailure.name));
      expect(await house.length(keys.retrying())).toBe(3);
      expect((await house.counts(emailSendStats)).events).toMatchObject({ failed_transiently: 3, retried: 3 });
      await house.audit();
    },
  });
}, 120_000);

test("a reconciliation that dies at any command works each piece of news in once", async () => {
  await dieAtEveryCommand(house.base.server, {
    async prepare() {
      await queueMails();
      await house.run(send, process());
      const ids = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
      const received_at = house.base.clock.now() - 10;
      const reason = { primary: "Permanent", secondary: "General" };
      const kinds = [{ type: "Delivery" }, { type: "Bounce", reason }, { type: "Complaint", feedback_type: null }];
      for (const [at, notification] of kinds.entries())
        await house.ctx.redis.commands.rpush(
          keys.event(),
          JSON.stringify({ message_id: ids[at], notification, received_at }),
          JSON.stringify({ message_id: `unknown-${at}`, notification, received_at }),
        );
    },
    life: (mortal) => house.run(receiptReconciliation, process(mortal)),
    async afterlife() {
      await house.audit();
      await afterLock();
      await house.run(receiptReconciliation, process());
      expect((await house.callbacks()).toSorted()).toEqual([
        ...Array(2).fill("runners.emails.abandoned_email_callback"),
        ...Array(2).fill("runners.emails.default_failure"),
        "runners.emails.default_success",
      ]);
      expect((await house.counts(emailEventStats)).words).toEqual({
        attempted: { found: 3, abandoned: 3 },
        succeeded: { found: 1, abandoned: 1 },
        bounced: { "found:Permanent:General": 1, "abandoned:Permanent:General": 1 },
        complaint: { "found:None": 1, "abandoned:None": 1 },
      });
      for (const key of [keys.event(), keys.eventPurgatory(), keys.pending()]) expect(await house.length(key)).toBe(0);
    },
  });
}, 120_000);

test("a search for missing receipts that dies at any command tells each failure job once", async () => {
  await dieAtEveryCommand(house.base.server, {
    async prepare() {
      await queueMails();
      await house.run(send, process());
      await house.base.clock.advance(86_401);
    },
    life: (mortal) => house.run(staleReceiptDetection, process(mortal)),
    async afterlife() {
      await house.audit();
      await afterLock();
      await house.run(staleReceiptDetection, process());
      expect(await house.callbacks()).toEqual(PEOPLE.map(() => defaultFailure.name));
      expect(await house.length(keys.pending())).toBe(0);
    },
  });
}, 120_000);

test("failure jobs that die at any command and run again decide each try once", async () => {
  const callbacks: string[] = [];
  await dieAtEveryCommand(house.base.server, {
    async prepare() {
      await queueMails();
      taker.fails = true;
      await house.run(send, process());
      const waiting = await house.ctx.redis.commands.lrange("jobs:hot", 0, -1);
      callbacks.splice(0, callbacks.length, ...waiting.filter((raw) => raw.includes(defaultFailure.name)));
    },
    life: async (mortal) => void (await house.callbacks(process(mortal))),
    async afterlife() {
      await house.ctx.redis.commands.rpush("jobs:hot", ...callbacks);
      await house.callbacks(process());
      expect(await house.length(keys.retrying())).toBe(3);
      expect((await house.counts(emailSendStats)).events).toMatchObject({ failed_transiently: 3, retried: 3 });
      await house.audit();
    },
  });
}, 120_000);

test("a run of both lanes that is stopped and dies at any command loses no mail, and each is in its own lane or sent", async () => {
  await dieAtEveryCommand(house.base.server, {
    async prepare() {
      await queueMails();
      uids.push(await house.code("d@example.com"), await house.code("e@example.com"));
    },
    life: (mortal) => house.run(send, process(mortal), () => taker.taken.length >= 3),
    async afterlife() {
      await house.audit();
      await afterLock();
      await house.run(send, process());
      await house.audit();
      expect(new Set(taker.taken)).toEqual(new Set(uids));
      expect(taker.taken.length - uids.length).toBeLessThanOrEqual(WINDOW);
      expect((await house.counts(emailSendStats)).events).toMatchObject({ queued: 5, attempted: 5, accepted: 5 });
    },
  });
}, 120_000);

test("a reconciliation that dies while it takes over lost acceptances sends no mail twice, and ends each once", async () => {
  await dieAtEveryCommand(house.base.server, {
    async prepare() {
      await queueMails();
      const { commands } = house.ctx.redis;
      // A send job died after the provider had taken all three.
      for (const raw of await commands.lrange(keys.toSend(), 0, -1)) {
        await commands.rpush(keys.sendPurgatory(), raw);
        const { uid } = JSON.parse(raw) as { uid: string };
        const received_at = house.base.clock.now();
        const news = { message_id: `m-${uid}`, uid, notification: { type: "Delivery" }, received_at };
        await commands.rpush(keys.event(), JSON.stringify(news));
      }
      await commands.del(keys.toSend());
    },
    life: (mortal) => house.run(receiptReconciliation, process(mortal)),
    async afterlife() {
      await afterLock();
      await house.run(receiptReconciliation, process());
      await house.run(send, process());
      expect(taker.taken).toEqual([]);
      expect(await house.callbacks()).toEqual(PEOPLE.map(() => "runners.emails.default_success"));
      expect((await house.counts(emailSendStats)).events).toMatchObject({ queued: 3, attempted: 3, accepted: 3 });
      expect((await house.counts(emailEventStats)).words.succeeded).toEqual({ found: 3 });
      await house.audit();
    },
  });
}, 120_000);

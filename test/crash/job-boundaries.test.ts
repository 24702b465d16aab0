import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type AnyRunner, type JobContext, jobKeys } from "../../src/jobs/index.ts";
import { dieAtEveryCommand, type MortalConnection } from "../harness/chaos.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { type JobProcessPlan, jobProcess } from "../harness/jobs.ts";
import { passTime, passTimeUntil } from "../harness/time.ts";
import { CrashFleet, numbered, numbersOf } from "./fleet.ts";

/** A minute of silence, less what the rescuer needs until its first look. */
const ALMOST_BURIED = 58;
const RESCUED_WITHIN = 80;

let house: TestContext;
let fleet: CrashFleet;
beforeAll(async () => {
  house = await openTestContext();
  fleet = new CrashFleet(house);
});
afterEach(() => fleet.stopAll());
afterAll(() => house.close());

/** What each process ran to its end, by number. */
type Ran = Map<number, number>;
const ranBy = (ran: Ran, n: number) => ran.set(n, (ran.get(n) ?? 0) + 1);

/** Runs a worker until nothing is left for it, or it is dead; then it stops, so that its goodbye has boundaries too. */
async function live(plan: JobProcessPlan, mortal: MortalConnection, done: () => Promise<boolean>): Promise<void> {
  const { worker } = jobProcess(house, { ...plan, overrides: { redis: mortal } });
  try {
    await worker.start();
    await passTimeUntil(house, async () => mortal.dead || (await done()), { limit: 200 });
  } finally {
    await worker.stop(AbortSignal.abort());
  }
}

/** The kinds of ends a job can have. The victim meets every one of them; in the rescuer everything succeeds. */
function everyEnd(ran: Ran, victim?: MortalConnection): AnyRunner[] {
  let bounced = false;
  const failing = async (_ctx: JobContext, { n }: { n: number }) => {
    if (victim) throw new Error("no luck");
    ranBy(ran, n);
  };
  const fine = async (_ctx: JobContext, { n }: { n: number }) => {
    // In this test the dead share a process with the living, but they must not act.
    if (!victim?.dead) ranBy(ran, n);
  };
  return [
    numbered("fine", fine),
    numbered("retried", failing, { retry: [60] }),
    numbered("failing", failing),
    numbered("costly", fine, { category: 1 }),
    numbered("bouncing", async (ctx, { n }) => {
      if (victim && !bounced) {
        bounced = true;
        throw ctx.bounce();
      }
      await fine(ctx, { n });
    }),
    numbered("early", fine, { ack: "early" }),
    numbered("watched", async (ctx, { n }) => {
      await ctx.progress("half way", { type: "bar", at: 1, of: 2 });
      await fine(ctx, { n });
    }),
    ...(victim ? [] : [numbered("of_the_future", fine)]),
  ];
}

const entry = (name: string, n: unknown, more = "") =>
  `{"name":"runners.${name}","kwargs":{"n":${JSON.stringify(n)}},"queued_at":1772000000${more}}`;

test("a worker that dies at any command of any job's end loses no job and repeats none that was finished", async () => {
  let ran: Ran = new Map();
  let diedAt = 0;
  const runnable = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11];
  const rescued = new Set<string>();
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: async () => {
      await fleet.stopAll();
      await house.flush();
      ran = new Map();
      const { jobs } = jobProcess(house, { runners: everyEnd(new Map()) });
      await house.redis.commands.rpush(
        jobKeys.hot(),
        entry("fine", 1),
        entry("fine", 2),
        entry("retried", 3),
        entry("failing", 4),
        entry("costly", 5),
        entry("bouncing", 6),
        entry("early", 7),
        "{not json",
        entry("of_the_future", 11),
        entry("fine", "twelve"),
      );
      await jobs.enqueueNamed("runners.watched", { n: 8 }, { jobUid: "crl_jp_watched" });
      await house.redis.commands.zadd(jobKeys.delayed(), house.clock.now() - 1, entry("fine", 10, ',"uid":"ten"'));
    },
    life: (mortal) =>
      live({ runners: everyEnd(ran, mortal), settings: { categories: [2], concurrency: 20 } }, mortal, async () => {
        const { hot, running, delayed } = await fleet.snapshot();
        return hot.length + running.length === 0 && delayed.length === 2;
      }).finally(() => {
        diedAt = house.clock.monotonic();
      }),
    afterlife: async ({ at, kind, command }) => {
      const where = `at command ${at} (${command}), ${kind}`;
      const left = await fleet.snapshot();
      const waiting = numbersOf([...left.hot, ...left.categories, ...left.running, ...left.delayed].filter(isNumbered));
      const ended = numbersOf(left.failed.filter(isNumbered));
      for (const n of runnable.filter((n) => n !== 7)) {
        const places = [...waiting, ...ended].filter((other) => other === n).length;
        expect(places === 1 || (places === 0 && ran.get(n) === 1), `${n} is in one place or done, ${where}`).toBe(true);
      }
      const before = new Map(ran);
      await house.clock.advance(ALMOST_BURIED - (house.clock.monotonic() - diedAt));
      await fleet.start({ runners: everyEnd(ran), settings: { concurrency: 20 } });
      const limit = RESCUED_WITHIN - (house.clock.monotonic() - diedAt);
      await passTimeUntil(house, () => fleet.atRest(), { limit, what: `rest ${where}` });
      await passTime(house, 2);
      const again = runnable.filter((n) => (ran.get(n) ?? 0) > (before.get(n) ?? 0));
      expect(again, `what ran in recovery ${where}`).toEqual(waiting);
      for (const [n, times] of ran)
        expect(times - (before.get(n) ?? 0), `${n} ran in recovery ${where}`).toBeLessThan(2);
      expect(ran.get(7) ?? 0, `the early one ${where}`).toBeLessThanOrEqual(1);
      const settled = await fleet.snapshot();
      expect(settled.quarantine).toEqual(["{not json"]);
      expect(settled.failed.map((raw) => JSON.parse(raw).kwargs.n)).toContain("twelve");
      expect(settled.failed).toHaveLength(ended.length + 1);
      await expectWholeProgress();
      await fleet.expectInvariants();
      for (const n of numbersOf(left.running.filter(isNumbered))) rescued.add(String(n));
    },
  });
  expect(deaths).toBeGreaterThan(30);
  // The deaths were where it hurts: every kind of job was at some time in the hands of the dead.
  expect([...rescued].sort()).toEqual(["1", "10", "11", "2", "3", "4", "5", "6", "7", "8"]);
}, 120_000);

const isNumbered = (raw: string) => /"n":\d/.test(raw);

/** Whoever watched saw numbers without gaps, and an end. */
async function expectWholeProgress(): Promise<void> {
  const { jobs } = jobProcess(house, { runners: [] });
  const progress = await jobs.progress.read("crl_jp_watched");
  expect(progress?.done).toBe(true);
  expect(progress?.events.map(({ seq }) => seq)).toEqual(progress?.events.map((_, index) => index + 1));
}

test("a worker that dies while it stops still ends, and leaves every unfinished entry to others exactly once", async () => {
  const items = [1, 2, 3, 4, 5, 6];
  let ran: Ran = new Map();
  let stopped = false;
  let diedAt = 0;
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: async () => {
      await fleet.stopAll();
      await house.flush();
      ran = new Map();
      stopped = false;
      await house.redis.commands.rpush(jobKeys.hot(), ...items.map((n) => entry("slow", n)));
    },
    life: async (mortal) => {
      const slow = numbered("slow", async (ctx, { n }) => {
        if (n === 1) return void ranBy(ran, n);
        await ctx.sleep(1000);
        if (n === 2) ranBy(ran, n);
        else throw new Error("interrupted");
      });
      const { worker } = jobProcess(house, {
        runners: [slow],
        overrides: { redis: mortal },
        settings: { concurrency: 4 },
      });
      try {
        await worker.start();
        await passTimeUntil(house, () => mortal.dead || worker.active === 4, { limit: 20 });
      } finally {
        await worker.stop();
        diedAt = house.clock.monotonic();
        stopped = worker.mode === "stopped";
      }
    },
    afterlife: async ({ at, kind, command }) => {
      const where = `at command ${at} (${command}), ${kind}`;
      expect(stopped, `it ends ${where}`).toBe(true);
      const left = await fleet.snapshot();
      const waiting = numbersOf([...left.hot, ...left.running]);
      const done = items.filter((n) => !waiting.includes(n));
      expect(done.filter((n) => ran.get(n) !== 1)).toEqual([]);
      expect(new Set(waiting).size).toBe(waiting.length);
      const before = new Map(ran);
      const order: number[] = [];
      const slow = numbered("slow", async (_ctx, { n }) => {
        order.push(n);
        ranBy(ran, n);
      });
      await house.clock.advance(ALMOST_BURIED);
      await fleet.start({ runners: [slow], settings: { concurrency: 1 } });
      await passTimeUntil(house, () => fleet.atRest(), { limit: 25, what: `rest ${where}` });
      expect(house.clock.monotonic() - diedAt).toBeLessThan(RESCUED_WITHIN);
      expect([...order].sort()).toEqual(waiting);
      expect([...before.keys()].every((n) => waiting.includes(n) || !order.includes(n))).toBe(true);
      await fleet.expectInvariants();
    },
  });
  expect(deaths).toBeGreaterThan(10);
}, 60_000);

test("a reaper that dies at any command buries its worker wholly or not at all, and the next one finishes it", async () => {
  let ran: Ran = new Map();
  const held = [1, 2, 3].map((n) => entry("fine", n));
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: async () => {
      await fleet.stopAll();
      await house.flush();
      ran = new Map();
      const uid = "crl_wrk_dead";
      await house.redis.commands.zadd(jobKeys.workers(), house.clock.now() - 61, uid);
      await house.redis.commands.hset(jobKeys.worker({ worker_uid: uid }), "running", "[]");
      const running = Object.fromEntries(held.map((raw, index) => [String(index + 1), raw]));
      await house.redis.commands.hset(jobKeys.running({ worker_uid: uid }), running);
    },
    life: (mortal) =>
      live({ runners: [numbered("fine", async (_ctx, { n }) => void ranBy(ran, n))] }, mortal, () => fleet.atRest()),
    afterlife: async ({ at, kind, command }) => {
      const where = `at command ${at} (${command}), ${kind}`;
      const left = await fleet.snapshot();
      const waiting = numbersOf([...left.hot, ...left.running]);
      expect(waiting.filter((n, index) => waiting.indexOf(n) !== index)).toEqual([]);
      for (const n of [1, 2, 3]) expect(waiting.includes(n) || ran.get(n) === 1, `${n} ${where}`).toBe(true);
      const again: Ran = new Map();
      await house.clock.advance(ALMOST_BURIED);
      await fleet.start({ runners: [numbered("fine", async (_ctx, { n }) => void ranBy(again, n))] });
      await passTimeUntil(house, () => fleet.atRest(), { limit: 22, what: `rest ${where}` });
      expect([...again.keys()].sort()).toEqual(waiting);
      expect([...again.values()].every((times) => times === 1)).toBe(true);
      await fleet.expectInvariants();
    },
  });
  expect(deaths).toBeGreaterThan(10);
}, 60_000);

test("a scheduler that dies at any command loses no occurrence and doubles none", async () => {
  const times: number[] = [];
  const regular = numbered("regular", async (ctx) => void times.push(ctx.clock.now()));
  const plan: JobProcessPlan = {
    runners: [regular],
    recurring: [{ runner: regular, kwargs: { n: 1 }, schedule: { seconds: [0] } }],
  };
  let purgatoryHeld = 0;
  let unstartedHeld = 0;
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: async () => {
      await fleet.stopAll();
      await house.flush();
      times.length = 0;
      await house.clock.advance(60 - (house.clock.now() % 60) - 3);
    },
    life: (mortal) => live(plan, mortal, async () => times.length === 1 && (await fleet.atRest())),
    afterlife: async ({ at, kind, command }) => {
      const where = `at command ${at} (${command}), ${kind}`;
      const { commands } = house.redis;
      const left = await fleet.snapshot();
      const purgatory = await commands.smembers(jobKeys.recurringPurgatory());
      const marked = await commands.hlen(jobKeys.recurringQueued());
      expect(left.hot.length + left.running.length + purgatory.length, where).toBeLessThanOrEqual(1);
      purgatoryHeld += purgatory.length;
      if (left.running.length === 1 && marked === 1) unstartedHeld++;
      const died = house.clock.now();
      const runsBefore = times.length;
      const overdue = await commands.zcount(jobKeys.recurring(), "-inf", died);
      const unfinished = left.hot.length + left.running.length + purgatory.length + overdue;
      await fleet.start(plan);
      if (purgatory.length > 0) {
        await passTimeUntil(house, () => times.length > runsBefore, { limit: 75, what: `the dispatch ${where}` });
      }
      await passTime(house, 185 - (house.clock.now() % 60));
      const fullMinutes = Math.floor(house.clock.now() / 60) - Math.floor(died / 60);
      // The unfinished run is one more, unless the next occurrence came before the rescue and stands for both.
      expect(times.length - runsBefore, `runs ${where}`).toBeGreaterThanOrEqual(fullMinutes);
      expect(times.length - runsBefore, `runs ${where}`).toBeLessThanOrEqual(fullMinutes + unfinished);
      await fleet.expectInvariants();
      expect(await commands.scard(jobKeys.recurringPurgatory())).toBe(0);
      expect(await commands.zcard(jobKeys.recurring())).toBe(1);
    },
  });
  expect(deaths).toBeGreaterThan(20);
  expect(purgatoryHeld).toBeGreaterThan(0);
  expect(unstartedHeld).toBeGreaterThan(0);
}, 120_000);

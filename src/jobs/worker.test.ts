import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { eventually } from "../../test/harness/facts.ts";
import { type JobProcess, type JobProcessPlan, jobProcess } from "../../test/harness/jobs.ts";
import { passTime, passTimeUntil } from "../../test/harness/time.ts";
import { migrate } from "../kernel/sql/index.ts";
import { readFailed } from "./admin.ts";
import type { JobContext } from "./context.ts";
import { jobKeys } from "./keys.ts";
import { type AnyRunner, defineRunner, type RunnerPlan } from "./runner.ts";
import { jobMigrations } from "./tables.ts";

let house: TestContext;
let started: JobProcess[] = [];
beforeAll(async () => {
  house = await openTestContext({ sql: true });
  await migrate(house.sql, [{ domain: "jobs", migrations: jobMigrations }]);
});
beforeEach(() => house.flush());
afterEach(async () => {
  await Promise.all(started.map(({ worker }) => worker.stop(AbortSignal.abort())));
  started = [];
});
afterAll(() => house.close());

const Numbered = z.object({ n: z.number() });

function runnerOf(
  run: (ctx: JobContext, kwargs: { n: number }) => Promise<void>,
  plan: Partial<Omit<RunnerPlan<typeof Numbered>, "run" | "kwargs">> = {},
) {
  return defineRunner({ name: "runners.test", category: 2, doc: "of a test", ...plan, kwargs: Numbered, run });
}

async function startProcess(plan: JobProcessPlan): Promise<JobProcess> {
  const process = jobProcess(house, plan);
  await process.worker.start();
  started.push(process);
  return process;
}

const keysLeft = async () => (await house.redis.commands.keys("*")).sort();
const failures = () => readFailed(house, { limit: 100, offset: 0 });
const isSettled = async (process: JobProcess) =>
  process.worker.active === 0 &&
  (await house.redis.commands.exists(jobKeys.hot(), jobKeys.running({ worker_uid: process.worker.uid }))) === 0;

/** A promise that a test resolves. */
function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

test("a thousand jobs on four workers run exactly once each and leave nothing behind", async () => {
  const seen = new Map<number, number>();
  const count = runnerOf(async (_ctx, { n }) => void seen.set(n, (seen.get(n) ?? 0) + 1));
  const fleet = await Promise.all([1, 2, 3, 4].map(() => startProcess({ runners: [count] })));
  const items = Array.from({ length: 1000 }, (_, n) => ({ n }));
  await fleet[0]!.jobs.enqueueMany(count, items);
  await eventually(() => seen.size === 1000);
  for (const { worker } of fleet) await worker.stop();
  expect([...seen.values()].every((times) => times === 1)).toBe(true);
  expect(await keysLeft()).toEqual([]);
});

test("a costly job taken by a worker for cheap ones is refiled and runs on one that accepts it", async () => {
  const ranOn: string[] = [];
  const costly = runnerOf(async (ctx) => void ranOn.push(ctx.hostname), { category: 1 });
  const cheap = await startProcess({ runners: [costly], settings: { categories: [2] } });
  await cheap.jobs.enqueue(costly, { n: 1 });
  await eventually(async () => (await house.redis.commands.llen(jobKeys.hotByCategory({ category: 1 }))) === 1);
  expect(ranOn).toEqual([]);
  const heavy = await startProcess({ runners: [costly], settings: { categories: [1] } });
  await eventually(() => ranOn.length === 1);
  expect(ranOn).toEqual([heavy.ctx.hostname]);
});

test("no more than the allowed number of costly jobs run at once, and cheap ones pass them", async () => {
  const { open, opened } = gate();
  let heavyRunning = 0;
  let heavyPeak = 0;
  let cheapRan = 0;
  const costly = runnerOf(
    async () => {
      heavyPeak = Math.max(heavyPeak, ++heavyRunning);
      await opened;
      heavyRunning--;
    },
    { category: 1, name: "runners.costly" },
  );
  const cheap = runnerOf(async () => void cheapRan++, { name: "runners.cheap" });
  const process = await startProcess({ runners: [costly, cheap] });
  await process.jobs.enqueueMany(costly, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  await process.jobs.enqueueMany(cheap, [{ n: 1 }, { n: 2 }]);
  await eventually(() => cheapRan === 2);
  expect(heavyPeak).toBe(1);
  open();
  await eventually(async () => (await isSettled(process)) && heavyRunning === 0);
  await eventually(async () => (await house.redis.commands.llen(jobKeys.hotByCategory({ category: 1 }))) === 0);
  expect(heavyPeak).toBe(1);
});

test("an error is retried after each declared delay and then kept as failed with its reason", async () => {
  const times: number[] = [];
  const failing = runnerOf(
    async (ctx) => {
      times.push(ctx.clock.now());
      throw new Error("no luck");
    },
    { retry: [60, 300] },
  );
  const process = await startProcess({ runners: [failing] });
  await process.jobs.enqueue(failing, { n: 7 });
  await passTimeUntil(house, async () => (await failures()).length === 1);
  const waits = times.slice(1).map((time, index) => time - times[index]!);
  expect(waits[0]).toBeGreaterThanOrEqual(60);
  expect(waits[0]).toBeLessThan(63);
  expect(waits[1]).toBeGreaterThanOrEqual(300);
  expect(waits[1]).toBeLessThan(303);
  const [failure] = await failures();
  expect(failure).toMatchObject({ reason: "error", error: expect.stringContaining("no luck") });
  expect(JSON.parse(failure!.raw)).toMatchObject({ name: "runners.test", kwargs: { n: 7 }, attempt: 2 });
  expect(process.ctx.alerts.recorded.filter(({ level }) => level === "error")).toHaveLength(3);
});

test("two equal delayed jobs stay two", async () => {
  let runs = 0;
  const once = runnerOf(async () => void runs++);
  const process = await startProcess({ runners: [once] });
  await process.jobs.enqueue(once, { n: 1 }, { delay: 30 });
  await process.jobs.enqueue(once, { n: 1 }, { delay: 30 });
  await passTime(house, 28);
  expect(runs).toBe(0);
  await passTimeUntil(house, () => runs === 2, { limit: 10 });
});

test("an entry that is not a job is set aside and blocks nothing", async () => {
  let runs = 0;
  const fine = runnerOf(async () => void runs++);
  await house.redis.commands.rpush(jobKeys.hot(), "{not json", '{"name":"runners.test"}', "\u0000\u0001");
  const process = await startProcess({ runners: [fine] });
  await process.jobs.enqueue(fine, { n: 1 });
  await eventually(() => runs === 1);
  await eventually(async () => (await house.redis.commands.llen("quarantine:jobs:hot")) === 3);
  expect(await failures()).toEqual([]);
  expect(await isSettled(process)).toBe(true);
  expect(process.ctx.alerts.identifiers()).toContain("quarantine:jobs:hot");
});

test("an unknown name waits ten minutes for a worker that knows it, then fails", async () => {
  const known = runnerOf(async () => {});
  await house.redis.commands.rpush(jobKeys.hot(), '{"name":"runners.of_the_future","kwargs":{},"queued_at":1}');
  const process = await startProcess({ runners: [known] });
  const waited = await passTimeUntil(house, async () => (await failures()).length === 1, { step: 5 });
  expect(waited).toBeGreaterThanOrEqual(600);
  expect(waited).toBeLessThan(760);
  expect((await failures())[0]).toMatchObject({
    reason: "unknown_runner",
    error: expect.stringContaining("of_the_future"),
  });
  expect(await isSettled(process)).toBe(true);
});

test("a job that a newer worker knows runs there after an older one deferred it", async () => {
  let runs = 0;
  const future = runnerOf(async () => void runs++, { name: "runners.of_the_future" });
  const old = await startProcess({ runners: [runnerOf(async () => {})] });
  await house.redis.commands.rpush(jobKeys.hot(), old.jobs.encode(future, { n: 1 }));
  await eventually(async () => (await house.redis.commands.zcard(jobKeys.delayed())) === 1);
  await old.worker.stop();
  await startProcess({ runners: [future] });
  await passTimeUntil(house, () => runs === 1, { limit: 40 });
});

test("wrong kwargs fail with the path of the fault and are never run", async () => {
  let runs = 0;
  const strict = runnerOf(async () => void runs++);
  await house.redis.commands.rpush(jobKeys.hot(), '{"name":"runners.test","kwargs":{"n":"seven"},"queued_at":1}');
  await startProcess({ runners: [strict] });
  await eventually(async () => (await failures()).length === 1);
  expect((await failures())[0]).toMatchObject({ reason: "invalid_kwargs", error: expect.stringContaining("at n") });
  expect(runs).toBe(0);
});

test("a job of 600 KiB is refused when it is enqueued, with what to do", async () => {
  const large = defineRunner({
    name: "runners.large",
    category: 2,
    doc: "of a test",
    kwargs: z.object({ text: z.string() }),
    run: async () => {},
  });
  const { jobs } = jobProcess(house, { runners: [large] });
  await expect(jobs.enqueue(large, { text: "x".repeat(600 * 1024) })).rejects.toMatchObject({
    code: "job_too_large",
    hint: expect.stringContaining("512 KiB"),
  });
  expect(await keysLeft()).toEqual([]);
});

test("a run that reaches its timeout is aborted and retried or failed", async () => {
  const slow = runnerOf(async (ctx) => void (await ctx.sleep(1000)), { timeout: 30 });
  const process = await startProcess({ runners: [slow] });
  await process.jobs.enqueue(slow, { n: 1 });
  await eventually(() => process.worker.active === 1);
  const waited = await passTimeUntil(house, async () => (await failures()).length === 1);
  expect(waited).toBeGreaterThanOrEqual(30);
  expect(waited).toBeLessThan(35);
  expect((await failures())[0]).toMatchObject({ reason: "timeout" });
  expect(process.stuck).toBe(false);
});

test("a run that ignores its timeout costs the worker its process, after the others have ended", async () => {
  const { open, opened } = gate();
  const hanging = runnerOf(async () => opened, { timeout: 30 });
  const process = await startProcess({ runners: [hanging] });
  await process.jobs.enqueue(hanging, { n: 1 });
  await eventually(() => process.worker.active === 1);
  const waited = await passTimeUntil(house, () => process.stuck);
  expect(waited).toBeGreaterThanOrEqual(40);
  expect((await failures())[0]).toMatchObject({ reason: "timeout" });
  expect(process.ctx.alerts.identifiers()).toContain("worker:stuck");
  await process.jobs.enqueue(hanging, { n: 2 });
  await passTime(house, 3);
  expect(await house.redis.commands.llen(jobKeys.hot())).toBe(1);
  open();
});

test("a job that bounces goes to the back with its count, and fails when it never ends", async () => {
  let runs = 0;
  const bouncing = runnerOf(async (ctx) => {
    runs++;
    throw ctx.bounce();
  });
  const process = await startProcess({ runners: [bouncing] });
  await process.jobs.enqueue(bouncing, { n: 1 });
  await eventually(async () => (await failures()).length === 1);
  expect(runs).toBe(11);
  expect((await failures())[0]).toMatchObject({ reason: "bounce_loop" });
});

test("a batch runner gets all waiting items at once and answers for each", async () => {
  const sizes: number[] = [];
  const ran: number[] = [];
  const batching = defineRunner({
    name: "runners.batching",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    async runMany(_ctx, items) {
      sizes.push(items.length);
      ran.push(...items.map(({ n }) => n));
      return items.map(({ n }) => (n === 5 ? { ok: false, error: new Error("five") } : { ok: true }));
    },
  });
  const process = jobProcess(house, { runners: [batching], settings: { concurrency: 50 } });
  const items = Array.from({ length: 20 }, (_, index) => ({ n: index + 1 }));
  await process.jobs.enqueueMany(batching, items);
  await process.worker.start();
  started.push(process);
  await eventually(() => ran.length === 20);
  await eventually(async () => (await failures()).length === 1);
  expect(sizes).toEqual([20]);
  expect(JSON.parse((await failures())[0]!.raw)).toMatchObject({ kwargs: { n: 5 } });
  await eventually(() => isSettled(process));
});

test("a batch that throws is run again item by item, so that only the bad one fails", async () => {
  const alone: number[] = [];
  const batching = defineRunner({
    name: "runners.batching",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    async runMany(_ctx, items) {
      if (items.some(({ n }) => n === 3)) throw new Error("three");
      if (items.length === 1) alone.push(items[0]!.n);
      return undefined;
    },
  });
  const process = jobProcess(house, { runners: [batching], settings: { concurrency: 50 } });
  await process.jobs.enqueueMany(
    batching,
    [1, 2, 3, 4].map((n) => ({ n })),
  );
  await process.worker.start();
  started.push(process);
  await eventually(async () => (await failures()).length === 1 && (await isSettled(process)));
  expect(alone.sort()).toEqual([1, 2, 4]);
  expect(JSON.parse((await failures())[0]!.raw)).toMatchObject({ kwargs: { n: 3 } });
});

test("a lock held elsewhere ends the run without an error", async () => {
  const { open, opened } = gate();
  const single = runnerOf(async (ctx) =>
    ctx.locks.withLock("jobs:runner:runners.test:lock" as never, { kind: "owner", wait: "fail" }, async () => opened),
  );
  const [one, two] = await Promise.all([startProcess({ runners: [single] }), startProcess({ runners: [single] })]);
  await one.jobs.enqueueMany(single, [{ n: 1 }, { n: 2 }]);
  await eventually(
    async () => one.worker.active + two.worker.active === 1 && (await house.redis.commands.llen(jobKeys.hot())) === 0,
  );
  expect(await failures()).toEqual([]);
  open();
  await eventually(async () => (await isSettled(one)) && (await isSettled(two)));
  expect([...one.ctx.alerts.recorded, ...two.ctx.alerts.recorded].filter(({ level }) => level === "error")).toEqual([]);
});

test("a stopping worker lets running jobs finish, gives unstarted ones back in order, and leaves no trace", async () => {
  const { open, opened } = gate();
  const ran: number[] = [];
  const waiting = runnerOf(async (_ctx, { n }) => {
    await opened;
    ran.push(n);
  });
  const process = await startProcess({ runners: [waiting], settings: { concurrency: 2 } });
  await process.jobs.enqueueMany(
    waiting,
    [1, 2, 3, 4, 5].map((n) => ({ n })),
  );
  await eventually(() => process.worker.active === 2);
  const stopping = process.worker.stop();
  open();
  await stopping;
  expect(ran.sort()).toEqual([1, 2]);
  const left = await house.redis.commands.lrange(jobKeys.hot(), 0, -1);
  expect(left.map((raw) => JSON.parse(raw).kwargs.n)).toEqual([3, 4, 5]);
  expect(await keysLeft()).toEqual([jobKeys.hot()]);
});

test("a job that does not end within the grace period is first in line again, and its late end changes nothing", async () => {
  const { open, opened } = gate();
  const slow = runnerOf(async () => opened);
  const process = await startProcess({ runners: [slow], settings: { shutdownGrace: 25 } });
  await process.jobs.enqueue(slow, { n: 1 });
  await eventually(() => process.worker.active === 1);
  let stopped = false;
  void process.worker.stop().then(() => {
    stopped = true;
  });
  const waited = await passTimeUntil(house, () => stopped);
  expect(waited).toBeGreaterThanOrEqual(25);
  expect(waited).toBeLessThan(28);
  open();
  await passTime(house, 2);
  const left = await house.redis.commands.lrange(jobKeys.hot(), 0, -1);
  expect(left.map((raw) => JSON.parse(raw))).toMatchObject([{ kwargs: { n: 1 }, bounces: 1 }]);
});

test("a job told to stop by a shutdown is given back, not failed", async () => {
  const interruptible = runnerOf(async (ctx) => {
    if (!(await ctx.sleep(1000))) throw new Error("interrupted");
  });
  const process = await startProcess({ runners: [interruptible as AnyRunner] });
  await process.jobs.enqueue(interruptible, { n: 1 });
  await eventually(() => process.worker.active === 1);
  await process.worker.stop();
  expect(await failures()).toEqual([]);
  expect(await house.redis.commands.llen(jobKeys.hot())).toBe(1);
});

test("recurring jobs run in slots of their own while all others are busy", async () => {
  const { open, opened } = gate();
  let recurred = 0;
  const busy = runnerOf(async () => opened, { name: "runners.busy" });
  const regular = runnerOf(async () => void recurred++, { name: "runners.regular" });
  const process = await startProcess({
    runners: [busy, regular],
    recurring: [{ runner: regular, kwargs: { n: 1 }, schedule: { seconds: [0] } }],
    settings: { concurrency: 2 },
  });
  await process.jobs.enqueueMany(
    busy,
    Array.from({ length: 20 }, (_, n) => ({ n })),
  );
  await eventually(() => process.worker.active === 2);
  await passTimeUntil(house, () => recurred >= 2, { limit: 130 });
  open();
});

test("unstarted entries go back to the queue after a second, for workers that have room", async () => {
  const { open, opened } = gate();
  const ranOn = new Map<number, string>();
  const slow = runnerOf(async (ctx, { n }) => {
    ranOn.set(n, ctx.hostname);
    if (n < 2) await opened;
  });
  const one = await startProcess({ runners: [slow], settings: { concurrency: 1 } });
  await one.jobs.enqueue(slow, { n: 0 });
  await eventually(() => one.worker.active === 1);
  await one.jobs.enqueueMany(slow, [{ n: 2 }, { n: 3 }]);
  const two = await startProcess({ runners: [slow], settings: { concurrency: 1 } });
  await passTimeUntil(house, () => ranOn.size === 3, { limit: 10 });
  expect(ranOn.get(2)).toBe(two.ctx.hostname);
  expect(ranOn.get(3)).toBe(two.ctx.hostname);
  open();
});

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { readFailed } from "../../src/jobs/admin.ts";
import { jobKeys } from "../../src/jobs/index.ts";
import { reapSilentWorkers } from "../../src/jobs/reaper.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";
import { jobProcess } from "../harness/jobs.ts";
import { passTime, passTimeUntil } from "../harness/time.ts";
import { CrashFleet, gate, numbered, numbersOf } from "./fleet.ts";

let house: TestContext;
let fleet: CrashFleet;
beforeAll(async () => {
  house = await openTestContext();
  fleet = new CrashFleet(house);
});
beforeEach(() => house.flush());
afterEach(() => fleet.stopAll());
afterAll(() => house.close());

const upTo = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));

test("the job of a dead worker starts elsewhere within 80 s; its third death makes it poison and harms no neighbour", async () => {
  const starts: { n: number; deliveries: number; host: string; beside: number }[] = [];
  let running = 0;
  const fatal = numbered("fatal", async (ctx, { n }) => {
    starts.push({ n, deliveries: ctx.job.deliveries, host: ctx.hostname, beside: running });
    await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
  });
  const innocent = numbered("innocent", async (ctx, { n }) => {
    running++;
    starts.push({ n, deliveries: ctx.job.deliveries, host: ctx.hostname, beside: 0 });
    if (n <= 3) await ctx.sleep(100);
    running--;
  });
  const plan = { runners: [fatal, innocent], settings: { concurrency: 6 } };
  const fatalStarts = () => starts.filter(({ n }) => n === 0);

  const one = await fleet.startMortal(plan);
  await one.jobs.enqueue(fatal, { n: 0 });
  await eventually(() => fatalStarts().length === 1);
  const two = await fleet.startMortal(plan);
  await one.kill();
  const waited = await passTimeUntil(house, () => fatalStarts().length === 2, { limit: 100 });
  expect(waited).toBeGreaterThanOrEqual(55);
  expect(waited).toBeLessThanOrEqual(80);

  await two.kill();
  const three = await fleet.startMortal(plan);
  await three.jobs.enqueueMany(innocent, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  await passTimeUntil(house, () => fatalStarts().length === 3, { limit: 200 });
  expect(fatalStarts().map(({ deliveries }) => deliveries)).toEqual([0, 1, 2]);
  expect(fatalStarts()[2]!.beside).toBe(0);
  await three.jobs.enqueueMany(innocent, [{ n: 4 }, { n: 5 }]);
  await passTime(house, 3);
  expect(numbersOf((await fleet.snapshot()).hot)).toEqual([4, 5]);

  await three.kill();
  await fleet.start(plan);
  await passTimeUntil(house, async () => (await readFailed(house, { limit: 9, offset: 0 })).length === 1, {
    limit: 80,
  });
  const [failure] = await readFailed(house, { limit: 9, offset: 0 });
  expect(failure).toMatchObject({ reason: "crashed", deliveries: 3, worker: three.worker.uid });
  await passTime(house, 200);
  expect(fatalStarts()).toHaveLength(3);
  const innocents = starts.filter(({ n }) => n > 0);
  expect(innocents.map(({ n }) => n).sort()).toEqual([1, 2, 3, 4, 5]);
  expect(innocents.every(({ deliveries }) => deliveries === 0)).toBe(true);
  await fleet.expectInvariants();
});

test("a job that is acknowledged early does not run again after its worker died", async () => {
  let runs = 0;
  const { open, opened } = gate();
  const early = numbered(
    "early",
    async () => {
      runs++;
      await opened;
    },
    { ack: "early" },
  );
  const one = await fleet.startMortal({ runners: [early] });
  await one.jobs.enqueue(early, { n: 1 });
  await eventually(() => runs === 1);
  await one.kill();
  await fleet.start({ runners: [early] });
  await passTime(house, 100);
  expect(runs).toBe(1);
  expect(await fleet.atRest()).toBe(true);
  expect(await house.redis.commands.zcard(jobKeys.workers())).toBe(1);
  open();
});

test("a worker that held thousands of jobs is buried, and each of them runs again in its order", async () => {
  const { open, opened } = gate();
  let held = 0;
  const blocked = numbered("many", async () => {
    held++;
    await opened;
  });
  const one = await fleet.startMortal({ runners: [blocked], settings: { concurrency: 5000 } });
  await one.jobs.enqueueMany(blocked, upTo(4500));
  await eventually(() => held === 4500);
  await one.kill();
  const order: number[] = [];
  const quick = numbered("many", async (_ctx, { n }) => void order.push(n));
  await fleet.start({ runners: [quick], settings: { concurrency: 500 } });
  await passTimeUntil(house, () => order.length === 4500, { limit: 80 });
  await passTimeUntil(house, () => fleet.atRest(), { limit: 5 });
  expect(order).toEqual(upTo(4500).map(({ n }) => n));
  open();
});

test("a worker that runs thousands of jobs can stop at once, and all of them wait again in their order", async () => {
  const { open, opened } = gate();
  let held = 0;
  const blocked = numbered("many", async () => {
    held++;
    await opened;
  });
  const one = await fleet.start({ runners: [blocked], settings: { concurrency: 5000 } });
  await one.jobs.enqueueMany(blocked, upTo(3000));
  await eventually(() => held === 3000);
  await one.worker.stop(AbortSignal.abort());
  const { hot, running } = await fleet.snapshot();
  expect(running).toEqual([]);
  expect(hot.map((raw) => JSON.parse(raw).kwargs.n)).toEqual(upTo(3000).map(({ n }) => n));
  open();
});

test("a worker that was cut off and declared dead changes nothing that its rescuer did, and starts over", async () => {
  const gates = [gate(), gate(), gate(), gate()];
  const startedHere = new Set<number>();
  let aborted = 0;
  const slow = numbered("slow", async (ctx, { n }) => {
    startedHere.add(n);
    ctx.signal.addEventListener("abort", () => aborted++);
    await gates[n]!.opened;
    if (n === 1) throw new Error("too late");
    if (n === 2) throw ctx.bounce();
  });
  const cutOff = await fleet.startMortal({ runners: [slow] });
  const firstUid = cutOff.worker.uid;
  await cutOff.jobs.enqueueMany(slow, upTo(4));
  await eventually(() => startedHere.size === 4);
  cutOff.cut();
  gates[0]!.open();
  const rescued: { n: number; deliveries: number }[] = [];
  const quick = numbered("slow", async (ctx, { n }) => void rescued.push({ n, deliveries: ctx.job.deliveries }));
  await fleet.start({ runners: [quick], settings: { concurrency: 1 } });
  gates[1]!.open();
  const waited = await passTimeUntil(house, () => rescued.length === 4, { limit: 100 });
  expect(waited).toBeGreaterThanOrEqual(55);
  expect(waited).toBeLessThanOrEqual(80);
  await fleet.stopAllBut(cutOff.worker);
  cutOff.mend();
  await passTimeUntil(house, () => cutOff.worker.uid !== firstUid, { limit: 30 });
  gates[2]!.open();
  gates[3]!.open();
  await passTime(house, 70);
  expect(cutOff.ctx.alerts.identifiers()).toContain("worker:declared_dead");
  expect(aborted).toBeGreaterThanOrEqual(2);
  expect(rescued).toEqual(upTo(4).map(({ n }) => ({ n, deliveries: 1 })));
  const { failed } = await fleet.snapshot();
  expect(failed).toEqual([]);
  expect(await fleet.atRest()).toBe(true);
  startedHere.clear();
  await cutOff.jobs.enqueue(slow, { n: 3 });
  await passTimeUntil(house, () => startedHere.has(3), { limit: 10 });
  await passTimeUntil(house, () => fleet.atRest(), { limit: 5 });
  await fleet.expectInvariants();
});

test("a job that waits to run alone never starts in a worker that was declared dead meanwhile", async () => {
  const { open, opened } = gate();
  let poisonRuns = 0;
  const slow = numbered("slow", async () => opened);
  const poison = numbered("poison", async () => void poisonRuns++);
  const cutOff = await fleet.startMortal({ runners: [slow, poison] });
  const firstUid = cutOff.worker.uid;
  await cutOff.jobs.enqueue(slow, { n: 1 });
  await eventually(() => cutOff.worker.active === 1);
  const raw = '{"name":"runners.poison","kwargs":{"n":2},"queued_at":1772000000,"deliveries":2}';
  await house.redis.commands.rpush(jobKeys.hot(), raw);
  await passTimeUntil(house, async () => (await fleet.snapshot()).running.length === 2, { limit: 5 });
  cutOff.cut();
  await house.clock.advance(61);
  expect(await reapSilentWorkers(jobProcess(house, { runners: [slow, poison] }).ctx, 60)).toBe(1);
  await house.redis.commands.del(jobKeys.hot());
  cutOff.mend();
  await passTimeUntil(house, () => cutOff.worker.uid !== firstUid, { limit: 30 });
  open();
  await passTime(house, 5);
  expect(poisonRuns).toBe(0);
  expect(await readFailed(house, { limit: 9, offset: 0 })).toMatchObject([{ reason: "crashed" }]);
});

test("of several reapers at once one buries, and each entry comes back once", async () => {
  const fine = numbered("fine", async () => {});
  const { open, opened } = gate();
  const blocked = numbered("fine", async () => opened);
  const dead = await fleet.startMortal({ runners: [blocked] });
  await dead.jobs.enqueueMany(fine, upTo(4));
  await eventually(() => dead.worker.active === 4);
  await dead.kill();
  await house.clock.advance(61);
  const reapers = Array.from({ length: 5 }, () => jobProcess(house, { runners: [fine] }));
  const buried = await Promise.all(reapers.map(({ ctx }) => reapSilentWorkers(ctx, 60)));
  expect(buried.reduce((sum, count) => sum + count)).toBe(1);
  expect((await fleet.snapshot()).hot.map((raw) => JSON.parse(raw))).toMatchObject(
    upTo(4).map(({ n }) => ({ kwargs: { n }, deliveries: 1 })),
  );
  open();
});

test("the reply to a take that was lost is found again within a minute, without a death", async () => {
  const ran: number[] = [];
  const fine = numbered("fine", async (ctx, { n }) => {
    expect(ctx.job.deliveries).toBe(0);
    ran.push(n);
  });
  const { worker } = await fleet.start({ runners: [fine] });
  const key = jobKeys.running({ worker_uid: worker.uid });
  await house.redis.commands.hset(key, "90001", '{"name":"runners.fine","kwargs":{"n":1},"queued_at":1772000000}');
  const waited = await passTimeUntil(house, () => ran.length === 1, { limit: 70 });
  expect(waited).toBeGreaterThan(30);
  await passTime(house, 60);
  expect(ran).toEqual([1]);
});

test("two, then five workers share one queue: each job runs once, and all of them work", async () => {
  const seen = new Map<number, string[]>();
  const shared = numbered("shared", async (ctx, { n }) => {
    seen.set(n, [...(seen.get(n) ?? []), ctx.hostname]);
    await new Promise(setImmediate);
  });
  const plan = { runners: [shared], settings: { concurrency: 2 } };
  const two = [await fleet.start(plan), await fleet.start(plan)];
  await two[0]!.jobs.enqueueMany(shared, upTo(3000));
  await eventually(() => seen.size > 300);
  for (let more = 0; more < 3; more++) await fleet.start(plan);
  await two[0]!.jobs.enqueueMany(
    shared,
    upTo(3000).map(({ n }) => ({ n: n + 3000 })),
  );
  await eventually(() => seen.size === 6000);
  await eventually(() => fleet.atRest());
  expect([...seen.values()].every((hosts) => hosts.length === 1)).toBe(true);
  expect(new Set([...seen.values()].flat()).size).toBe(5);
});

test("a busy worker with a full queue does not ask Redis again and again", async () => {
  const { open, opened } = gate();
  const busy = numbered("busy", async () => opened);
  const { worker, jobs } = await fleet.start({ runners: [busy] });
  await jobs.enqueueMany(busy, upTo(20));
  await eventually(() => worker.active === 4);
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await house.redis.commands.info("stats"))?.[1]);
  await passTime(house, 2);
  const before = await commands();
  for (let ping = 0; ping < 500; ping++) await house.redis.commands.ping();
  expect((await commands()) - before).toBeLessThan(550);
  open();
});

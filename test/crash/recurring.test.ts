import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { jobKeys, type RecurringJob } from "../../src/jobs/index.ts";
import { reapSilentWorkers } from "../../src/jobs/reaper.ts";
import { begin } from "../../src/jobs/scripts.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";
import { type JobProcess, jobProcess } from "../harness/jobs.ts";
import { passTime, passTimeUntil } from "../harness/time.ts";
import { CrashFleet, gate, numbered } from "./fleet.ts";

let house: TestContext;
let fleet: CrashFleet;
beforeAll(async () => {
  house = await openTestContext();
  fleet = new CrashFleet(house);
});
beforeEach(async () => {
  await house.flush();
  await house.clock.advance(60 - (house.clock.now() % 60) + 10);
});
afterEach(() => fleet.stopAll());
afterAll(() => house.close());

const minutely = { seconds: [0] };
const every = (runner: RecurringJob["runner"], schedule: RecurringJob["schedule"], n = 1): RecurringJob => ({
  runner,
  kwargs: { n },
  schedule,
});
const digestOf = ({ jobs }: Pick<JobProcess, "jobs">, name: string) => jobs.recurring.digestOf(name, { n: 1 })!;
const dueAt = async (digest: string) => Number(await house.redis.commands.zscore(jobKeys.recurring(), digest));
const nextMinute = () => house.clock.now() - (house.clock.now() % 60) + 60;

async function countOf({ ctx }: Pick<JobProcess, "ctx">, runner: string, outcome: string): Promise<number> {
  const { values } = await ctx.metrics.registry.getSingleMetric("carillon_jobs_total")!.get();
  return values.find(({ labels }) => labels.runner === runner && labels.outcome === outcome)?.value ?? 0;
}

test("after ten hours without any worker a minutely job is queued once, and then at the next full minute", async () => {
  const times: number[] = [];
  const regular = numbered("regular", async (ctx) => void times.push(ctx.clock.now()));
  const plan = { runners: [regular], recurring: [every(regular, minutely)] };
  const first = await fleet.start(plan);
  await first.worker.stop();
  await house.clock.advance(36_000);
  const started = house.clock.now();
  const back = await fleet.start(plan);
  await eventually(() => times.length === 1);
  expect(times[0]! - started).toBeLessThan(2);
  expect(await dueAt(digestOf(back, "runners.regular"))).toBe(nextMinute());
  await passTime(house, 45);
  expect(times).toHaveLength(1);
  await passTime(house, 10);
  expect(times).toHaveLength(2);
});

test("while all slots are busy for five minutes one entry waits, four are coalesced, and one run follows", async () => {
  const { open, opened } = gate();
  let runs = 0;
  const blocking = numbered("blocking", async () => opened);
  const regular = numbered("regular", async () => void runs++);
  const process = await fleet.start({
    runners: [blocking, regular],
    recurring: [every(blocking, { hours: [0], minutes: [0], seconds: [0] }), every(regular, minutely)],
    settings: { concurrency: 1, recurringConcurrency: 1 },
  });
  process.jobs.nudge(blocking, { n: 1 });
  await process.jobs.enqueue(blocking, { n: 2 });
  await eventually(() => process.worker.active === 2);
  let waiting = 0;
  for (let second = 0; second < 300; second += 5) {
    await passTime(house, 5);
    const { hot, running } = await fleet.snapshot();
    waiting = [...hot, ...running].filter((raw) => raw.includes("runners.regular")).length;
    expect(waiting).toBeLessThanOrEqual(1);
  }
  expect(waiting).toBe(1);
  expect(runs).toBe(0);
  expect(await countOf(process, "runners.regular", "coalesced")).toBe(4);
  open();
  await passTime(house, 3);
  expect(runs).toBe(1);
});

test("a job due every 15 s that always waits 20 s in the queue still starts every 20 to 31 s", async () => {
  const regular = numbered("regular", async () => {});
  const { ctx, worker } = jobProcess(house, {
    runners: [regular],
    recurring: [every(regular, { seconds: [0, 15, 30, 45] })],
  });
  await worker.scheduler.sync();
  const starts: number[] = [];
  for (let second = 0; second < 300; second++) {
    await house.clock.advance(1);
    await worker.scheduler.dispatchDue();
    const raw = await house.redis.commands.lindex(jobKeys.hot(), -1);
    const entry = raw === null ? undefined : JSON.parse(raw);
    if (!entry || ctx.clock.now() - entry.queued_at < 20) continue;
    await house.redis.commands.rpop(jobKeys.hot());
    await ctx.redis.run(begin, [jobKeys.recurringQueued()], [entry.rjob, entry.queued_at]);
    starts.push(ctx.clock.now());
  }
  const gaps = starts.slice(1).map((time, index) => time - starts[index]!);
  expect(gaps.length).toBeGreaterThanOrEqual(8);
  for (const gap of gaps) expect(gap >= 20 && gap <= 31, `a gap of ${gap} s`).toBe(true);
});

test("ten schedulers queue sixty minutely jobs exactly 3600 times in an hour", async () => {
  const regular = numbered("regular", async () => {});
  const recurring = Array.from({ length: 60 }, (_, n) => every(regular, minutely, n));
  const schedulers = Array.from({ length: 10 }, () => jobProcess(house, { runners: [regular], recurring }));
  await Promise.all(schedulers.map(({ worker }) => worker.scheduler.sync()));
  const perMinute = new Map<string, number>();
  let entries = 0;
  for (let second = 0; second < 3600; second++) {
    await house.clock.advance(1);
    await Promise.all(schedulers.map(({ worker }) => worker.scheduler.dispatchDue()));
    // Idle workers start what they find at once.
    const found = await house.redis.commands.lpop(jobKeys.hot(), 100);
    if (!found) continue;
    entries += found.length;
    const started = found.map((raw) => JSON.parse(raw));
    for (const { rjob, queued_at } of started) {
      const occurrence = `${rjob} ${Math.floor(queued_at / 60)}`;
      perMinute.set(occurrence, (perMinute.get(occurrence) ?? 0) + 1);
    }
    const items = started.flatMap(({ rjob, queued_at }) => [rjob, queued_at]);
    await house.redis.run(begin, [jobKeys.recurringQueued()], items);
  }
  expect(entries).toBe(3600);
  expect([...perMinute.values()].every((times) => times === 1)).toBe(true);
});

test("the first worker of a new version changes the schedule, and older ones keep their hands off it", async () => {
  const ran: string[] = [];
  const runner = (name: string) => numbered(name, async () => void ran.push(name));
  const [added, removed, kept] = [runner("added"), runner("removed"), runner("kept")];
  const runners = [added, removed, kept];
  const oldPlan = { runners, recurring: [every(removed, minutely), every(kept, { seconds: [0, 30] })] };
  const newPlan = { runners, recurring: [every(added, minutely), every(kept, { seconds: [0, 30] })] };
  const old = [await fleet.start(oldPlan), await fleet.start(oldPlan), await fleet.start(oldPlan)];
  await passTimeUntil(house, () => ran.includes("removed") && ran.includes("kept"), { limit: 61 });
  await passTime(house, 5);
  const keptDue = await dueAt(digestOf(old[0]!, "runners.kept"));
  await old[0]!.worker.stop();
  const fresh = await fleet.start(newPlan);
  expect(await dueAt(digestOf(fresh, "runners.kept"))).toBe(keptDue);
  expect(await dueAt(digestOf(fresh, "runners.added"))).toBe(nextMinute());
  ran.length = 0;
  for (let second = 0; second < 300; second += 10) {
    await passTime(house, 10);
    expect(await house.redis.commands.get(jobKeys.recurringHash())).toBe(fresh.jobs.recurring.hash);
  }
  const runsOf = (name: string) => ran.filter((other) => other === name).length;
  expect([runsOf("removed"), runsOf("added"), runsOf("kept")]).toEqual([0, 5, 10]);
  for (const process of old.slice(1)) {
    await process.worker.stop();
    await fleet.start(newPlan);
  }
  ran.length = 0;
  await passTime(house, 120);
  expect([runsOf("removed"), runsOf("added"), runsOf("kept")]).toEqual([0, 2, 4]);
  await fleet.expectInvariants();
});

test("when a version without recurring jobs starts, nothing of the schedule stays", async () => {
  const regular = numbered("regular", async () => {});
  const before = await fleet.start({ runners: [regular], recurring: [every(regular, minutely)] });
  await house.redis.commands.hset(jobKeys.recurringQueued(), digestOf(before, "runners.regular"), house.clock.now());
  await before.worker.stop();
  await fleet.start({ runners: [regular] });
  const keys = [jobKeys.recurring(), jobKeys.recurringHash(), jobKeys.recurringQueued(), jobKeys.recurringPurgatory()];
  expect(await house.redis.commands.exists(...keys)).toBe(0);
});

test("a schedule that was deleted by hand is rebuilt by the next process that starts", async () => {
  let runs = 0;
  const regular = numbered("regular", async () => void runs++);
  const plan = { runners: [regular], recurring: [every(regular, minutely)] };
  await fleet.start(plan);
  await house.redis.commands.del(jobKeys.recurring());
  await passTime(house, 120);
  expect(runs).toBe(0);
  await fleet.start(plan);
  await passTime(house, 61);
  expect(runs).toBe(1);
});

test("a marker whose entry is lost starves its job for ten minutes at most, and is told", async () => {
  let runs = 0;
  const regular = numbered("regular", async () => void runs++);
  const process = await fleet.start({ runners: [regular], recurring: [every(regular, minutely)] });
  await house.redis.commands.hset(jobKeys.recurringQueued(), digestOf(process, "runners.regular"), house.clock.now());
  await passTime(house, 580, 2);
  expect(runs).toBe(0);
  await passTimeUntil(house, () => runs === 1, { limit: 90 });
  expect(process.ctx.alerts.identifiers()).toEqual(["rjobs:stale_marker"]);
  await passTimeUntil(house, () => runs === 3, { limit: 125 });
});

test("the daily run of a worker that died before it started it is not lost", async () => {
  const daily = numbered("daily", async () => void runs++);
  let runs = 0;
  const plan = { runners: [daily], recurring: [every(daily, { hours: [2], minutes: [0], seconds: [0] })] };
  const { jobs } = jobProcess(house, plan);
  const digest = digestOf({ jobs }, "runners.daily");
  const dead = "crl_wrk_dead";
  const now = house.clock.now();
  await house.redis.commands.hset(jobKeys.running({ worker_uid: dead }), "1", jobs.recurring.entry(digest, now));
  await house.redis.commands.hset(jobKeys.worker({ worker_uid: dead }), "running", "[]");
  await house.redis.commands.zadd(jobKeys.workers(), now, dead);
  await house.redis.commands.hset(jobKeys.recurringQueued(), digest, now);
  await fleet.start(plan);
  await passTimeUntil(house, () => runs === 1, { limit: 80 });
  expect(await house.redis.commands.exists(jobKeys.recurringQueued())).toBe(0);
});

test("the run of a dead worker is dropped when the next occurrence waits already", async () => {
  const { open, opened } = gate();
  let runs = 0;
  const regular = numbered("regular", async () => {
    runs++;
    if (runs === 1) await opened;
  });
  const plan = { runners: [regular], recurring: [every(regular, minutely)] };
  const dying = await fleet.startMortal(plan);
  dying.jobs.nudge(regular, { n: 1 });
  await eventually(() => runs === 1);
  await dying.kill();
  const scheduling = jobProcess(house, plan);
  await house.clock.advance(nextMinute() - house.clock.now());
  await scheduling.worker.scheduler.dispatchDue();
  expect((await fleet.snapshot()).hot).toHaveLength(1);
  await house.clock.advance(20);
  const [before] = (await fleet.snapshot()).hot;
  expect(await reapSilentWorkers(scheduling.ctx, 60)).toBe(1);
  expect((await fleet.snapshot()).hot).toEqual([before]);
  open();
});

test("a clock that jumps an hour forward and back loses no job and adds one run of a recurring job at most", async () => {
  const times: number[] = [];
  const ran = new Map<number, number>();
  const regular = numbered("regular", async (ctx) => void times.push(ctx.clock.monotonic()));
  const slow = numbered("slow", async (ctx, { n }) => {
    await ctx.sleep(20);
    ran.set(n, (ran.get(n) ?? 0) + 1);
  });
  const plan = { runners: [regular, slow], recurring: [every(regular, minutely)] };
  const [one] = [await fleet.start(plan), await fleet.start(plan)];
  const enqueueFive = (from: number) =>
    one!.jobs.enqueueMany(
      slow,
      [0, 1, 2, 3, 4].map((n) => ({ n: from + n })),
    );
  await enqueueFive(0);
  await passTime(house, 2);
  house.clock.jump(3600);
  await enqueueFive(10);
  await passTime(house, 300);
  expect(times.length).toBeGreaterThanOrEqual(5);
  expect(times.length).toBeLessThanOrEqual(6);
  const before = times.length;
  house.clock.jump(-3600);
  await enqueueFive(20);
  await passTime(house, 300);
  expect(times.length - before).toBeGreaterThanOrEqual(5);
  expect(times.length - before).toBeLessThanOrEqual(6);
  const numbers = [0, 10, 20].flatMap((from) => [0, 1, 2, 3, 4].map((n) => from + n));
  expect([...ran.keys()].sort((a, b) => a - b)).toEqual(numbers);
  expect(await fleet.atRest()).toBe(true);
  await fleet.expectInvariants();
});

test("a hundred nudges make one entry now and one after 20 ms, and none while an entry waits", async () => {
  const regular = numbered("regular", async () => {});
  const process = jobProcess(house, { runners: [regular], recurring: [every(regular, minutely)] });
  const { commands } = house.redis;
  const calls = async () => {
    const stats = await commands.info("commandstats");
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const before = await calls();
  for (let i = 0; i < 100; i++) process.jobs.nudge(regular, { n: 1 });
  await eventually(async () => (await commands.llen(jobKeys.hot())) === 1);
  expect((await calls()) - before).toBe(1);
  await house.clock.advance(0.021);
  await eventually(async () => (await calls()) - before === 2);
  expect(await commands.llen(jobKeys.hot())).toBe(1);
  const entry = JSON.parse((await commands.lpop(jobKeys.hot()))!);
  await house.redis.run(begin, [jobKeys.recurringQueued()], [entry.rjob, entry.queued_at]);
  await house.clock.advance(1);
  process.jobs.nudge(regular, { n: 1 });
  await eventually(async () => (await commands.llen(jobKeys.hot())) === 1);
});

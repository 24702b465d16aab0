import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { eventually } from "../../test/harness/facts.ts";
import { type JobProcess, type JobProcessPlan, jobProcess } from "../../test/harness/jobs.ts";
import { passTime, passTimeUntil } from "../../test/harness/time.ts";
import { migrate } from "../kernel/sql/index.ts";
import { readFailed, requeueFailed } from "./admin.ts";
import { jobKeys } from "./keys.ts";
import { defineRunner, type Outcome, type Runner } from "./runner.ts";
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
const failures = () => readFailed(house, { limit: 1000, offset: 0 });
const numbers = (...all: number[]) => all.map((n) => ({ n }));

/** Everything is queued before the worker starts, so that one take sees all of it. */
async function startWith(runner: Runner<typeof Numbered>, items: { n: number }[], plan: Partial<JobProcessPlan> = {}) {
  const process = jobProcess(house, { runners: [runner], settings: { concurrency: 50 }, ...plan });
  await process.jobs.enqueueMany(runner, items);
  await process.worker.start();
  started.push(process);
  return process;
}

test("a batch that throws reruns each item in its own time, and none that failed runs afterwards", async () => {
  const ranAlone: number[] = [];
  const slow = defineRunner({
    name: "runners.slow_batch",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    timeout: 100,
    async runMany(ctx, items) {
      if (items.length > 1) throw new Error("not together");
      await ctx.sleep(60);
      ranAlone.push(items[0]!.n);
      return undefined;
    },
  });
  const process = await startWith(slow, numbers(1, 2, 3, 4));
  await passTimeUntil(house, () => ranAlone.length === 4, { limit: 400 });
  expect(await failures()).toEqual([]);
  expect(ranAlone).toEqual([1, 2, 3, 4]);
  expect(process.stuck).toBe(false);
});

test("a batch that was removed before it ran still runs item by item when it throws", async () => {
  const ran: number[] = [];
  const early = defineRunner({
    name: "runners.early_batch",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    ack: "early",
    async runMany(_ctx, items): Promise<readonly Outcome[] | undefined> {
      if (items.length > 1 || items[0]!.n === 2) throw new Error("no");
      ran.push(items[0]!.n);
      return undefined;
    },
  });
  const process = await startWith(early, numbers(1, 2, 3));
  await eventually(() => ran.length === 2 && process.worker.active === 0);
  expect(ran).toEqual([1, 3]);
  expect(process.ctx.alerts.recorded.filter(({ level }) => level === "error")).toHaveLength(1);
});

test("more jobs than a script can unpack at once are queued under a limit, all or none", async () => {
  const plain = defineRunner({
    name: "runners.plain",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    run: async () => {},
  });
  const { jobs } = jobProcess(house, { runners: [plain] });
  const many = Array.from({ length: 9000 }, (_, n) => ({ n }));
  await jobs.enqueueMany(plain, many, { maxLength: 9000 });
  expect(await house.redis.commands.llen(jobKeys.hot())).toBe(9000);
  await expect(jobs.enqueueMany(plain, many, { maxLength: 17_999 })).rejects.toMatchObject({ code: "backpressure" });
  await expect(jobs.enqueue(plain, { n: 1 }, { jobUid: "crl_jp_full", maxLength: 9000 })).rejects.toMatchObject({
    code: "backpressure",
  });
  expect(await jobs.progress.read("crl_jp_full")).toBeUndefined();
  expect(await house.redis.commands.llen(jobKeys.hot())).toBe(9000);
});

test("retrying all failures ends although every job fails again", async () => {
  const hopeless = defineRunner({
    name: "runners.hopeless",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    run: () => Promise.reject(new Error("never")),
  });
  const process = await startWith(
    hopeless,
    Array.from({ length: 700 }, (_, n) => ({ n })),
  );
  await eventually(async () => (await failures()).length === 700);
  await passTime(house, 1);
  expect(await requeueFailed(process.ctx)).toBe(700);
  await eventually(async () => (await house.redis.commands.llen(jobKeys.failed())) === 700);
});

test("an entry that is not text is set aside byte for byte", async () => {
  const plain = defineRunner({
    name: "runners.plain",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    run: async () => {},
  });
  await house.redis.commands.rpush(jobKeys.hot(), Buffer.from([0x80, 0x81, 0xfe]));
  await startWith(plain, []);
  await eventually(async () => (await house.redis.commands.llen("quarantine:jobs:hot")) === 1);
  const [entry] = await house.redis.commands.lrange("quarantine:jobs:hot", 0, 0);
  expect(JSON.parse(entry!)).toMatchObject({ raw_base64: "gIH+", reason: "not UTF-8" });
});

test("a worker that was buried tells no watcher of an end that does not count", async () => {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const watched = defineRunner({
    name: "runners.watched",
    category: 2,
    doc: "of a test",
    kwargs: Numbered,
    run: () => opened,
  });
  const process = await startWith(watched, []);
  await process.jobs.enqueue(watched, { n: 1 }, { jobUid: "crl_jp_watched" });
  await eventually(() => process.worker.active === 1);
  await house.redis.commands.del(jobKeys.running({ worker_uid: process.worker.uid }));
  open();
  await eventually(() => process.worker.active === 0);
  const progress = await process.jobs.progress.read("crl_jp_watched");
  expect(progress?.events.map(({ type }) => type)).toEqual(["queued", "started"]);
  expect(progress?.done).toBe(false);
});

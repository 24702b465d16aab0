import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { eventually } from "../../test/harness/facts.ts";
import { jobProcess } from "../../test/harness/jobs.ts";
import { jobKeys } from "./keys.ts";
import { recurring } from "./recurring.ts";
import { defineRunner } from "./runner.ts";

let house: TestContext;
beforeAll(async () => {
  house = await openTestContext();
});
beforeEach(() => house.flush());
afterAll(() => house.close());

const greet = defineRunner({
  name: "runners.greet",
  category: 2,
  doc: "of a test",
  kwargs: z.object({ name: z.string(), times: z.number().default(1) }),
  run: async () => {},
});
const tidy = defineRunner({
  name: "runners.tidy",
  category: 2,
  doc: "of a test",
  kwargs: z.object({ area: z.string() }),
  run: async () => {},
});

const process = () =>
  jobProcess(house, { runners: [greet, tidy], recurring: [recurring(tidy, { area: "all" }, { seconds: [0] })] });
const queued = async () => (await house.redis.commands.lrange(jobKeys.hot(), 0, -1)).map((raw) => JSON.parse(raw));

test("a queued job has exactly the three fields that every writer uses", async () => {
  await process().jobs.enqueue(greet, { name: "Ada" });
  expect(await queued()).toEqual([{ name: "runners.greet", kwargs: { name: "Ada" }, queued_at: house.clock.now() }]);
});

test("kwargs of another shape are refused with the path, and nothing is queued", async () => {
  const { jobs } = process();
  // @ts-expect-error a number is no name, and the compiler says so too
  const refused = jobs.enqueue(greet, { name: 7 });
  await expect(refused).rejects.toMatchObject({ code: "invalid_kwargs", detail: [{ path: "name" }] });
  await expect(jobs.enqueueMany(greet, [{ name: "Ada" }, {} as never])).rejects.toMatchObject({
    code: "invalid_kwargs",
  });
  await expect(jobs.enqueueNamed("runners.nobody", {})).rejects.toMatchObject({ code: "unknown_runner" });
  expect(await queued()).toEqual([]);
});

test("ten thousand jobs are queued in their order by a few commands", async () => {
  const { jobs } = process();
  await house.redis.commands.config("RESETSTAT");
  await jobs.enqueueMany(
    greet,
    Array.from({ length: 10_000 }, (_, n) => ({ name: String(n) })),
  );
  const stats = await house.redis.commands.info("commandstats");
  expect(Number(/cmdstat_rpush:calls=(\d+)/.exec(stats)?.[1])).toBe(10);
  expect((await queued()).map((job) => Number(job.kwargs.name))).toEqual(Array.from({ length: 10_000 }, (_, n) => n));
});

test("concurrent single enqueues share commands and keep their order", async () => {
  const { jobs } = process();
  await house.redis.commands.config("RESETSTAT");
  await Promise.all(Array.from({ length: 2000 }, (_, n) => jobs.enqueue(greet, { name: String(n) })));
  const stats = await house.redis.commands.info("commandstats");
  expect(Number(/cmdstat_rpush:calls=(\d+)/.exec(stats)?.[1])).toBeLessThan(20);
  expect((await queued()).map((job) => Number(job.kwargs.name))).toEqual(Array.from({ length: 2000 }, (_, n) => n));
});

test("a queue that would grow too long refuses all of a batch", async () => {
  const { jobs } = process();
  await jobs.enqueueMany(greet, [{ name: "a" }, { name: "b" }]);
  const refused = jobs.enqueueMany(greet, [{ name: "c" }, { name: "d" }], { maxLength: 3 });
  await expect(refused).rejects.toMatchObject({ code: "backpressure", retryAfter: 10 });
  await jobs.enqueue(greet, { name: "c" }, { maxLength: 3 });
  expect((await queued()).map((job) => job.kwargs.name)).toEqual(["a", "b", "c"]);
});

test("a watched job tells its watchers that it waits before anybody can take it", async () => {
  const { jobs, ctx } = process();
  const heard: string[] = [];
  await ctx.subscriber.subscribe(jobKeys.progress({ job_uid: "crl_jp_1" }), (message) =>
    heard.push(message.toString()),
  );
  await jobs.enqueue(greet, { name: "Ada" }, { jobUid: "crl_jp_1" });
  await eventually(() => heard.length === 1);
  expect(JSON.parse(heard[0]!)).toMatchObject({ seq: 1, type: "queued" });
  expect(await jobs.progress.read("crl_jp_1")).toMatchObject({ last_seq: 1, done: false, events: [{ seq: 1 }] });
  expect(await queued()).toMatchObject([{ job_uid: "crl_jp_1" }]);
});

test("a nudge puts a recurring job at the front once, however often it is called", async () => {
  const { jobs } = process();
  await jobs.enqueue(greet, { name: "Ada" });
  for (let call = 0; call < 50; call++) jobs.nudge(tidy, { area: "all" });
  await house.clock.advance(1);
  await eventually(async () => (await queued()).length === 2);
  expect((await queued()).map((job) => job.name)).toEqual(["runners.tidy", "runners.greet"]);
  const [digest] = [...jobs.recurring.jobs.keys()];
  expect(await house.redis.commands.hkeys(jobKeys.recurringQueued())).toEqual([digest]);
  expect(await jobs.runRecurring(digest!)).toBe(false);
  expect(() => jobs.nudge(greet)).toThrow("does not recur");
});

test("a nudge that comes within 20 ms of another is made up for", async () => {
  const { jobs } = process();
  jobs.nudge(tidy, { area: "all" });
  await eventually(async () => (await queued()).length === 1);
  await house.redis.commands.del(jobKeys.hot(), jobKeys.recurringQueued());
  jobs.nudge(tidy, { area: "all" });
  expect(await queued()).toEqual([]);
  await house.clock.advance(0.02);
  await eventually(async () => (await queued()).length === 1);
});

test("a full Redis refuses jobs with a clear error and keeps what it has", async () => {
  const { jobs } = process();
  await jobs.enqueue(greet, { name: "before" });
  await house.redis.commands.config("SET", "maxmemory", "1mb");
  await expect(jobs.enqueue(greet, { name: "during" })).rejects.toMatchObject({ code: "redis_full", status: 503 });
  await house.redis.commands.config("SET", "maxmemory", "0");
  expect((await queued()).map((job) => job.kwargs.name)).toEqual(["before"]);
});

test("two runners with one name and a schedule without a runner stop the start", () => {
  expect(() => jobProcess(house, { runners: [greet, greet] })).toThrow("two runners are named runners.greet");
  expect(() =>
    jobProcess(house, { runners: [greet], recurring: [recurring(tidy, { area: "all" }, { seconds: [0] })] }),
  ).toThrow("no runner has this name");
  const twice = recurring(tidy, { area: "all" }, { seconds: [0] });
  expect(() => jobProcess(house, { runners: [tidy], recurring: [twice, twice] })).toThrow("declared twice");
  expect(() => defineRunner({ ...greet, name: "runners.Bad Name" })).toThrow("is not a runner name");
});

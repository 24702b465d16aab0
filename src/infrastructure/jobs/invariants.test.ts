import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { eventually } from "../../../test/harness/facts.ts";
import { passTimeUntil } from "../../../test/harness/time.ts";
import { defineRunner, jobKeys } from "../../jobs/index.ts";
import { newUid } from "../../kernel/ids.ts";
import { invariants } from "./invariants.ts";
import { type JobServer, openJobServer } from "./jobs.fixture.ts";

const count = defineRunner({
  name: "runners.test.count",
  category: 2,
  doc: "Tells each number it counts.",
  kwargs: z.object({ fail: z.boolean().default(false) }),
  retry: [60],
  async run(ctx, { fail }) {
    await ctx.progress("one");
    if (fail) throw new Error("lost count");
  },
});

let server: JobServer;
beforeAll(async () => {
  server = await openJobServer({ runners: [count] });
});
beforeEach(() => server.ctx.flush());
afterAll(() => server.close());

/** What each invariant finds, without those that find nothing. */
async function findings(): Promise<Record<string, readonly string[]>> {
  const all = await Promise.all(invariants.map(async ({ name, check }) => [name, await check(server.ctx)] as const));
  return Object.fromEntries(all.filter(([, faults]) => faults.length > 0));
}

test("all invariants of jobs hold on an empty server, during work, after it and after a shutdown", async () => {
  expect(await findings()).toEqual({});
  const { commands } = server.ctx.redis;
  const worker = server.worker();
  await worker.start();
  const uids = Array.from({ length: 5 }, () => newUid("jp"));
  for (const jobUid of uids) await server.jobs.enqueue(count, {}, { jobUid });
  await server.jobs.enqueueMany(count, [{}, { fail: true }, {}]);
  expect(await findings()).toEqual({});
  await eventually(async () => (await commands.zcard(jobKeys.delayed())) === 1, "the failing job waits for its retry");
  for (const uid of uids)
    await eventually(async () => (await server.jobs.progress.read(uid))?.done, "every watched job is done");
  const isFailed = async () => (await commands.llen(jobKeys.failed())) === 1;
  await passTimeUntil(server.ctx, isFailed, { limit: 70, what: "the retry's failure" });
  expect(await findings()).toEqual({});
  await worker.stop();
  expect(await findings()).toEqual({});
  expect(await commands.exists(jobKeys.recurring())).toBe(1);
});

test("an entry that is no job is found in every queue, also far behind its head", async () => {
  const { commands } = server.ctx.redis;
  const entry = server.jobs.encode(count, {});
  await commands.rpush(jobKeys.hot(), ...Array.from({ length: 1500 }, () => entry), "not a job");
  await commands.rpush(jobKeys.hotByCategory({ category: 2 }), entry, '{"name":"runners.test.count"}');
  expect(await findings()).toEqual({
    "jobs:entries_are_jobs": ["jobs:hot holds not a job", 'jobs:hot:2 holds {"name":"runners.test.count"}'],
  });
});

test("a worker without its hash, a hash without its worker, and entries that nobody holds are found", async () => {
  const { commands } = server.ctx.redis;
  await commands.zadd(jobKeys.workers(), 1, "crl_wrk_one");
  await commands.hset(jobKeys.worker({ worker_uid: "crl_wrk_two" }), "host", "alpha");
  await commands.hset(jobKeys.running({ worker_uid: "crl_wrk_three" }), "1", server.jobs.encode(count, {}));
  expect(await findings()).toEqual({
    "jobs:workers_are_whole": [
      "worker crl_wrk_one has no hash",
      "the hash of worker crl_wrk_two has no member",
      "crl_wrk_three holds entries and is not registered",
    ],
  });
});

test("a schedule without its hash, a hash without schedule, and a job in both places are found", async () => {
  const { commands } = server.ctx.redis;
  const found = async () => (await findings())["rjobs:schedule_is_whole"];
  await commands.zadd(jobKeys.recurring(), 60, "1");
  expect(await found()).toEqual(["the schedule has no rjobs:hash"]);
  await commands.set(jobKeys.recurringHash(), "7");
  expect(await found()).toBeUndefined();
  await commands.sadd(jobKeys.recurringPurgatory(), "1");
  expect(await found()).toEqual(["1 is scheduled and in purgatory"]);
  await commands.del(jobKeys.recurring(), jobKeys.recurringPurgatory());
  expect(await found()).toEqual(["rjobs:hash exists without a schedule"]);
});

test("more progress than is kept, or than was ever told, is found", async () => {
  const { commands } = server.ctx.redis;
  for (let n = 0; n < 60; n++)
    await server.jobs.progress.push("crl_jp_one", { type: "spawned", message: "", indicator: null });
  expect(await findings()).toEqual({});
  await commands.rpush(jobKeys.progressEvents({ job_uid: "crl_jp_one" }), "{}");
  await commands.rpush(jobKeys.progressEvents({ job_uid: "crl_jp_two" }), "{}", "{}");
  await commands.set(jobKeys.progressCount({ job_uid: "crl_jp_two" }), 1);
  const faults = (await findings())["jobs:progress_is_bounded"];
  expect([...faults!].sort()).toEqual(["crl_jp_one keeps 51 events of 60", "crl_jp_two keeps 2 events of 1"]);
});

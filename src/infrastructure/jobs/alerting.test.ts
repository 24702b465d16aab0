import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { type JobContext, jobKeys } from "../../jobs/index.ts";
import { quarantineKeys } from "../../mechanisms/quarantine/index.ts";
import { checkQueues, checkRedis } from "./jobs.ts";

let world: TestContext;
beforeAll(async () => {
  world = await openTestContext();
});
afterAll(() => world.close());
beforeEach(() => world.flush());

/** What a check warns about, by a process that starts with no warnings. */
async function warningsOf(check: typeof checkQueues, ctx = world.process()) {
  const before = ctx.alerts.recorded.length;
  await check.run!(ctx as unknown as JobContext, {});
  return ctx.alerts.recorded.slice(before);
}
const identifiers = async (...args: Parameters<typeof warningsOf>) =>
  (await warningsOf(...args)).map(({ identifier }) => identifier);

const job = (queuedAt: number) =>
  JSON.stringify({ name: "runners.example", kwargs: { message: "hello" }, queued_at: queuedAt });

describe("the check of queues", () => {
  it("is silent while everything is in order", async () => {
    await world.redis.commands.rpush(jobKeys.hot(), job(world.clock.now()));
    await world.redis.commands.zadd(jobKeys.recurring(), world.clock.now() + 60, "1");
    expect(await warningsOf(checkQueues)).toEqual([]);
  });

  it("warns of a queue with more than 1000 jobs, and of one whose head waits for more than 300 s", async () => {
    const now = world.clock.now();
    await world.redis.commands.rpush(jobKeys.hot(), ...Array.from({ length: 1001 }, () => job(now)));
    expect(await identifiers(checkQueues)).toEqual(["jobs:queue_long"]);
    await world.redis.commands.ltrim(jobKeys.hot(), 0, 0);
    await world.clock.advance(301);
    expect(await identifiers(checkQueues)).toEqual(["jobs:queue_old"]);
  });

  it("warns of a category that no worker accepts, until one does", async () => {
    const now = world.clock.now();
    await world.redis.commands.rpush(jobKeys.hotByCategory({ category: 1 }), job(now));
    expect(await identifiers(checkQueues)).toEqual(["jobs:category_unserved"]);
    const worker = { worker_uid: "crl_wrk_test" };
    await world.redis.commands.zadd(jobKeys.workers(), now, worker.worker_uid);
    const fields = jobKeys.worker.codec.encode({
      host: "alpha",
      pid: 1,
      instance: "1",
      version: "test",
      categories: "2,1",
      concurrency: 4,
      started_at: now,
      running: [],
    });
    await world.redis.commands.hset(jobKeys.worker(worker), ...fields);
    expect(await warningsOf(checkQueues)).toEqual([]);
  });

  it("warns of quarantined entries and of overdue recurring jobs", async () => {
    await world.redis.commands.rpush(quarantineKeys.entries({ queue: "sms:to_send" }), "{}");
    await world.redis.commands.zadd(jobKeys.recurring(), world.clock.now() - 121, "1");
    const warnings = await warningsOf(checkQueues);
    expect(warnings.map(({ identifier }) => identifier)).toEqual(["jobs:quarantine", "rjobs:overdue"]);
    expect(warnings[0]?.text).toContain("sms:to_send");
  });

  it("warns of recurring jobs that hang between schedule and queue", async () => {
    await world.redis.commands.sadd(jobKeys.recurringPurgatory(), "1", "2");
    const ctx = world.process();
    expect(await warningsOf(checkQueues, ctx)).toEqual([]);
    await world.redis.commands.sadd(jobKeys.recurringPurgatory(), "3");
    const warnings = await warningsOf(checkQueues, ctx);
    expect(warnings).toMatchObject([{ identifier: "rjobs:purgatory", text: expect.stringContaining("2 recurring") }]);
  });

  it("warns when more than 1000 jobs have failed", async () => {
    await world.redis.commands.rpush(jobKeys.failed(), ...Array.from({ length: 1001 }, () => "{}"));
    expect(await identifiers(checkQueues)).toEqual(["jobs:failed"]);
  });
});

describe("the check of Redis", () => {
  it("warns of memory above four fifths of its limit, and urgently of a policy that may evict queues", async () => {
    const { commands } = world.redis;
    expect(await warningsOf(checkRedis)).toEqual([]);
    const used = Number(/^used_memory:(\d+)/m.exec(await commands.info("memory"))?.[1]);
    await commands.config("SET", "maxmemory", String(Math.round(used * 1.1)));
    await commands.config("SET", "maxmemory-policy", "allkeys-lru");
    try {
      const warnings = await warningsOf(checkRedis);
      expect(warnings).toEqual([
        expect.objectContaining({ identifier: "redis:memory", level: "warning" }),
        expect.objectContaining({ identifier: "redis:policy", level: "urgent" }),
      ]);
    } finally {
      await commands.config("SET", "maxmemory", "0");
      await commands.config("SET", "maxmemory-policy", "noeviction");
    }
  });

  it("warns of lookups that find nothing since its last check, once there are a hundred thousand", async () => {
    const ctx = world.process();
    const lookUp = (count: number) => ctx.redis.commands.mget(Array.from({ length: count }, (_, i) => `missing:${i}`));
    expect(await identifiers(checkRedis, ctx)).toEqual([]);
    await lookUp(90_000);
    expect(await identifiers(checkRedis, ctx)).toEqual([]);
    await lookUp(100_000);
    expect(await identifiers(checkRedis, ctx)).toEqual(["redis:hit_ratio"]);
  });

  it("warns of slow commands since its last check", async () => {
    const ctx = world.process();
    await identifiers(checkRedis, ctx);
    await ctx.redis.commands.config("SET", "slowlog-log-slower-than", "0");
    await ctx.redis.commands.ping();
    await ctx.redis.commands.config("SET", "slowlog-log-slower-than", "10000000");
    expect(await identifiers(checkRedis, ctx)).toEqual(["redis:slow"]);
    expect(await identifiers(checkRedis, ctx)).toEqual([]);
  });
});

import { z } from "zod";
import { readQueues } from "../../jobs/admin.ts";
import { defineRunner, type JobContext, jobKeys, recurring } from "../../jobs/index.ts";
import { quarantinedQueues } from "../../mechanisms/quarantine/index.ts";
import { settings } from "./settings.ts";

const QUEUE_LENGTH_LIMIT = 1000;
const QUEUE_AGE_LIMIT = 300;
const FAILED_LIMIT = 1000;
const RECURRING_LATE_LIMIT = 120;
const MEMORY_LIMIT = 0.8;
const HIT_RATIO_LIMIT = 0.7;
/** Looking into empty queues counts as missing too, and an idle house does so a few thousand times between two checks. */
const LOOKUPS_THAT_COUNT = 100_000;

export const example = defineRunner({
  name: "runners.example",
  category: 2,
  doc: "Logs a message: the heartbeat of queue and schedule from end to end.",
  kwargs: z.object({ message: z.string().max(1000).default("hello") }),
  async run(ctx, { message }) {
    ctx.log.info({ message }, "example job");
  },
});

export const checkQueues = defineRunner({
  name: "runners.alerting.check_queues",
  category: 2,
  doc: "Warns when queues grow or age, when nobody serves a category, and when something is stuck.",
  kwargs: z.object({}),
  async run(ctx) {
    const now = ctx.clock.now();
    const { queues, failed, workers_by_category } = await readQueues(ctx);
    for (const { key, length, oldest_queued_at } of queues) {
      if (length > QUEUE_LENGTH_LIMIT) ctx.alerts.warning("jobs:queue_long", `${key} holds ${length} jobs`);
      const age = oldest_queued_at === null ? 0 : now - oldest_queued_at;
      if (age > QUEUE_AGE_LIMIT)
        ctx.alerts.warning("jobs:queue_old", `the head of ${key} waits for ${Math.round(age)} s`);
      const category = /:([12])$/.exec(key)?.[1];
      if (category !== undefined && length > 0 && workers_by_category[category] === 0)
        ctx.alerts.warning(
          "jobs:category_unserved",
          `${key} holds ${length} jobs and no worker accepts category ${category}`,
        );
    }
    if (failed > FAILED_LIMIT) ctx.alerts.warning("jobs:failed", `${failed} jobs have failed and wait for a decision`);
    const quarantined = await quarantinedQueues(ctx);
    for (const { queue, length } of quarantined)
      ctx.alerts.warning("jobs:quarantine", `${length} unreadable entries of ${queue} wait for a decision`);
    await checkRecurring(ctx, now);
  },
});

async function checkRecurring(ctx: JobContext, now: number): Promise<void> {
  const { commands, topology } = ctx.redis;
  const [late, purgatory] = await Promise.all([
    commands.zcount(topology.key(jobKeys.recurring()), "-inf", now - RECURRING_LATE_LIMIT),
    commands.smembers(topology.key(jobKeys.recurringPurgatory())),
  ]);
  if (late > 0)
    ctx.alerts.warning("rjobs:overdue", `${late} recurring jobs are more than ${RECURRING_LATE_LIMIT} s late`);
  const before = dispatching.get(commands) ?? new Set();
  dispatching.set(commands, new Set(purgatory));
  const stuck = purgatory.filter((digest) => before.has(digest));
  if (stuck.length > 0)
    ctx.alerts.warning("rjobs:purgatory", `${stuck.length} recurring jobs are stuck between schedule and queue`);
}

/** Recurring jobs that the last check saw being dispatched: normal once, stuck when seen twice. */
const dispatching = new WeakMap<object, ReadonlySet<string>>();

interface RedisSample {
  readonly hits: number;
  readonly misses: number;
  readonly slowId: number;
}

/** What the last check saw. A process that checks for the first time has nothing to compare with. */
const samples = new WeakMap<object, RedisSample>();

export const checkRedis = defineRunner({
  name: "runners.alerting.check_redis",
  category: 2,
  doc: "Warns about memory, cache hits, clients, slow commands and an eviction policy that could drop queues.",
  kwargs: z.object({}),
  async run(ctx) {
    const { commands } = ctx.redis;
    const [memory, stats, clients, slow] = await Promise.all([
      commands.info("memory"),
      commands.info("stats"),
      commands.info("clients"),
      commands.slowlog("GET", 1) as Promise<[number, ...unknown[]][]>,
    ]);
    const number = (text: string, field: string) => Number(new RegExp(`^${field}:(\\d+)`, "m").exec(text)?.[1] ?? 0);
    const [used, limit] = [number(memory, "used_memory"), number(memory, "maxmemory")];
    if (limit > 0 && used > MEMORY_LIMIT * limit)
      ctx.alerts.warning("redis:memory", `Redis uses ${Math.round((100 * used) / limit)} % of its memory`);
    const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1] ?? "";
    if (policy.startsWith("allkeys-"))
      ctx.alerts.warning("redis:policy", `maxmemory-policy is ${policy}: Redis may evict queues`, { urgent: true });
    const connected = number(clients, "connected_clients");
    if (connected > ctx.config.get(settings.redisClients))
      ctx.alerts.warning("redis:clients", `${connected} clients are connected`);
    const now = {
      hits: number(stats, "keyspace_hits"),
      misses: number(stats, "keyspace_misses"),
      slowId: slow[0]?.[0] ?? -1,
    };
    const before = samples.get(commands);
    samples.set(commands, now);
    if (!before) return;
    const [hits, misses] = [now.hits - before.hits, now.misses - before.misses];
    if (hits + misses >= LOOKUPS_THAT_COUNT && hits / (hits + misses) < HIT_RATIO_LIMIT)
      ctx.alerts.warning("redis:hit_ratio", `${Math.round((100 * hits) / (hits + misses))} % of lookups found a key`);
    if (now.slowId > before.slowId)
      ctx.alerts.warning(
        "redis:slow",
        `slow commands since the last check: ${now.slowId - before.slowId}; see SLOWLOG GET`,
      );
  },
});

export const runners = [example, checkQueues, checkRedis];

export const recurringJobs = [
  recurring(example, { message: "the queue is alive" }, { seconds: [0] }),
  recurring(checkQueues, {}, { seconds: [45] }),
  recurring(checkRedis, {}, { seconds: [50] }),
];

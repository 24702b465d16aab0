import { Worker as PeerWorker, Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import {
  type Context,
  defineRunner,
  JobQueue,
  jobKeys,
  jobSettings,
  RecurringSet,
  Worker,
} from "../../src/jobs/index.ts";
import { AlertRecorder } from "../../src/kernel/alerts.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { Config } from "../../src/kernel/config.ts";
import { Catalogue } from "../../src/kernel/keyspace/index.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { Metrics } from "../../src/kernel/metrics.ts";
import type { RedisConnection, Subscriber } from "../../src/kernel/redis/index.ts";
import type { Sql } from "../../src/kernel/sql/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import type { Providers } from "../../src/providers/index.ts";
import { measure, perSecond, type Row, runBench, temporaryRedis } from "../kit.ts";
import { graphileWorker } from "./graphile.ts";

const PEER = "BullMQ 6";
const ROUNDS = 3;
const SEQUENTIAL = 3_000;
const CONCURRENT = 20_000;
const BULK = 50_000;
const PROCESSED = 40_000;
const PROCESSED_ALONE = 10_000;
const LATENCIES = 2_000;
/** Adds that are not counted, because a worker that has just started is not yet at rest. */
const WARM_UP = 500;

/** About 150 bytes of kwargs, the size of a message that a callback passes on. */
export const kwargsOf = (n: number) => ({
  message_uid: `crl_sms_${String(n).padStart(22, "0")}`,
  user_sub: "crl_us_abcdefghijklmnopqrstuv",
  channel: "sms",
  attempt: 1,
  text: "Your class starts in ten minutes.",
});

interface Side {
  /** Adds one job after the other. */
  addOneByOne(count: number): Promise<void>;
  addConcurrently(count: number): Promise<void>;
  addBulk(count: number): Promise<void>;
  /** Runs everything queued; resolves when `count` jobs ran and each was settled. Answers how often a job ran. */
  process(count: number, concurrency: number): Promise<number>;
  /** Milliseconds from the start of an add to the start of its run, one at a time on an idle worker. */
  latencies(count: number): Promise<number[]>;
  clear(): Promise<void>;
}

export async function run(): Promise<void> {
  const redis = await temporaryRedis();
  try {
    const sides = { ours: carillon(await redis.connect()), peer: bullmq(redis.socketPath) };
    const rows: Row[] = [];
    const compare = async (metric: string, count: number, work: (side: Side, count: number) => Promise<unknown>) => {
      const round = (side: Side) => async () => {
        const rate = await perSecond(count, () => work(side, count));
        await side.clear();
        return rate;
      };
      rows.push(
        await measure(ROUNDS, {
          metric,
          unit: "jobs/s",
          peerName: PEER,
          ours: round(sides.ours),
          peer: round(sides.peer),
        }),
      );
    };
    await compare("add one by one", SEQUENTIAL, (side, count) => side.addOneByOne(count));
    await compare("add concurrently", CONCURRENT, (side, count) => side.addConcurrently(count));
    await compare("add in bulk", BULK, (side, count) => side.addBulk(count));
    for (const concurrency of [1, 32, 50]) rows.push(await processing(sides, concurrency));
    rows.push(...(await latency(sides)));
    const graphile = await graphileWorker(PROCESSED_ALONE);
    runBench("jobs", "Jobs: Carillon and BullMQ on the same Redis", rows, {
      kwargs_bytes: JSON.stringify(kwargsOf(1)).length,
      counts: { SEQUENTIAL, CONCURRENT, BULK, PROCESSED, PROCESSED_ALONE, LATENCIES },
      graphile,
    });
    console.log(graphile.text);
  } finally {
    await redis.close();
  }
}

async function processing(sides: { ours: Side; peer: Side }, concurrency: number): Promise<Row> {
  const count = concurrency === 1 ? PROCESSED_ALONE : PROCESSED;
  const round = (side: Side) => async () => {
    await side.addBulk(count);
    let runs = 0;
    const rate = await perSecond(count, async () => {
      runs = await side.process(count, concurrency);
    });
    if (runs !== count) throw new Error(`${count} jobs were queued and ${runs} runs were counted`);
    await side.clear();
    return rate;
  };
  return measure(ROUNDS, {
    metric: `process, concurrency ${concurrency}`,
    unit: "jobs/s",
    peerName: PEER,
    ours: round(sides.ours),
    peer: round(sides.peer),
  });
}

async function latency(sides: { ours: Side; peer: Side }): Promise<Row[]> {
  const samples = { ours: [] as number[], peer: [] as number[] };
  for (let round = 0; round < ROUNDS; round++)
    for (const name of round % 2 === 0 ? (["ours", "peer"] as const) : (["peer", "ours"] as const)) {
      samples[name].push(...(await sides[name].latencies(WARM_UP + LATENCIES)).slice(WARM_UP));
      await sides[name].clear();
    }
  return [50, 99].map((percent) => {
    const [ours, peer] = [percentile(samples.ours, percent), percentile(samples.peer, percent)];
    const metric = `add to start, p${percent}`;
    return {
      metric,
      unit: "ms",
      ours,
      peer,
      peerName: PEER,
      ratio: peer / ours,
      rounds: { ours: [ours], peer: [peer] },
    };
  });
}

/** Lets the worker settle the last job and go back to waiting: the latency of a system at rest is what people feel. */
const rest = () => new Promise((resolve) => setTimeout(resolve, 1));

function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]!;
}

function carillon(redis: RedisConnection): Side {
  const seen = new Set<string>();
  let runs = 0;
  let onRun = (_uid: string) => {};
  const runner = defineRunner({
    name: "runners.bench",
    category: 2,
    doc: "does nothing, so that only the job system is measured",
    kwargs: z.object({
      message_uid: z.string(),
      user_sub: z.string(),
      channel: z.string(),
      attempt: z.int(),
      text: z.string(),
    }),
    async run(_ctx, { message_uid }) {
      runs += 1;
      seen.add(message_uid);
      onRun(message_uid);
    },
  });
  const open = (concurrency: number) => {
    const base = {
      clock: systemClock,
      config: new Config([]).with([jobSettings.concurrency, concurrency]),
      log: silentLog,
      alerts: new AlertRecorder(),
      metrics: new Metrics(),
      redis,
      cacheRedis: redis,
      subscriber: undefined as unknown as Subscriber,
      sql: undefined as unknown as Sql,
      hostname: "jobs-bench-1",
    };
    const jobs = new JobQueue(base, { runners: [runner], recurring: new RecurringSet([], "UTC") });
    const ctx: Context = {
      ...base,
      jobs,
      locks: new Locks(base),
      catalogue: new Catalogue([]),
      providers: {} as Providers,
    };
    return { jobs, worker: new Worker(ctx, jobs, { version: "bench", instance: "1", heartbeat: "thread" }) };
  };
  const { jobs } = open(1);
  return {
    async addOneByOne(count) {
      for (let n = 0; n < count; n++) await jobs.enqueue(runner, kwargsOf(n));
    },
    async addConcurrently(count) {
      await Promise.all(Array.from({ length: count }, (_, n) => jobs.enqueue(runner, kwargsOf(n))));
    },
    addBulk: (count) =>
      jobs.enqueueMany(
        runner,
        Array.from({ length: count }, (_, n) => kwargsOf(n)),
      ),
    async process(count, concurrency) {
      runs = 0;
      seen.clear();
      const { worker } = open(concurrency);
      const all = new Promise<void>((resolve) => {
        onRun = () => {
          if (seen.size === count) resolve();
        };
      });
      await worker.start();
      await all;
      // Stopping settles everything: afterwards nothing is held, so each job ran and was finished.
      await worker.stop();
      if ((await redis.commands.exists(jobKeys.running({ worker_uid: worker.uid }))) === 1)
        throw new Error("entries were left behind");
      return runs;
    },
    async latencies(count) {
      const { jobs: queue, worker } = open(1);
      await worker.start();
      const result: number[] = [];
      for (let n = 0; n < count; n++) {
        const started = performance.now();
        const ran = new Promise<void>((resolve) => {
          onRun = () => {
            result.push(performance.now() - started);
            resolve();
          };
        });
        await queue.enqueue(runner, kwargsOf(n));
        await ran;
        await rest();
      }
      await worker.stop();
      return result;
    },
    clear: async () => {
      await redis.commands.flushall();
    },
  };
}

function bullmq(socketPath: string): Side {
  const connect = () => new Redis({ path: socketPath, maxRetriesPerRequest: null });
  const connection = connect();
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });
  const serve = (concurrency: number, onRun: (uid: string) => void) =>
    new PeerWorker(
      "bench",
      async (job) => {
        onRun(job.data.message_uid);
      },
      { connection: connect(), concurrency },
    );
  return {
    async addOneByOne(count) {
      for (let n = 0; n < count; n++) await queue.add("bench", kwargsOf(n));
    },
    async addConcurrently(count) {
      await Promise.all(Array.from({ length: count }, (_, n) => queue.add("bench", kwargsOf(n))));
    },
    async addBulk(count) {
      const items = Array.from({ length: count }, (_, n) => ({ name: "bench", data: kwargsOf(n) }));
      // In thousands, as its documentation advises; one call with everything is slower.
      for (let start = 0; start < count; start += 1000) await queue.addBulk(items.slice(start, start + 1000));
    },
    async process(count, concurrency) {
      let runs = 0;
      const seen = new Set<string>();
      let worker!: PeerWorker;
      await new Promise<void>((resolve) => {
        worker = serve(concurrency, (uid) => {
          runs += 1;
          seen.add(uid);
          if (seen.size === count) resolve();
        });
      });
      await worker.close();
      return runs;
    },
    async latencies(count) {
      let onRun = () => {};
      const worker = serve(1, () => onRun());
      await worker.waitUntilReady();
      const result: number[] = [];
      for (let n = 0; n < count; n++) {
        const started = performance.now();
        const ran = new Promise<void>((resolve) => {
          onRun = () => {
            result.push(performance.now() - started);
            resolve();
          };
        });
        await queue.add("bench", kwargsOf(n));
        await ran;
        await rest();
      }
      await worker.close();
      return result;
    },
    clear: async () => {
      await connection.flushall();
    },
  };
}

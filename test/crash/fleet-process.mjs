// A worker in a process of its own, for tests that send it real signals. It runs the compiled code; its one argument is
// JSON: { socket, settings, mode }. It writes a line when it is ready, and leaves with status 0 when it is told to stop.
import { writeSync } from "node:fs";
import { Worker as Thread } from "node:worker_threads";
import { z } from "zod";
import { defineRunner, JobQueue, jobKeys, jobSettings, RecurringSet, Worker } from "../../dist/jobs/index.js";
import { beat } from "../../dist/jobs/scripts.js";
import { AlertRecorder } from "../../dist/kernel/alerts.js";
import { systemClock } from "../../dist/kernel/clock.js";
import { Config } from "../../dist/kernel/config.js";
import { silentLog } from "../../dist/kernel/log.js";
import { Metrics } from "../../dist/kernel/metrics.js";
import { openRedis } from "../../dist/kernel/redis/index.js";
import { Locks } from "../../dist/mechanisms/lock/index.js";

const { socket, settings = {}, mode = "work" } = JSON.parse(process.argv[2]);
const say = (line) => writeSync(1, `${line}\n`);
const redis = openRedis({ kind: "socket", path: socket });
const kwargs = z.object({ n: z.number() });

/** Counts its runs where the test can see them. When Redis is away its own command fails too, so it is tried again. */
const counted = defineRunner({
  name: "runners.counted",
  category: 2,
  doc: "of a test",
  kwargs,
  retry: [1, 1, 1],
  run: async (ctx, { n }) => void (await ctx.redis.commands.hincrby("test:ran", String(n), 1)),
});

/** Ends only when it is told to, or at once when another worker has died over it. */
const sleepy = defineRunner({
  name: "runners.sleepy",
  category: 2,
  doc: "of a test",
  kwargs,
  run: async (ctx, { n }) => {
    await ctx.redis.commands.rpush("test:started", `${n}:${ctx.job.deliveries}`);
    if (ctx.job.deliveries === 0 && !(await ctx.sleep(1000))) throw new Error("interrupted");
  },
});

async function work() {
  const sql = {
    tables: () => {
      throw new Error("this process has no SQL engine");
    },
  };
  const chosen = Object.entries(settings).map(([name, value]) => [jobSettings[name], value]);
  const base = {
    clock: systemClock,
    config: new Config([]).with(...chosen),
    log: silentLog,
    alerts: new AlertRecorder(),
    metrics: new Metrics(),
    redis,
    sql,
    hostname: `host-${process.pid}`,
  };
  const jobs = new JobQueue(base, { runners: [counted, sleepy], recurring: new RecurringSet([], "UTC") });
  const ctx = { ...base, jobs, locks: new Locks(base), providers: {} };
  const worker = new Worker(ctx, jobs, { version: "test", instance: "1", heartbeat: "thread" });
  await worker.start();
  process.on("SIGTERM", async () => {
    await worker.stop();
    process.exit(0);
  });
  say(`ready ${worker.uid}`);
}

/** The main loop hangs for good while the heartbeat's thread goes on, with shorter times than in earnest. */
async function hang() {
  const workerUid = "crl_wrk_hanging";
  await redis.commands.zadd(jobKeys.workers(), 1, workerUid);
  const thread = new Thread(new URL("../../dist/jobs/heartbeat-thread.mjs", import.meta.url), {
    workerData: {
      redis: { path: socket },
      lua: beat.lua,
      keys: [jobKeys.workers(), jobKeys.worker({ worker_uid: workerUid })],
      workerUid,
      intervalMs: 100,
      hangMs: 1500,
      shared: new SharedArrayBuffer(4),
    },
  });
  await new Promise((resolve) => thread.once("online", resolve));
  await systemClock.sleep(0.3);
  say("hanging");
  for (;;);
}

await (mode === "hang" ? hang() : work());

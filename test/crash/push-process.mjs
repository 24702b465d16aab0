// A worker of notifications in a process of its own, for tests that kill it. It runs the compiled code; its one argument
// is JSON: { socket, expo, hold }. `hold` stops it for good at its first request: "before" it goes out, or "after" the
// provider answered. It writes a line when it is ready, when it holds, and for every warning it raises.
import { writeSync } from "node:fs";
import { z } from "zod";
import { defineRunner, JobQueue, RecurringSet, Worker } from "../../dist/jobs/index.js";
import { systemClock } from "../../dist/kernel/clock.js";
import { Config } from "../../dist/kernel/config.js";
import { silentLog } from "../../dist/kernel/log.js";
import { Metrics } from "../../dist/kernel/metrics.js";
import { openRedis } from "../../dist/kernel/redis/index.js";
import { Locks } from "../../dist/mechanisms/lock/index.js";
import { push } from "../../dist/messaging/push/index.js";
import { settings } from "../../dist/messaging/push/settings.js";
import { PushChannel } from "../../dist/providers/channels.js";
import { ExpoPush } from "../../dist/providers/expo.js";

const { socket, expo, hold } = JSON.parse(process.argv[2]);
const say = (line) => writeSync(1, `${line}\n`);
const alerts = { warning: (identifier) => say(`warning ${identifier}`), error: () => {} };

/** Notes where the test can see it how often each notification succeeded. */
const succeeded = defineRunner({
  name: "runners.test.success",
  category: 2,
  doc: "of a test",
  kwargs: z.looseObject({ data_raw: z.string() }),
  run: async (ctx, { who }) => void (await ctx.redis.commands.hincrby("test:succeeded", String(who), 1)),
});

const base = {
  clock: systemClock,
  config: new Config([]).with([settings.receiptDelay, 0]),
  log: silentLog,
  alerts,
  metrics: new Metrics(),
  redis: openRedis({ kind: "socket", path: socket }),
  sql: {
    tables: () => {
      throw new Error("this process has no SQL engine");
    },
  },
  hostname: `host-${process.pid}`,
};
const client = new ExpoPush({ ...base, baseUrl: expo, timeout: 20, userAgent: "carillon/test" });
const channel = new PushChannel(base, [client]);
const send = channel.send.bind(channel);
const forever = (line) => {
  say(line);
  return new Promise(() => {});
};
if (hold === "before") channel.send = () => forever("holding");
if (hold === "after") channel.send = (messages) => send(messages).then(() => forever("holding"));

const jobs = new JobQueue(base, { runners: [...push.runners, succeeded], recurring: new RecurringSet([], "UTC") });
const ctx = { ...base, jobs, locks: new Locks(base), providers: { push: channel } };
const worker = new Worker(ctx, jobs, { version: "test", instance: "1", heartbeat: "inline" });
await worker.start();
process.on("SIGTERM", async () => {
  await worker.stop();
  process.exit(0);
});
say("ready");

// Beats from a thread of its own, so that a busy main loop is not mistaken for a dead worker. If the main loop has not
// ticked for too long it really hangs, and this thread ends the process so that others can take over its jobs.
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { Redis } from "ioredis";

const { redis: options, lua, keys, workerUid, intervalMs, hangMs, shared } = workerData;
const ticks = new Int32Array(shared);
const redis = new Redis({ ...options, lazyConnect: false, maxRetriesPerRequest: null, enableAutoPipelining: false });
redis.on("error", () => {});
let running = "[]";
let lastTick = Atomics.load(ticks, 0);
let lastTickAt = performance.now();

parentPort.on("message", (message) => {
  running = message;
});

setInterval(async () => {
  const tick = Atomics.load(ticks, 0);
  if (tick !== lastTick) {
    lastTick = tick;
    lastTickAt = performance.now();
  } else if (performance.now() - lastTickAt > hangMs) {
    // A thread's own stderr goes through the main loop, which would never print it.
    writeSync(2, `carillon: the main loop has not moved for ${Math.round(hangMs / 1000)} s; ending the process\n`);
    process.kill(process.pid, "SIGKILL");
  }
  try {
    const alive = await redis.eval(lua, keys.length, ...keys, workerUid, Date.now() / 1000, running);
    if (alive === 0) parentPort.postMessage("dead");
  } catch {
    // The next beat tries again; after a minute without one, others bury this worker, and rightly so.
  }
}, intervalMs);

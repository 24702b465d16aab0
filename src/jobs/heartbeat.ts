import { Worker as Thread } from "node:worker_threads";
import type { Context } from "./context.ts";
import { jobKeys } from "./keys.ts";
import { beat } from "./scripts.ts";

export const BEAT_SECONDS = 5;
const HANG_SECONDS = 300;

export interface Heartbeat {
  stop(): Promise<void>;
}

interface HeartbeatPlan {
  readonly ctx: Context;
  readonly workerUid: string;
  /** What the worker runs, as the JSON that the worker hash shows. */
  running(): string;
  declaredDead(): void;
}

/** Beats on the context's clock: for tests, and for processes that cannot have threads. */
export function inlineHeartbeat({ ctx, workerUid, running, declaredDead }: HeartbeatPlan): Heartbeat {
  const parameters = { worker_uid: workerUid };
  const stop = ctx.clock.every(BEAT_SECONDS, async () => {
    try {
      const alive = await ctx.redis.run(
        beat,
        [jobKeys.workers(), jobKeys.worker(parameters)],
        [workerUid, ctx.clock.now(), running()],
      );
      if (alive === 0) declaredDead();
    } catch (error) {
      ctx.log.warn({ err: error }, "a heartbeat did not arrive");
    }
  });
  return { stop: async () => stop() };
}

/** Beats from a thread of its own, which also ends the process when its main loop hangs. */
export function threadHeartbeat({ ctx, workerUid, running, declaredDead }: HeartbeatPlan): Heartbeat {
  const shared = new SharedArrayBuffer(4);
  const ticks = new Int32Array(shared);
  const { host, port, path, username, password, db, sentinels, name, tls } = ctx.redis.commands.options;
  const thread = new Thread(new URL("./heartbeat-thread.mjs", import.meta.url), {
    workerData: {
      redis: JSON.parse(JSON.stringify({ host, port, path, username, password, db, sentinels, name, tls })),
      lua: beat.lua,
      keys: ctx.redis.topology.scriptKeys([jobKeys.workers(), jobKeys.worker({ worker_uid: workerUid })]),
      workerUid,
      intervalMs: BEAT_SECONDS * 1000,
      hangMs: HANG_SECONDS * 1000,
      shared,
    },
  });
  thread.unref();
  thread.on("message", declaredDead);
  thread.on("error", (error) => ctx.alerts.error(error, "the heartbeat thread ended"));
  const stopTicking = ctx.clock.every(1, () => {
    Atomics.add(ticks, 0, 1);
    thread.postMessage(running());
  });
  return {
    async stop() {
      stopTicking();
      await thread.terminate();
    },
  };
}

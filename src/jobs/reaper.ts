import type { Context } from "./context.ts";
import { parseEntry, reencodeJob } from "./entry.ts";
import type { JobMetrics } from "./job-metrics.ts";
import { jobKeys } from "./keys.ts";
import { buryWorker } from "./scripts.ts";
import { failureText, pushedAgain } from "./settler.ts";

const DEFAULT_MAX_DELIVERIES = 3;

/**
 * Buries workers that fell silent. Each entry they held goes back to the front of the queue with one delivery more, or
 * counts as poison when it has outlived too many workers. The script compares once more, so any number of reapers may
 * try at the same time.
 */
export async function reapSilentWorkers(ctx: Context, deadAfter: number, metrics?: JobMetrics): Promise<number> {
  const { commands, topology } = ctx.redis;
  const deadBefore = ctx.clock.now() - deadAfter;
  const silent = await commands.zrangebyscore(topology.key(jobKeys.workers()), "-inf", `(${deadBefore}`);
  let buried = 0;
  for (const uid of silent) if (await bury(ctx, uid, deadBefore, metrics)) buried++;
  return buried;
}

async function bury(ctx: Context, uid: string, deadBefore: number, metrics?: JobMetrics): Promise<boolean> {
  const runningKey = jobKeys.running({ worker_uid: uid });
  const held = await ctx.redis.commands.hgetall(ctx.redis.topology.key(runningKey));
  const now = ctx.clock.now();
  const items = Object.entries(held)
    .sort(([a], [b]) => Number(b) - Number(a))
    .map(([number, raw]) => ({ number, ...fateOf(ctx, raw, uid, now) }));
  const done = await ctx.redis.run(
    buryWorker,
    [
      jobKeys.workers(),
      jobKeys.worker({ worker_uid: uid }),
      runningKey,
      jobKeys.hot(),
      jobKeys.failed(),
      jobKeys.recurringQueued(),
    ],
    [uid, deadBefore, now, ...items.flatMap((item) => [item.number, ...item.fate])],
  );
  if (done !== 1) return false;
  ctx.alerts.warning("worker:buried", `worker ${uid} fell silent; ${items.length} of its jobs were settled`);
  for (const { name } of items) metrics?.count(name, "crashed");
  return true;
}

function fateOf(ctx: Context, raw: string, worker: string, now: number) {
  const parsed = parseEntry(raw);
  // Whoever takes it next sets it aside, as with any entry that is not a job.
  if (!parsed.ok) return { name: "malformed", fate: ["front", raw, "", 0] };
  const { job } = parsed;
  const deliveries = (job.deliveries ?? 0) + 1;
  const limit = ctx.jobs.runners.get(job.name)?.maxDeliveries ?? DEFAULT_MAX_DELIVERIES;
  const marker = [job.rjob ?? "", job.queued_at];
  if (deliveries < limit)
    return {
      name: job.name,
      fate: ["front", reencodeJob({ ...job, ...pushedAgain(job, now), deliveries }), ...marker],
    };
  const error = `${deliveries} workers died while they ran it`;
  return { name: job.name, fate: ["failed", failureText(raw, "crashed", error, worker, deliveries, now), ...marker] };
}

import type { Context } from "./context.ts";
import { type FailedJob, type JobEntry, parseEntry, reencodeJob } from "./entry.ts";
import { jobErrors } from "./errors.ts";
import { jobKeys } from "./keys.ts";
import type { JobQueue } from "./queue.ts";
import type { Schedule } from "./recurring.ts";
import { nextRun } from "./schedule.ts";
import { retryFailed } from "./scripts.ts";

/** What operators see of the job system, and what they can do about it. */

export interface QueueState {
  readonly key: string;
  readonly length: number;
  /** When the entry at the head was queued; null when the queue is empty or its head is not a job. */
  readonly oldest_queued_at: number | null;
}

const CATEGORIES = [1, 2] as const;
const PAGE = 500;

export async function readQueues(ctx: Pick<Context, "redis">) {
  const { commands, topology } = ctx.redis;
  const keys = [jobKeys.hot(), ...CATEGORIES.map((category) => jobKeys.hotByCategory({ category }))];
  const queues = Promise.all(
    keys.map(async (key): Promise<QueueState> => {
      const name = topology.key(key);
      const [length, head] = await Promise.all([commands.llen(name), commands.lindex(name, 0)]);
      const parsed = head === null ? undefined : parseEntry(head);
      return { key, length, oldest_queued_at: parsed?.ok ? parsed.job.queued_at : null };
    }),
  );
  const [states, delayed, failed, workers] = await Promise.all([
    queues,
    commands.zcard(topology.key(jobKeys.delayed())),
    commands.llen(topology.key(jobKeys.failed())),
    readWorkers(ctx),
  ]);
  const workers_by_category = Object.fromEntries(
    CATEGORIES.map((category) => [
      category,
      workers.filter((worker) => worker.categories.split(",").includes(String(category))).length,
    ]),
  );
  return { queues: states, delayed, failed, workers_by_category };
}

export async function readWorkers(ctx: Pick<Context, "redis">) {
  const { commands, topology } = ctx.redis;
  const beats = await commands.zrange(topology.key(jobKeys.workers()), "0", "-1", "WITHSCORES");
  const uids = beats.filter((_, index) => index % 2 === 0);
  const hashes = await Promise.all(
    uids.map((worker_uid) => commands.hgetallBuffer(topology.key(jobKeys.worker({ worker_uid })))),
  );
  return uids.flatMap((uid, index) => {
    const hash = hashes[index]!;
    // Gone between the two reads.
    if (Object.keys(hash).length === 0) return [];
    return [{ uid, last_beat_at: Number(beats[2 * index + 1]), ...jobKeys.worker.codec.decode(hash) }];
  });
}

export async function readFailed(
  ctx: Pick<Context, "redis">,
  page: { limit: number; offset: number },
): Promise<FailedJob[]> {
  const { commands, topology } = ctx.redis;
  const raws = await commands.lrange(topology.key(jobKeys.failed()), page.offset, page.offset + page.limit - 1);
  return raws.map((raw) => JSON.parse(raw) as FailedJob);
}

/** Gives failed jobs another chance, with fresh counters; all of them when no id is given. Answers how many. */
export async function requeueFailed(ctx: Pick<Context, "redis" | "clock">, id?: string): Promise<number> {
  return settleFailed(ctx, id, (failure) => {
    const parsed = parseEntry(failure.raw);
    return parsed.ok ? reencodeJob(fresh(parsed.job, ctx.clock.now())) : failure.raw;
  });
}

export async function discardFailed(ctx: Pick<Context, "redis" | "clock">, id: string): Promise<number> {
  return settleFailed(ctx, id, () => "");
}

async function settleFailed(
  ctx: Pick<Context, "redis" | "clock">,
  id: string | undefined,
  textOf: (failure: FailedJob) => string,
): Promise<number> {
  const { commands, topology } = ctx.redis;
  const failed = topology.key(jobKeys.failed());
  // What fails again meanwhile is not asked for once more, or a job that always fails would keep this going for ever.
  const asked = ctx.clock.now();
  const isWanted = (failure: FailedJob) => (id === undefined ? failure.failed_at < asked : failure.id === id);
  let settled = 0;
  let offset = 0;
  for (;;) {
    const raws = await commands.lrange(failed, offset, offset + PAGE - 1);
    if (raws.length === 0) break;
    const wanted = raws.filter((raw) => isWanted(JSON.parse(raw) as FailedJob));
    if (wanted.length === 0) {
      offset += PAGE;
      continue;
    }
    const items = wanted.flatMap((raw) => [raw, textOf(JSON.parse(raw) as FailedJob)]);
    settled += await ctx.redis.run(retryFailed, [jobKeys.failed(), jobKeys.hot()], items);
    if (id !== undefined) break;
  }
  if (id !== undefined && settled === 0)
    throw jobErrors.failed_job_not_found({ message: `no failed job has the id ${id}` });
  return settled;
}

function fresh(job: JobEntry, now: number): JobEntry {
  const { deliveries, attempt, bounces, deferrals, rjob, ...rest } = job;
  return { ...rest, queued_at: now };
}

export async function readRecurring(ctx: Pick<Context, "redis" | "clock">, jobs: Pick<JobQueue, "recurring">) {
  const { commands, topology } = ctx.redis;
  const [hash, due, purgatory] = await Promise.all([
    commands.get(topology.key(jobKeys.recurringHash())),
    commands.zrange(topology.key(jobKeys.recurring()), "0", "-1", "WITHSCORES"),
    commands.smembers(topology.key(jobKeys.recurringPurgatory())),
  ]);
  const now = ctx.clock.now();
  const dueBy = new Map(due.flatMap((digest, index) => (index % 2 === 0 ? [[digest, Number(due[index + 1])]] : [])));
  const items = [...jobs.recurring.jobs.values()].map(({ digest, name, kwargs, schedule }) => {
    const next = dueBy.get(digest) ?? null;
    return {
      digest,
      name,
      kwargs,
      schedule,
      next_run_at: next,
      next_times: timesAfter(schedule, next ?? now),
      overdue_by: next === null ? 0 : Math.max(0, now - next),
      in_purgatory: purgatory.includes(digest),
    };
  });
  return { hash, current: hash === jobs.recurring.hash, items };
}

const TIMES_SHOWN = 3;

function timesAfter(schedule: Schedule, time: number): number[] {
  const times: number[] = [];
  while (times.length < TIMES_SHOWN) times.push(nextRun(schedule, times.at(-1) ?? time));
  return times;
}

import type { KeyName } from "../kernel/keyspace/index.ts";
import type { Lock } from "../mechanisms/lock/index.ts";
import type { StopReason } from "../mechanisms/purgatory-queue/index.ts";
import type { JobContext } from "./context.ts";
import type { AnyRunner } from "./runner.ts";

export interface AlonePlan {
  readonly lock: KeyName<"string">;
  /** What the work takes from: whatever came while it held the lock found nobody to start for it. */
  readonly queues?: readonly KeyName<"list">[];
  /** What the work takes from when it is due, by score. */
  readonly schedules?: readonly KeyName<"zset">[];
  /** Works until it has a reason to stop. The context that it is given ends with the lock. */
  work(ctx: JobContext, lock: Lock): Promise<StopReason>;
}

/**
 * Runs a recurring job that must be alone.
 *
 *   wants the lock ──held by another──▶ skipped                 (its holder looks at the queues once more when it is done)
 *   wants the lock ──free──▶ works ──lock lost──▶ stops         (before its next request; the rest is the next holder's)
 *                              └──done or out of time──▶ released ──work is left──▶ starts again at once
 *                                                           ├──some is due later──▶ starts again then
 *                                                           └──nothing──▶ waits for its schedule or the next nudge
 *
 * A run that stopped for another reason than these (a provider that refuses us, a queue further down that is full, a
 * shutdown) does not start again by itself: it would only meet the same reason. A process that dies leaves the lock to its
 * lease and the queues to the schedule.
 */
export async function runAlone(ctx: JobContext, runner: AnyRunner, plan: AlonePlan): Promise<StopReason | "lock_lost"> {
  let lost = false;
  const stopped = await ctx.locks.withLock(plan.lock, { kind: "owner", wait: "fail" }, async (lock) => {
    const reason = await plan.work(underLock(ctx, lock), lock);
    lost = lock.signal.aborted;
    return reason;
  });
  const reason = lost ? "lock_lost" : stopped;
  ctx.log.info({ runner: runner.name, stop_reason: reason }, "run ended");
  // Out of time for another reason than time: what stood in the way stands there still.
  const goesOn = reason === "list_exhausted" || (reason === "time_exhausted" && ctx.budget.exhausted());
  const { waiting, due } = await leftOver(ctx, plan);
  const now = ctx.clock.now();
  if (waiting || (due !== undefined && due <= now)) {
    if (goesOn) ctx.jobs.nudge(runner, {});
  } else if (due !== undefined) await startAt(ctx, runner, due);
  return reason;
}

/** The run as its work sees it: a lost lock ends it like a shutdown, and interrupts its rests. */
function underLock(ctx: JobContext, lock: Lock): JobContext {
  let either: AbortSignal | undefined;
  let lost: Promise<boolean> | undefined;
  const signal = () => {
    either ??= AbortSignal.any([ctx.signal, lock.signal]);
    return either;
  };
  const sleep = async (seconds: number): Promise<boolean> => {
    if (lock.signal.aborted) return false;
    lost ??= new Promise((resolve) => lock.signal.addEventListener("abort", () => resolve(false), { once: true }));
    return Promise.race([ctx.sleep(seconds), lost]);
  };
  return Object.create(ctx, {
    shuttingDown: { value: () => lock.signal.aborted || ctx.shuttingDown() },
    signal: { get: signal },
    sleep: { value: sleep },
  }) as JobContext;
}

async function leftOver(
  ctx: JobContext,
  { queues = [], schedules = [] }: AlonePlan,
): Promise<{ readonly waiting: boolean; readonly due: number | undefined }> {
  const { commands, topology } = ctx.redis;
  const [lengths, firsts] = await Promise.all([
    Promise.all(queues.map((queue) => commands.llen(topology.key(queue)))),
    Promise.all(schedules.map((schedule) => commands.zrange(topology.key(schedule), 0, "0", "WITHSCORES"))),
  ]);
  const scores = firsts.flatMap(([, score]) => (score === undefined ? [] : [Number(score)]));
  return { waiting: lengths.some((length) => length > 0), due: scores.length > 0 ? Math.min(...scores) : undefined };
}

/** By process and runner: the next run that it has ahead already. */
const ahead = new WeakMap<object, Map<string, number>>();

/** Each process has one run ahead for what is due, or one more where something is due still earlier. */
async function startAt(ctx: JobContext, runner: AnyRunner, due: number): Promise<void> {
  const known = ahead.get(ctx.jobs) ?? new Map<string, number>();
  ahead.set(ctx.jobs, known);
  const now = ctx.clock.now();
  const next = known.get(runner.name) ?? 0;
  if (next > now && next <= due) return;
  known.set(runner.name, due);
  await ctx.jobs.enqueue(runner, {}, { delay: due - now });
}

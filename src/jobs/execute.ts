import { lockErrors } from "../mechanisms/lock/index.ts";
import type { Context, JobContext, ProgressEvent } from "./context.ts";
import { reencodeJob } from "./entry.ts";
import { Bounced, type Held } from "./held.ts";
import type { JobMetrics, JobOutcome } from "./job-metrics.ts";
import { jobKeys } from "./keys.ts";
import type { JobQueue } from "./queue.ts";
import type { Outcome } from "./runner.ts";
import { begin } from "./scripts.ts";
import type { Settler } from "./settler.ts";

const MAX_BOUNCES = 10;
const SKIPPED_WARNING_SECONDS = 600;

export interface Execution {
  readonly ctx: Context;
  readonly jobs: JobQueue;
  readonly settler: Settler;
  readonly metrics: JobMetrics;
  readonly contextOf: (held: Held) => JobContext;
  /** When each runner that only ever found its lock held was first skipped, by name. */
  readonly skippedSince: Map<string, number>;
  /** Runs that a shutdown ended early; the worker gives them back together, so that they keep their order. */
  readonly interrupted: Held[];
  stopping(): boolean;
}

/** Runs one entry, or a batch of one batch runner, and settles how each ended. */
export async function execute(execution: Execution, held: readonly Held[]): Promise<void> {
  const { clock } = execution.ctx;
  const started = clock.monotonic();
  const now = clock.now();
  for (const one of held) {
    one.startedAt = started;
    execution.metrics.waited(one.job.name, now - one.job.queued_at);
  }
  const first = held[0]!;
  if (first.runner.runMany) await executeMany(execution, held);
  else {
    const preparing = prepare(execution, first);
    if (preparing === undefined || (await preparing)) await executeOne(execution, first);
  }
  execution.metrics.ran(first.job.name, clock.monotonic() - started);
}

/** What few entries need before they start; undefined for all others, which then start without waiting. */
function prepare(execution: Execution, held: Held): Promise<boolean> | undefined {
  const { job, runner } = held;
  if (runner.ack === "late" && job.rjob === undefined && job.job_uid === undefined) return undefined;
  return (async () => {
    if (runner.ack === "early" && !(await execution.settler.finishNow(held))) return false;
    if (job.rjob !== undefined)
      await execution.ctx.redis.run(begin, [jobKeys.recurringQueued()], [job.rjob, job.queued_at]);
    if (job.job_uid !== undefined) await tell(execution, held, "started", "started");
    return true;
  })();
}

async function executeOne(execution: Execution, held: Held): Promise<void> {
  try {
    await held.runner.run!(execution.contextOf(held), held.kwargs);
  } catch (error) {
    return settleThrown(execution, held, error);
  }
  const settling = settleSucceeded(execution, held);
  if (settling) await settling;
}

async function executeMany(execution: Execution, batch: readonly Held[]): Promise<void> {
  let held = batch;
  const { runner } = batch[0]!;
  if (runner.ack === "early") {
    const ours = await Promise.all(batch.map((one) => execution.settler.finishNow(one)));
    held = batch.filter((_, index) => ours[index]);
    if (held.length === 0) return;
  }
  const recurring = held.flatMap(({ job }) => (job.rjob === undefined ? [] : [job.rjob, job.queued_at]));
  if (recurring.length > 0) await execution.ctx.redis.run(begin, [jobKeys.recurringQueued()], recurring);
  const watched = held.filter(({ job }) => job.job_uid !== undefined);
  if (watched.length > 0) await Promise.all(watched.map((one) => tell(execution, one, "started", "started")));
  const outcomes = await runTogether(execution, held);
  if (outcomes === undefined) return runSingly(execution, held);
  // Nearly all of them ended well and have nothing to wait for.
  const settling: Promise<void>[] = [];
  for (const [index, one] of held.entries()) {
    const waiting = settleOutcome(execution, one, outcomes[index]!);
    if (waiting) settling.push(waiting);
  }
  if (settling.length > 0) await Promise.all(settling);
}

/** One bad item must not take the others down with it: after a batch that threw, each is tried alone. */
async function runSingly(execution: Execution, held: readonly Held[]): Promise<void> {
  // Those that wait for their turn have not started, so neither their timeout nor a rescue may count the others' time.
  for (const one of held) one.startedAt = undefined;
  for (const one of held) {
    if (one.settled) continue;
    if (execution.stopping()) {
      await settleInterrupted(execution, one);
      continue;
    }
    one.startedAt = execution.ctx.clock.monotonic();
    const outcomes = await runTogether(execution, [one], true);
    await settleOutcome(execution, one, outcomes![0]!);
    // The rest of the batch may take long; nobody should take this one for a run that does not end.
    one.settled = true;
  }
}

/** One outcome per item; undefined when the whole batch threw, unless it is alone and the error is its own. */
async function runTogether(
  execution: Execution,
  held: readonly Held[],
  alone = held.length === 1,
): Promise<readonly Outcome[] | undefined> {
  const { runner } = held[0]!;
  try {
    const outcomes = await runner.runMany!(
      execution.contextOf(held[0]!),
      held.map(({ kwargs }) => kwargs),
    );
    if (outcomes === undefined) return held.map(() => ({ ok: true }));
    if (outcomes.length === held.length) return outcomes;
    throw new TypeError(`${runner.name} gave ${outcomes.length} outcomes for ${held.length} items`);
  } catch (error) {
    return alone ? [{ ok: false, error }] : undefined;
  }
}

/** Answers a promise only when there is something to wait for. */
function settleOutcome(execution: Execution, held: Held, outcome: Outcome): Promise<void> | undefined {
  return outcome.ok ? settleSucceeded(execution, held) : settleThrown(execution, held, outcome.error);
}

/** Answers a promise only when there is something to wait for. */
function settleSucceeded(execution: Execution, held: Held): Promise<void> | undefined {
  if (held.settled) return undefined;
  if (held.timedOut) return settleTimedOut(execution, held);
  execution.metrics.count(held.job.name, "ok");
  if (execution.skippedSince.size > 0) execution.skippedSince.delete(held.job.name);
  if (held.job.job_uid !== undefined) return finishWatched(execution, held, "done");
  if (held.runner.ack === "late") execution.settler.finish(held);
  return undefined;
}

/** Told before it is forgotten: a death in between runs the job again, and its watchers hear of the end in any case. */
async function finishWatched(execution: Execution, held: Held, message: string): Promise<void> {
  await tell(execution, held, "succeeded", message);
  if (held.runner.ack === "late") execution.settler.finish(held);
}

async function settleThrown(execution: Execution, held: Held, error: unknown): Promise<void> {
  if (held.settled) return;
  const { job } = held;
  if (error instanceof Bounced) return settleBounced(execution, held);
  if (lockErrors.lock_held.matches(error)) return settleSkipped(execution, held);
  if (held.timedOut) return settleTimedOut(execution, held);
  if (execution.stopping() && held.abort?.signal.aborted) return settleInterrupted(execution, held);
  execution.ctx.alerts.error(error, job.name);
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return retryOrFail(execution, held, "error", text);
}

/** A run that ended only because it was told to by its timeout. */
export async function settleTimedOut(execution: Execution, held: Held): Promise<void> {
  const text = `did not end within ${held.runner.timeout} s`;
  execution.ctx.alerts.error(new Error(text), held.job.name);
  return retryOrFail(execution, held, "timeout", text);
}

async function retryOrFail(execution: Execution, held: Held, reason: "error" | "timeout", text: string): Promise<void> {
  const { job, runner } = held;
  execution.metrics.count(job.name, reason);
  const attempt = job.attempt ?? 0;
  const delay = runner.retry[attempt];
  if (runner.ack === "early" || delay === undefined) {
    await tell(execution, held, "failed", `failed: ${text.split("\n")[0]}`);
    if (runner.ack === "late") await execution.settler.fail({ ...held, raw: reencodeJob(job) }, reason, text);
    return;
  }
  await tell(execution, held, "progress", `retry in ${delay} s`);
  await execution.settler.delay(held, { attempt: attempt + 1 }, delay);
}

async function settleBounced(execution: Execution, held: Held): Promise<void> {
  const { job, runner } = held;
  execution.metrics.count(job.name, "bounced");
  if (runner.ack === "early") return;
  if ((job.bounces ?? 0) >= MAX_BOUNCES) {
    await tell(execution, held, "failed", "failed: given back too often");
    const text = `it was given back ${job.bounces} times`;
    return execution.settler.fail({ ...held, raw: reencodeJob(job) }, "bounce_loop", text);
  }
  await tell(execution, held, "bounce", "given back to the queue");
  await execution.settler.bounce([held], "back");
}

/** The worker shuts down and the run ended early because of it: not its fault, and first in line again. */
async function settleInterrupted(execution: Execution, held: Held): Promise<void> {
  execution.metrics.count(held.job.name, "bounced");
  await tell(execution, held, "bounce", "interrupted by a shutdown");
  if (held.runner.ack === "late") execution.interrupted.push(held);
}

/** Another run has the lock; that is how single-run jobs share the fleet, so it is no error. */
async function settleSkipped(execution: Execution, held: Held): Promise<void> {
  const { name } = held.job;
  const now = execution.ctx.clock.monotonic();
  execution.metrics.count(name, "skipped_locked" satisfies JobOutcome);
  const since = execution.skippedSince.get(name) ?? now;
  execution.skippedSince.set(name, since);
  if (now - since > SKIPPED_WARNING_SECONDS)
    execution.ctx.alerts.warning(`${name}:skipped`, `${name} has found its lock held for ${Math.round(now - since)} s`);
  await finishWatched(execution, held, "skipped: another run is under way");
}

async function tell(execution: Execution, held: Held, type: ProgressEvent["type"], message: string): Promise<void> {
  const { job_uid } = held.job;
  if (job_uid === undefined) return;
  const terminal = type === "failed" || type === "succeeded";
  if (terminal && execution.jobs.progress.takeEnded(job_uid)) return;
  const indicator = terminal ? ({ type: "final" } as const) : ({ type: "spinner" } as const);
  try {
    if (terminal && held.runner.ack === "late")
      await execution.jobs.progress.pushEnd(held, job_uid, { type, message, indicator });
    else {
      await execution.jobs.progress.push(job_uid, { type, message, indicator });
      if (terminal) execution.jobs.progress.takeEnded(job_uid);
    }
  } catch (error) {
    // Watchers miss an event; the job itself must not fail because nobody could be told.
    execution.ctx.log.warn({ err: error, job: held.job.name }, "progress could not be told");
  }
}

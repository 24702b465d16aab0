import type { Kysely } from "kysely";
import { z } from "zod";
import type { KernelContext } from "../kernel/context.ts";
import { kernelErrors } from "../kernel/errors.ts";
import { newUid } from "../kernel/ids.ts";
import { isConnectionLoss } from "../kernel/redis/index.ts";
import type { EnqueueOptions, Jobs } from "./context.ts";
import { encodeJob, encodeJobs } from "./entry.ts";
import { jobErrors } from "./errors.ts";
import { jobKeys } from "./keys.ts";
import { Outbox } from "./outbox.ts";
import { encodeProgress, PROGRESS_TTL_MS, ProgressBoard } from "./progress.ts";
import { inChunks, PushLine } from "./push-line.ts";
import type { RecurringSet } from "./recurring-set.ts";
import type { AnyRunner, Runner } from "./runner.ts";
import { enqueue, enqueueWithProgress, nudge } from "./scripts.ts";

const NUDGE_SPACING = 0.02;

/** The enqueuing side of the job system. */
export class JobQueue implements Jobs {
  readonly runners: ReadonlyMap<string, AnyRunner>;
  readonly recurring: RecurringSet;
  readonly progress: ProgressBoard;
  readonly outbox: Outbox;
  readonly #ctx: KernelContext;
  readonly #line: PushLine;
  readonly #nudges = new Map<string, { lastAt: number; again: boolean }>();

  constructor(ctx: KernelContext, plan: { runners: readonly AnyRunner[]; recurring: RecurringSet }) {
    const byName = new Map(plan.runners.map((runner) => [runner.name as string, runner]));
    if (byName.size !== plan.runners.length) {
      const names = plan.runners.map((runner) => runner.name);
      throw new TypeError(`two runners are named ${names.find((name, index) => names.indexOf(name) !== index)}`);
    }
    for (const job of plan.recurring.jobs.values())
      if (!byName.has(job.name))
        throw jobErrors.invalid_schedule({ message: `recurring ${job.name}: no runner has this name` });
    this.#ctx = ctx;
    this.runners = byName;
    this.recurring = plan.recurring;
    this.progress = new ProgressBoard(ctx);
    this.outbox = new Outbox(ctx);
    this.#line = new PushLine(ctx.redis, jobKeys.hot());
  }

  encode<K extends z.ZodType>(runner: Runner<K>, kwargs: z.input<K>, now = this.#ctx.clock.now()): string {
    return encodeJob({ name: runner.name, kwargs: checkKwargs(runner, kwargs), queued_at: now });
  }

  async enqueue<K extends z.ZodType>(
    runner: Runner<K>,
    kwargs: z.input<K>,
    options: EnqueueOptions = {},
  ): Promise<void> {
    checkKwargs(runner, kwargs);
    const now = this.#ctx.clock.now();
    const { delay, jobUid, maxLength } = options;
    // Equal members of a sorted set would collapse into one, so whatever is delayed carries a uid.
    const uid = delay === undefined ? undefined : newUid("job");
    const raw = encodeJob({ name: runner.name, kwargs, queued_at: now }, { uid, job_uid: jobUid });
    const due = delay === undefined ? undefined : now + delay;
    if (jobUid !== undefined) return this.#enqueueWatched(raw, due, jobUid, now, maxLength);
    return due === undefined ? this.#push([raw], maxLength) : this.#sleepUntil(due, [raw]);
  }

  async enqueueMany<K extends z.ZodType>(
    runner: Runner<K>,
    items: readonly z.input<K>[],
    options: Pick<EnqueueOptions, "delay" | "maxLength"> = {},
  ): Promise<void> {
    const now = this.#ctx.clock.now();
    for (const kwargs of items) checkKwargs(runner, kwargs);
    if (options.delay === undefined) return this.#push(encodeJobs(runner.name, now, items), options.maxLength);
    const raws = items.map((kwargs) =>
      encodeJob({ name: runner.name, kwargs, queued_at: now }, { uid: newUid("job") }),
    );
    return this.#sleepUntil(now + options.delay, raws);
  }

  async enqueueIn<K extends z.ZodType>(
    tx: Kysely<never>,
    runner: Runner<K>,
    kwargs: z.input<K>,
    options: Pick<EnqueueOptions, "delay"> = {},
  ): Promise<void> {
    checkKwargs(runner, kwargs);
    const now = this.#ctx.clock.now();
    const raw = encodeJob({ name: runner.name, kwargs, queued_at: now }, { uid: newUid("job") });
    await this.outbox.write(tx, [{ raw, due: options.delay === undefined ? undefined : now + options.delay }]);
  }

  async enqueueNamed(name: string, kwargs: unknown, options: EnqueueOptions = {}): Promise<void> {
    const runner = this.runners.get(name);
    if (!runner) throw jobErrors.unknown_runner({ message: `no runner is named ${name}` });
    return this.enqueue(runner, kwargs, options);
  }

  nudge(runner: AnyRunner, kwargs: Record<string, unknown> = {}): void {
    const digest = this.recurring.digestOf(runner.name, kwargs);
    if (digest === undefined) throw jobErrors.unknown_recurring_job({ message: `${runner.name} does not recur` });
    this.nudgeDigest(digest);
  }

  /** At most one call per job and 20 ms; one that comes too soon is made up for at the end of that time. */
  nudgeDigest(digest: string): void {
    const { clock } = this.#ctx;
    const known = this.#nudges.get(digest);
    if (known && clock.monotonic() - known.lastAt < NUDGE_SPACING) {
      if (!known.again) void clock.sleep(NUDGE_SPACING).then(() => this.#nudgeNow(digest));
      known.again = true;
      return;
    }
    void this.#nudgeNow(digest);
  }

  async #nudgeNow(digest: string): Promise<void> {
    this.#nudges.set(digest, { lastAt: this.#ctx.clock.monotonic(), again: false });
    try {
      await this.runRecurring(digest);
    } catch (error) {
      // The schedule is the safety net: the job starts at its next time even if no nudge ever arrives.
      this.#ctx.log.debug({ err: error, digest }, "a nudge did not arrive");
    }
  }

  /** Queues a recurring job now; false when an entry of it waits already. */
  async runRecurring(digest: string): Promise<boolean> {
    if (!this.recurring.jobs.has(digest))
      throw jobErrors.unknown_recurring_job({ message: `no recurring job has the digest ${digest}` });
    const now = this.#ctx.clock.now();
    const queued = await this.#ctx.redis.run(
      nudge,
      [jobKeys.recurringQueued(), jobKeys.hot()],
      [digest, now, this.recurring.entry(digest, now)],
    );
    return queued === 1;
  }

  async #enqueueWatched(
    raw: string,
    due: number | undefined,
    jobUid: string,
    now: number,
    maxLength = Number.MAX_SAFE_INTEGER,
  ): Promise<void> {
    const parameters = { job_uid: jobUid };
    const event = encodeProgress(
      { type: "queued", message: "waiting for a worker", indicator: { type: "spinner" } },
      now,
    );
    const seq = await this.#ctx.redis.run(
      enqueueWithProgress,
      [jobKeys.hot(), jobKeys.delayed(), jobKeys.progressEvents(parameters), jobKeys.progressCount(parameters)],
      [raw, due ?? 0, jobKeys.progress(parameters), event, PROGRESS_TTL_MS, maxLength],
    );
    if (seq < 0) throw jobErrors.backpressure({ retryAfter: 10 });
  }

  async #push(raws: readonly string[], maxLength: number | undefined): Promise<void> {
    if (raws.length === 0) return;
    if (maxLength !== undefined) {
      const length = await this.#ctx.redis.run(enqueue, [jobKeys.hot()], [maxLength, ...raws]);
      if (length < 0) throw jobErrors.backpressure({ retryAfter: 10 });
      return;
    }
    await sent(raws.length === 1 ? this.#line.push(raws[0]!) : this.#line.pushMany(raws));
  }

  async #sleepUntil(due: number, raws: readonly string[]): Promise<void> {
    const { commands, topology } = this.#ctx.redis;
    const delayed = topology.key(jobKeys.delayed());
    const chunks = inChunks(raws);
    await sent(Promise.all(chunks.map((chunk) => commands.zadd(delayed, ...chunk.flatMap((raw) => [due, raw])))));
  }
}

function checkKwargs<K extends z.ZodType>(runner: Runner<K>, kwargs: z.input<K>): z.input<K> {
  const parsed = runner.kwargs.safeParse(kwargs);
  if (parsed.success) return kwargs;
  throw jobErrors.invalid_kwargs({
    message: `${runner.name}: ${z.prettifyError(parsed.error)}`,
    detail: parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message })),
  });
}

/** A plain push is not repeated by itself: the caller must know that it may have happened. */
async function sent(pushing: Promise<unknown>): Promise<void> {
  try {
    await pushing;
  } catch (error) {
    if (isConnectionLoss(error))
      throw kernelErrors.outcome_unknown({ message: "the jobs may or may not have been queued", cause: error });
    if (error instanceof Error && error.message.startsWith("OOM")) throw kernelErrors.redis_full({ cause: error });
    throw error;
  }
}

import { domains } from "../../domains.ts";
import type { Context, JobContext } from "../../jobs/context.ts";
import { type AnyRunner, jobKeys } from "../../jobs/index.ts";
import { systemClock, type VirtualClock } from "../../kernel/clock.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { takeAll } from "./scripts.ts";

/** Rooms whose jobs have nothing to do with messages: they look after the house as it is now, and not after its past. */
const ELSEWHERE = new Set([
  "access",
  "jobs",
  "operations",
  "files",
  "deployments",
  "external_apis",
  "signing_keys",
  "webhooks",
]);
/** Nudged with every message, and as good once in a while for many of them. */
const UNHURRIED = "runners.touch.log";
const WORKER = "demo";
/** Seconds of a run after which it should end by itself. */
const BUDGET = 50;
/** Real seconds between two looks at a run, and looks without an end after which it is believed to wait for the clock. */
const LOOK_EVERY = 0.004;
const PATIENCE = 12;
const PASSES = 0.25;
const LEAST = 0.001;

interface Job {
  readonly name: string;
  readonly kwargs: object;
  readonly attempt?: number;
}

/**
 * A worker for virtual time. It runs the very jobs that workers run, whenever they are nudged, due or asked for, until
 * nothing waits; only then time goes on. Time passes inside a run only when the run waits for it.
 */
export class Pipeline {
  /** How often each job ran. */
  readonly runs: Record<string, number> = {};
  readonly failures: { readonly job: string; readonly error: unknown }[] = [];
  readonly #ctx: Context;
  readonly #clock: VirtualClock;
  readonly #sandbox: Sandbox;
  readonly #own: ReadonlyMap<string, AnyRunner>;
  #hasBegun = false;

  constructor(ctx: Context, clock: VirtualClock, sandbox: Sandbox) {
    this.#ctx = ctx;
    this.#clock = clock;
    this.#sandbox = sandbox;
    const rooms = domains.filter(({ name }) => !ELSEWHERE.has(name));
    this.#own = new Map(rooms.flatMap(({ runners = [] }) => runners.map((runner) => [runner.name, runner] as const)));
  }

  /** The time of the next job that waits for its time. */
  async nextDue(): Promise<number | undefined> {
    const { commands, topology } = this.#ctx.redis;
    const [, score] = await commands.zrange(topology.key(jobKeys.delayed()), 0, "0", "WITHSCORES");
    return score === undefined ? undefined : Number(score);
  }

  /** Lets time pass; what simulated providers had planned for it happens on the way. */
  async passUntil(time: number): Promise<void> {
    for (;;) {
      const left = time - this.#clock.now();
      if (left <= LEAST) return;
      const next = (this.#clock.nextDue ?? time) - this.#clock.now();
      // Unix times hold microseconds at best, so the smallest step must be one that shows.
      await this.#clock.advance(Math.max(LEAST, Math.min(left, next)));
      await this.#callbacksDone();
    }
  }

  /** Runs what waits, and what that brings, until nothing does. */
  async settle(): Promise<void> {
    do await this.#callbacksDone();
    while (await this.#workOff());
  }

  /** Runs a job now, as its schedule would, perhaps in other surroundings. */
  async run(name: string, kwargs: object = {}, around = this.#ctx): Promise<void> {
    const runner = this.#own.get(name);
    if (!runner) throw new TypeError(`no room of messages has the job ${name}`);
    await this.#runMany(runner, [{ name, kwargs }], around);
  }

  /** What a process held that died runs once more, as jobs of dead workers do. */
  async #workOff(): Promise<boolean> {
    const { delayed, hot, recurringQueued, running } = jobKeys;
    const raws = await this.#ctx.redis.run(
      takeAll,
      [delayed(), hot(), recurringQueued(), running({ worker_uid: WORKER })],
      [this.#clock.now(), this.#hasBegun ? 1 : 0],
    );
    this.#hasBegun = true;
    if (raws.length === 0) return false;
    const jobs = raws.map((raw) => JSON.parse(raw) as Job);
    for (const name of new Set(jobs.map((job) => job.name))) {
      const runner = this.#own.get(name);
      const items = jobs.filter((job) => job.name === name);
      if (runner && name !== UNHURRIED)
        await this.#runMany(runner, isAlone(runner) ? items.slice(0, 1) : items, this.#ctx);
    }
    return true;
  }

  async #runMany(runner: AnyRunner, jobs: readonly Job[], around: Context): Promise<void> {
    this.runs[runner.name] = (this.runs[runner.name] ?? 0) + 1;
    const job = runContext(around, runner.name);
    const failed = new Map<Job, unknown>();
    const work = async () => {
      const kwargs = jobs.map((each) => runner.kwargs.parse(each.kwargs));
      if (runner.run)
        for (const [at, each] of kwargs.entries())
          await runner.run(job, each as never).catch((error: unknown) => failed.set(jobs[at]!, error));
      else
        for (const [at, outcome] of ((await runner.runMany!(job, kwargs as never)) ?? []).entries())
          if (!outcome.ok) failed.set(jobs[at]!, outcome.error);
    };
    try {
      await this.#ended(work());
    } catch (error) {
      for (const each of jobs) failed.set(each, error);
    }
    for (const [each, error] of failed) await this.#tryAgain(runner, each, error);
  }

  /** As workers do: after the delays that the runner names, and when they are used up the job has failed. */
  async #tryAgain(runner: AnyRunner, job: Job, error: unknown): Promise<void> {
    const { attempt = 0 } = job;
    const delay = runner.retry[attempt];
    if (delay === undefined) return void this.failures.push({ job: runner.name, error });
    const { commands, topology } = this.#ctx.redis;
    const raw = JSON.stringify({ ...job, attempt: attempt + 1 });
    await commands.zadd(topology.key(jobKeys.delayed()), this.#clock.now() + delay, raw);
  }

  /** Waits for work that may itself wait for the clock: where nothing else seems to happen, a little time passes. */
  async #ended(work: Promise<void>): Promise<void> {
    let done = false;
    const ended = work.finally(() => {
      done = true;
    });
    ended.catch(() => {});
    for (let look = 1; !done; look++) {
      await Promise.race([ended.catch(() => {}), systemClock.sleep(LOOK_EVERY)]);
      if (done || look % PATIENCE !== 0) continue;
      // On a busy machine a round trip takes longer, and so does everything that is waited for.
      await this.#ctx.redis.commands.ping();
      if (!done) await this.#clock.advance(PASSES);
    }
    await ended;
  }

  /** Providers have been answered. */
  async #callbacksDone(): Promise<void> {
    await new Promise(setImmediate);
    for (let look = 1; this.#sandbox.isAtWork; look++) {
      await systemClock.sleep(LOOK_EVERY);
      if (look % (10 * PATIENCE) === 0) await this.#clock.advance(PASSES);
    }
  }
}

/** Recurring jobs take no arguments, so one run does for all that wait. */
function isAlone(runner: AnyRunner): boolean {
  return runner.kwargs.safeParse({}).success;
}

/** A run as its runner sees it. Nobody stops it. */
function runContext(around: Context, name: string): JobContext {
  const deadline = around.clock.monotonic() + BUDGET;
  return {
    ...around,
    job: { name, uid: undefined, jobUid: undefined, queuedAt: 0, attempt: 0, deliveries: 0, bounces: 0 },
    signal: new AbortController().signal,
    shuttingDown: () => false,
    sleep: (seconds) => around.clock.sleep(seconds),
    budget: { exhausted: () => around.clock.monotonic() >= deadline },
    progress: async () => {},
    bounce: () => new Error("given back to the queue"),
  };
}

/** Runs a job of the house once, here and now, without a worker. */
export async function runOnce(ctx: Context, name: string): Promise<void> {
  const runner = ctx.jobs.runners.get(name);
  await runner?.run?.(runContext(ctx, name), {} as never);
}

import type { Context, JobContext, JobInfo, ProgressIndicator } from "./context.ts";
import { Bounced, type Held } from "./held.ts";

/** What one run of a runner sees. Cheap to make: everything that few jobs use is made when they use it. */
export class RunContext implements JobContext {
  readonly clock;
  readonly config;
  readonly log;
  readonly alerts;
  readonly metrics;
  readonly redis;
  readonly cacheRedis;
  readonly sql;
  readonly hostname;
  readonly jobs;
  readonly providers;
  readonly locks;
  readonly #base: Context;
  readonly #held: Held;
  readonly #stopping: () => boolean;

  constructor(base: Context, held: Held, stopping: () => boolean) {
    this.clock = base.clock;
    this.config = base.config;
    this.log = base.log;
    this.alerts = base.alerts;
    this.metrics = base.metrics;
    this.redis = base.redis;
    this.cacheRedis = base.cacheRedis;
    this.sql = base.sql;
    this.hostname = base.hostname;
    this.jobs = base.jobs;
    this.providers = base.providers;
    this.locks = base.locks;
    this.#base = base;
    this.#held = held;
    this.#stopping = stopping;
  }

  get subscriber() {
    return this.#base.subscriber;
  }

  get job(): JobInfo {
    const { job } = this.#held;
    return {
      name: job.name,
      uid: job.uid,
      jobUid: job.job_uid,
      queuedAt: job.queued_at,
      attempt: job.attempt ?? 0,
      deliveries: job.deliveries ?? 0,
      bounces: job.bounces ?? 0,
    };
  }

  get signal(): AbortSignal {
    this.#held.abort ??= new AbortController();
    return this.#held.abort.signal;
  }

  get budget() {
    return {
      exhausted: () => this.clock.monotonic() - (this.#held.startedAt ?? 0) >= this.#held.runner.budget,
    };
  }

  shuttingDown(): boolean {
    return this.#stopping() || (this.#held.abort?.signal.aborted ?? false);
  }

  sleep(seconds: number): Promise<boolean> {
    return this.clock.sleep(seconds, this.signal);
  }

  async progress(message: string, indicator: ProgressIndicator | null = null): Promise<void> {
    const { job_uid } = this.#held.job;
    if (job_uid !== undefined) await this.jobs.progress.push(job_uid, { type: "progress", message, indicator });
  }

  bounce(): Error {
    return new Bounced("given back to the queue");
  }
}

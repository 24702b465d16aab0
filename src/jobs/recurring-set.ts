import { canonicalJson } from "../kernel/keyspace/index.ts";
import { encodeJob } from "./entry.ts";
import { jobErrors } from "./errors.ts";
import type { RecurringJob, Schedule } from "./recurring.ts";
import { jobDigest, nextRun, scheduleSetHash, validateSchedule } from "./schedule.ts";

export interface ScheduledJob {
  readonly digest: string;
  readonly name: string;
  readonly kwargs: Record<string, unknown>;
  readonly schedule: Schedule;
}

/** The recurring jobs of this version of the code, each known by its digest. */
export class RecurringSet {
  readonly jobs: ReadonlyMap<string, ScheduledJob>;
  readonly hash: string;
  readonly #digestsByJob = new Map<string, string[]>();

  constructor(declared: readonly RecurringJob[], timezone: string) {
    const jobs = new Map<string, ScheduledJob>();
    for (const { runner, kwargs, schedule } of declared) {
      const parsed = runner.kwargs.safeParse(kwargs);
      if (!parsed.success)
        throw jobErrors.invalid_schedule({
          message: `recurring ${runner.name}: its kwargs do not fit: ${parsed.error.message}`,
        });
      const job = { name: runner.name, kwargs, schedule: { ...schedule, tz: schedule.tz ?? timezone } };
      validateSchedule(job.schedule);
      const digest = jobDigest(job);
      if (jobs.has(digest)) throw jobErrors.invalid_schedule({ message: `recurring ${runner.name} is declared twice` });
      jobs.set(digest, { digest, ...job });
      const key = canonicalJson([runner.name, kwargs]);
      this.#digestsByJob.set(key, [...(this.#digestsByJob.get(key) ?? []), digest]);
    }
    this.jobs = jobs;
    this.hash = scheduleSetHash([...jobs.keys()]);
  }

  /** The digest under which a runner with these kwargs recurs; the first declared when it has several schedules. */
  digestOf(name: string, kwargs: Record<string, unknown>): string | undefined {
    return this.#digestsByJob.get(canonicalJson([name, kwargs]))?.[0];
  }

  next(digest: string, after: number): number {
    return nextRun(this.jobs.get(digest)!.schedule, after);
  }

  /** The text of one occurrence. */
  entry(digest: string, now: number): string {
    const { name, kwargs } = this.jobs.get(digest)!;
    return encodeJob({ name, kwargs, queued_at: now }, { rjob: digest });
  }
}

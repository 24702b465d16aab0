import type { Context, JobContext, JobInfo, ProgressIndicator } from "./context.ts";
import { Bounced, type Held } from "./held.ts";

/**
 * Makes what each run of a runner sees. The surroundings are inherited, not copied: a worker makes a hundred thousand of
 * these a second, and most jobs look at two or three of their members.
 */
export function runContexts(base: Context, stopping: () => boolean): (held: Held) => JobContext {
  class Run {
    readonly held: Held;

    constructor(held: Held) {
      this.held = held;
    }

    get job(): JobInfo {
      const { job } = this.held;
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
      this.held.abort ??= new AbortController();
      return this.held.abort.signal;
    }

    get budget() {
      return {
        exhausted: () => base.clock.monotonic() - (this.held.startedAt ?? 0) >= this.held.runner.budget,
      };
    }

    shuttingDown(): boolean {
      return stopping() || (this.held.abort?.signal.aborted ?? false);
    }

    sleep(seconds: number): Promise<boolean> {
      return base.clock.sleep(seconds, this.signal);
    }

    async progress(message: string, indicator: ProgressIndicator | null = null): Promise<void> {
      const { job_uid } = this.held.job;
      if (job_uid !== undefined) await base.jobs.progress.push(job_uid, { type: "progress", message, indicator });
    }

    bounce(): Error {
      return new Bounced("given back to the queue");
    }
  }
  Object.setPrototypeOf(Run.prototype, base);
  return (held) => new Run(held) as unknown as JobContext;
}

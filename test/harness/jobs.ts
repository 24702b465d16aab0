import { type Context, JobQueue, type RecurringJob, RecurringSet, Worker } from "../../src/jobs/index.ts";
import type { AnyRunner } from "../../src/jobs/runner.ts";
import { jobSettings } from "../../src/jobs/settings.ts";
import type { AlertRecorder } from "../../src/kernel/alerts.ts";
import { Config, type Setting } from "../../src/kernel/config.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { Catalogue } from "../../src/kernel/keyspace/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import type { Providers } from "../../src/providers/index.ts";
import type { TestContext } from "./context.ts";

export interface JobProcess {
  readonly ctx: Context & { readonly alerts: AlertRecorder };
  readonly jobs: JobQueue;
  readonly worker: Worker;
  /** Whether the worker asked for its process to be replaced. */
  readonly stuck: boolean;
}

export interface JobProcessPlan {
  readonly runners: readonly AnyRunner[];
  readonly recurring?: readonly RecurringJob[];
  readonly settings?: Partial<Record<keyof typeof jobSettings, unknown>>;
  readonly config?: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];
  readonly overrides?: Partial<KernelContext>;
  readonly providers?: Partial<Providers>;
  readonly timezone?: string;
}

/** One process of the fleet, as far as jobs are concerned: its own connection, locks, queue and (unstarted) worker. */
export function jobProcess(house: TestContext, plan: JobProcessPlan): JobProcess {
  const settings = Object.entries(plan.settings ?? {}).map(
    ([name, value]) => [jobSettings[name as keyof typeof jobSettings], value] as const,
  );
  const base = house.process({
    ...plan.overrides,
    config: new Config([]).with(...(settings as []), ...(plan.config ?? [])),
  });
  const recurring = new RecurringSet(plan.recurring ?? [], plan.timezone ?? "America/Los_Angeles");
  const jobs = new JobQueue(base, { runners: plan.runners, recurring });
  const ctx = Object.defineProperties(
    { jobs, locks: new Locks(base), catalogue: new Catalogue([]), providers: (plan.providers ?? {}) as Providers },
    Object.getOwnPropertyDescriptors(base),
  ) as unknown as JobProcess["ctx"];
  let stuck = false;
  const worker = new Worker(ctx, jobs, {
    version: "test",
    instance: "1",
    heartbeat: "inline",
    onStuck: () => {
      stuck = true;
    },
  });
  return {
    ctx,
    jobs,
    worker,
    get stuck() {
      return stuck;
    },
  };
}

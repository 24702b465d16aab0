import { openTestServer, type TestServer, type TestServerOptions } from "../../../test/harness/http.ts";
import { JobQueue, type RecurringJob, RecurringSet } from "../../jobs/index.ts";
import type { AnyRunner } from "../../jobs/runner.ts";
import { Worker } from "../../jobs/worker.ts";
import { Catalogue } from "../../kernel/keyspace/index.ts";
import { Metrics } from "../../kernel/metrics.ts";
import { Locks } from "../../mechanisms/lock/index.ts";
import { jobs as jobsRoom } from "./index.ts";
import { recurringJobs, runners } from "./jobs.ts";

export interface JobServer extends TestServer {
  readonly jobs: JobQueue;
  /** A worker of this house that is not started yet. */
  worker(): Worker;
}

export interface JobServerPlan extends TestServerOptions {
  readonly runners?: readonly AnyRunner[];
  readonly recurring?: readonly RecurringJob[];
}

/** A server with the jobs room, and behind it a real queue, locks and catalogue. */
export async function openJobServer(plan: JobServerPlan = {}): Promise<JobServer> {
  const server = await openTestServer({ ...plan, domains: [jobsRoom, ...(plan.domains ?? [])] });
  const { ctx } = server;
  const jobs = new JobQueue(ctx, {
    runners: [...runners, ...(plan.runners ?? [])],
    recurring: new RecurringSet([...recurringJobs, ...(plan.recurring ?? [])], "UTC"),
  });
  const catalogue = new Catalogue(server.domains);
  Object.assign(ctx, { jobs, catalogue, locks: new Locks(ctx, catalogue) });
  // Another process, as far as numbers go: each worker registers its own.
  const apart = () => Object.create(ctx, { metrics: { value: new Metrics() } }) as typeof ctx;
  const worker = () => new Worker(apart(), jobs, { version: "test", instance: "1", heartbeat: "inline" });
  return { ...server, jobs, worker };
}

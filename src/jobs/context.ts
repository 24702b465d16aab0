import type { z } from "zod";
import type { KernelContext } from "../kernel/context.ts";
import type { Catalogue } from "../kernel/keyspace/index.ts";
import type { Locks } from "../mechanisms/lock/index.ts";
import type { Providers } from "../providers/index.ts";
import type { RecurringSet } from "./recurring-set.ts";
import type { AnyRunner, Runner } from "./runner.ts";

export interface EnqueueOptions {
  /** Seconds until it may start. */
  readonly delay?: number;
  /** A progress uid from `newUid("jp")`: the worker reports the job's life on it. */
  readonly jobUid?: string;
  /** Refuse with `backpressure` when the queue would grow beyond this; a delayed job does not ask. */
  readonly maxLength?: number;
}

/** What enqueuers see of the job system. */
export interface Jobs {
  enqueue<K extends z.ZodType>(runner: Runner<K>, kwargs: z.input<K>, options?: EnqueueOptions): Promise<void>;
  enqueueMany<K extends z.ZodType>(
    runner: Runner<K>,
    items: readonly z.input<K>[],
    options?: Pick<EnqueueOptions, "delay" | "maxLength">,
  ): Promise<void>;
  /** The job commits with the caller's own rows, and is relayed to Redis exactly once. */
  enqueueIn<K extends z.ZodType>(
    tx: unknown,
    runner: Runner<K>,
    kwargs: z.input<K>,
    options?: Pick<EnqueueOptions, "delay">,
  ): Promise<void>;
  /** By name, for callers that only know it at run time: validated against the registry. */
  enqueueNamed(name: string, kwargs: unknown, options?: EnqueueOptions): Promise<void>;
  /** The text of a job, for scripts that push to `jobs:hot` themselves. */
  encode<K extends z.ZodType>(runner: Runner<K>, kwargs: z.input<K>, now?: number): string;
  /** Starts a recurring job now unless an entry of it already waits; at most once per job, process and 20 ms. */
  nudge(runner: AnyRunner, kwargs?: Record<string, unknown>): void;
  /** Queues a recurring job now; false when an entry of it waits already. Its schedule does not change. */
  runRecurring(digest: string): Promise<boolean>;
  readonly recurring: RecurringSet;
  /** Every runner this installation knows, by name. */
  readonly runners: ReadonlyMap<string, AnyRunner>;
  readonly progress: ProgressReports;
}

export type ProgressIndicator =
  | { readonly type: "bar"; readonly at: number; readonly of: number }
  | { readonly type: "spinner" }
  | { readonly type: "final" };

export type ProgressType = "queued" | "started" | "bounce" | "spawned" | "progress" | "failed" | "succeeded";

export interface ProgressEvent {
  readonly seq: number;
  readonly type: ProgressType;
  readonly message: string;
  readonly indicator: ProgressIndicator | null;
  readonly occurred_at: number;
  readonly spawned?: { readonly uid: string; readonly name: string };
}

/** Progress of jobs that somebody watches, by their progress uid. */
export interface ProgressReports {
  push(jobUid: string, event: Omit<ProgressEvent, "seq" | "occurred_at">): Promise<number>;
  read(
    jobUid: string,
    since?: number,
  ): Promise<{ events: ProgressEvent[]; last_seq: number; done: boolean } | undefined>;
}

/** The one object passed to services and routes. */
export interface Context extends KernelContext {
  readonly jobs: Jobs;
  readonly locks: Locks;
  /** Every declared key of the house, for whoever inspects the live keyspace. */
  readonly catalogue: Catalogue;
  readonly providers: Providers;
}

export interface JobInfo {
  readonly name: string;
  readonly uid: string | undefined;
  readonly jobUid: string | undefined;
  readonly queuedAt: number;
  readonly attempt: number;
  readonly deliveries: number;
  readonly bounces: number;
}

/** What a runner sees: the context, and the run it is in. */
export interface JobContext extends Context {
  readonly job: JobInfo;
  /** Aborted by shutdown, timeout, a lost lock or a worker declared dead. Made on first use. */
  readonly signal: AbortSignal;
  shuttingDown(): boolean;
  /** Interruptible; answers false when interrupted. */
  sleep(seconds: number): Promise<boolean>;
  readonly budget: { exhausted(): boolean };
  /** Reports progress if the job has a progress uid. */
  progress(message: string, indicator?: ProgressIndicator | null): Promise<void>;
  /** Gives the job back to the queue's end, as on a shutdown: `throw ctx.bounce()`. */
  bounce(): Error;
}

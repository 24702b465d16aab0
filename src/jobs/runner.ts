import type { z } from "zod";
import type { JobContext } from "./context.ts";

/** 1 = high resource cost (media, large exports), 2 = low. Only workers know it; enqueuers never name it. */
export type Category = 1 | 2;

/** What became of one item of a batch; `undefined` from `runMany` means every item succeeded. */
export type Outcome = { readonly ok: true } | { readonly ok: false; readonly error: unknown };

export interface RunnerPlan<K extends z.ZodType> {
  /** `runners.` and lowercase words joined by dots. */
  readonly name: `runners.${string}`;
  readonly category: Category;
  readonly kwargs: K;
  readonly doc: string;
  /** Hard limit in seconds; default 300 for category 2, 3600 for category 1. */
  readonly timeout?: number;
  /** Soft limit in seconds that `ctx.budget` tells of; default 50. */
  readonly budget?: number;
  /** Delays in seconds before each further attempt after a thrown error; default: none, it fails at once. */
  readonly retry?: readonly number[];
  /** How many workers may die over one entry before it counts as poison; default 3. */
  readonly maxDeliveries?: number;
  /** `late` runs at least once (default); `early` removes the entry first and runs at most once. */
  readonly ack?: "late" | "early";
  run?(ctx: JobContext, kwargs: z.output<K>): Promise<void>;
  /** Instead of `run`: all entries of this name from one take, at most 500, with one outcome per item. */
  runMany?(ctx: JobContext, items: readonly z.output<K>[]): Promise<readonly Outcome[] | undefined>;
}

export interface Runner<K extends z.ZodType = z.ZodType> extends RunnerPlan<K> {
  readonly timeout: number;
  readonly budget: number;
  readonly retry: readonly number[];
  readonly maxDeliveries: number;
  readonly ack: "late" | "early";
}

// biome-ignore lint/suspicious/noExplicitAny: runners of any kwargs stand side by side in a registry
export type AnyRunner = Runner<any>;

export const RUNNER_NAME = /^runners(\.[a-z0-9_]+)+$/;

const DEFAULT_TIMEOUT: Record<Category, number> = { 1: 3600, 2: 300 };

/** Declares what a job name does. Enqueuing takes the declaration, so a wrong name or wrong kwargs do not compile. */
export function defineRunner<K extends z.ZodType>(plan: RunnerPlan<K>): Runner<K> {
  if (!RUNNER_NAME.test(plan.name) || plan.name.length > 200)
    throw new TypeError(`${plan.name} is not a runner name: it must match ${RUNNER_NAME}`);
  if (Boolean(plan.run) === Boolean(plan.runMany)) throw new TypeError(`${plan.name} needs either run or runMany`);
  return {
    ...plan,
    timeout: plan.timeout ?? DEFAULT_TIMEOUT[plan.category],
    budget: plan.budget ?? 50,
    retry: plan.retry ?? [],
    maxDeliveries: plan.maxDeliveries ?? 3,
    ack: plan.ack ?? "late",
  };
}

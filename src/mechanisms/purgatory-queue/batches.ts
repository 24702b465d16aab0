import type { KernelContext } from "../../kernel/context.ts";
import { type Fenced, unlessFenced } from "../lock/index.ts";
import type { Claim } from "./scripts.ts";

/** Why a run ended, in the order in which the reasons are looked at. */
export type StopReason = "signal" | "time_exhausted" | "backpressure" | "credentials" | "list_exhausted";

/** A job that works batch by batch from a purgatory. Its hooks are asked at every boundary between two batches. */
export interface BatchRun {
  /** The runner's name, for the warning that an earlier run died. */
  readonly runner: string;
  shuttingDown(): boolean;
  /** Whether the run's time budget is used up. */
  exhausted(): boolean;
  /** Whether a queue further down is too long to add to. */
  backpressure?(): Promise<boolean> | boolean;
  /** Whether the provider that the work needs has no credentials. */
  missingCredentials?(): Promise<boolean> | boolean;
  /** Takes the next batch into the purgatory; only the first claim of a run may find one left behind. */
  claim(first: boolean): Promise<Claim | Fenced>;
  /** Works the batch off and acks it. A reason ends the run with it; what was not acked stays in the purgatory. */
  handle(batch: Claim): Promise<StopReason | undefined>;
}

export interface BatchRunResult {
  readonly stopReason: StopReason;
  readonly batches: number;
  /** How many items a dead run had left behind. */
  readonly recovered: number;
}

/** The loop that all such jobs share. A lost lock ends it with `lock_lost`: the rest is the next holder's. */
export async function runBatches(ctx: Pick<KernelContext, "alerts">, run: BatchRun): Promise<BatchRunResult> {
  let batches = 0;
  let recovered = 0;
  for (;;) {
    const stopReason = await boundary(run);
    if (stopReason) return { stopReason, batches, recovered };
    const batch = unlessFenced(await run.claim(batches === 0));
    if (batch.recovered) {
      recovered = batch.size;
      ctx.alerts.warning(`${run.runner}:recovering`, `an earlier run died and left ${batch.size} items; they go first`);
    }
    if (batch.size === 0) return { stopReason: "list_exhausted", batches, recovered };
    batches += 1;
    const ended = await run.handle(batch);
    if (ended) return { stopReason: ended, batches, recovered };
  }
}

async function boundary(run: BatchRun): Promise<StopReason | undefined> {
  if (run.shuttingDown()) return "signal";
  if (run.exhausted()) return "time_exhausted";
  if (await run.backpressure?.()) return "backpressure";
  if (await run.missingCredentials?.()) return "credentials";
  return undefined;
}

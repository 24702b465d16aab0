import type { JobEntry } from "./entry.ts";
import type { AnyRunner } from "./runner.ts";

/**
 * One entry in a worker's hands. Its claim is the pair of the worker's uid and the take number: every script that
 * settles the entry checks that the pair still stands, so whatever a late worker says about it has no effect.
 */
export class Held {
  readonly workerUid: string;
  readonly number: number;
  readonly job: JobEntry;
  readonly runner: AnyRunner;
  /** Checked kwargs. */
  readonly kwargs: unknown;
  /** Monotonic time of the take. */
  readonly takenAt: number;
  /** Monotonic time of the start; undefined while it waits for a slot. */
  startedAt: number | undefined = undefined;
  /** Made when somebody first asks for the signal, or when it must be aborted. */
  abort: AbortController | undefined = undefined;
  timedOut = false;
  /** Already settled by somebody else's decision: timeout, shutdown, declared dead. What the run says is ignored. */
  settled = false;

  constructor(claim: Claim, job: JobEntry, runner: AnyRunner, kwargs: unknown, takenAt: number) {
    this.workerUid = claim.workerUid;
    this.number = claim.number;
    this.job = job;
    this.runner = runner;
    this.kwargs = kwargs;
    this.takenAt = takenAt;
  }
}

/** What a script must be shown before it settles an entry. */
export interface Claim {
  readonly workerUid: string;
  readonly number: number;
}

export function abortHeld(held: Held, reason: string): void {
  held.abort ??= new AbortController();
  held.abort.abort(new Error(reason));
}

/** A runner that is told to stop gives its job back: `throw ctx.bounce()`. */
export class Bounced extends Error {
  override readonly name = "Bounced";
}

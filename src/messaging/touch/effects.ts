import type { Context } from "../../jobs/context.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import type { Callback, TouchChannel } from "./entries.ts";

/** Whose touch it is, for whoever hears of its end. */
export interface EndedTouch {
  readonly channel: TouchChannel;
  readonly touchUid: string;
  readonly userSub: string;
}

/** A touch arrived somewhere. */
export interface Arrival extends EndedTouch {
  /** The address. */
  readonly destination: string;
  readonly at: number;
}

export interface TouchEffects {
  /** One call for all arrivals of a batch, after they were settled. A repeat is possible, and names the same touch. */
  arrived(ctx: Context, arrivals: readonly Arrival[]): Promise<void>;
  /**
   * The job that tells of a failed touch; nothing where nobody wants to hear. It is queued by the very script that ends
   * the touch, so that a death in between cannot swallow it: unlike an arrival a failure is not found again.
   */
  failureJob(ctx: Context, touch: EndedTouch): Callback | undefined;
}

let installed: TouchEffects | undefined;

/** Installs what happens after a touch ended; answers how to take it away again. */
export function installTouchEffects(effects: TouchEffects): () => void {
  installed = effects;
  return () => {
    installed = undefined;
  };
}

/** The job that tells of a failure, unless the touch's own callback is that job already. */
export function failureJob(ctx: Context, touch: EndedTouch, own?: Callback | null): Callback | undefined {
  const job = installed?.failureJob(ctx, touch);
  return job?.name === own?.name ? undefined : job;
}

export async function arrived(ctx: Context, arrivals: readonly Arrival[]): Promise<void> {
  noteSteps(
    ctx,
    arrivals.map(({ touchUid: uid, at }) => ({ channel: "touch", uid, at, step: "delivered" })),
  );
  if (installed && arrivals.length > 0) await installed.arrived(ctx, arrivals);
}

/** Their telling was queued when they ended; this is their story. */
export function noteFailed(ctx: Context, uids: readonly string[], at: number): void {
  noteSteps(
    ctx,
    uids.map((uid) => ({ channel: "touch", uid, at, step: "failed" })),
  );
}

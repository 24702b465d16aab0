import type { Context } from "../../jobs/context.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import type { TouchChannel } from "./entries.ts";

/** How a touch ended, for whoever follows it. */
export interface TouchEnd {
  readonly type: "delivered" | "failed";
  readonly channel: TouchChannel;
  readonly touchUid: string;
  readonly userSub: string;
  /** Of an arrival: the address. */
  readonly destination?: string;
  readonly at: number;
}

export interface TouchEffects {
  /** One call for all ends of a batch, after they were settled. A repeat is possible, and names the same touch. */
  ended(ctx: Context, ends: readonly TouchEnd[]): Promise<void>;
}

let installed: TouchEffects | undefined;

/** Installs what happens after a touch ended; answers how to take it away again. */
export function installTouchEffects(effects: TouchEffects): () => void {
  installed = effects;
  return () => {
    installed = undefined;
  };
}

/** Touches that were never sent: nobody could be reached, or they waited too long. Their story has that step already. */
export async function unsent(ctx: Context, touches: readonly Omit<TouchEnd, "type">[]): Promise<void> {
  if (!installed || touches.length === 0) return;
  await installed.ended(
    ctx,
    touches.map((touch) => ({ ...touch, type: "failed" })),
  );
}

export async function ended(ctx: Context, ends: readonly TouchEnd[]): Promise<void> {
  noteSteps(
    ctx,
    ends.map(({ type: step, touchUid: uid, at }) => ({ channel: "touch", uid, at, step })),
  );
  if (installed && ends.length > 0) await installed.ended(ctx, ends);
}

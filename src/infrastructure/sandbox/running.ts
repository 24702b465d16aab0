import type { Context } from "../../jobs/context.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { errors } from "./errors.ts";

/** One per process at most, by its settings; a test may have several processes in one. */
export const running = new WeakMap<object, Sandbox>();

/**
 * Whether the callbacks of channels are to be lost, for whoever takes them. Only a process that has the simulated providers
 * can be told so.
 */
export function losesCallbacks({ config }: Pick<Context, "config">): boolean {
  return running.get(config)?.knobs.recipients.dropCallbacks ?? false;
}

/** The simulated providers of this process. Raises `sandbox_off` when there are none. */
export function sandboxOf(ctx: Pick<Context, "config">): Sandbox {
  const sandbox = running.get(ctx.config);
  if (!sandbox) throw errors.sandbox_off();
  return sandbox;
}

import type { Context } from "../../jobs/context.ts";
import type { RouteRequest, RouteSchemas } from "../../kernel/route.ts";
import { isLoopback } from "../../sandbox/loopback.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { errors } from "./errors.ts";
import { sandboxOf } from "./running.ts";

type Calling = Pick<RouteRequest<RouteSchemas>, "caller" | "headers">;

const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip"];

/**
 * Only callers on this machine get through. A proxy on the machine would make strangers look local, and a web page that
 * a developer visits could call loopback addresses by a name of its own; both are told by their headers.
 */
export function stageOf(ctx: Context, { caller, headers }: Calling): Sandbox {
  const named = URL.canParse(`http://${headers.host}`) ? new URL(`http://${headers.host}`).hostname : "";
  const origin = headers.origin;
  const fromHere = origin === undefined || (URL.canParse(origin) && isLoopback(new URL(origin).hostname));
  const direct = FORWARDED.every((header) => headers[header] === undefined);
  if (!isLoopback(caller.address) || !direct || !isLoopback(named) || !fromHere) throw errors.sandbox_only_local();
  return sandboxOf(ctx);
}

/** Whether a caller would get through, for those who offer the way. */
export function canOpen(ctx: Context, calling: Calling): boolean {
  try {
    stageOf(ctx, calling);
    return true;
  } catch (error) {
    if (errors.sandbox_off.matches(error) || errors.sandbox_only_local.matches(error)) return false;
    throw error;
  }
}

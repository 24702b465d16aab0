import { hash } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import type { DebugEvent, LogEntry } from "./entries.ts";
import { settings } from "./settings.ts";

const FAILURES: ReadonlySet<string> = new Set([
  "send_stale",
  "send_unreachable",
  "send_event_improper",
  "send_retry",
  "send_abandon",
  "send_unretryable",
]);

/** A uid that the same step of the same message always gets, so that telling it twice leaves one row. */
export function stepUid(...parts: readonly (string | number)[]): string {
  return `crl_utbl_${hash("sha256", parts.join("\n"), "base64url").slice(0, 22)}`;
}

/** A step of a person's debug trail, as far as the installation keeps it. */
export function trailOf(
  ctx: Pick<Context, "config">,
  step: { readonly uid: string; readonly userSub: string; readonly event: DebugEvent; readonly at: number },
  now: number,
): readonly LogEntry[] {
  const kept = ctx.config.get(settings.debugLog);
  if (kept === "none" || (kept === "failures" && !FAILURES.has(step.event.type))) return [];
  return [
    {
      table: "user_touch_debug_log",
      action: "insert",
      fields: { uid: step.uid, user_sub: step.userSub, event: step.event, created_at: step.at },
      queued_at: now,
    },
  ];
}

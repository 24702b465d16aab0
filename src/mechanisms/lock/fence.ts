import { lockErrors } from "./errors.ts";

/** What a script compares to know that its caller still holds the lock under which it works. */
export interface Fence {
  readonly key: string;
  readonly lockId: string;
}

/** The answer of a fenced script whose caller no longer holds the lock: nothing was changed. */
export interface Fenced {
  readonly ok: false;
  readonly reason: "fenced";
}

export const fenced: Fenced = { ok: false, reason: "fenced" };

/** What every fenced script replies when it refuses. */
export const FENCED_CODE = -10;

/** Passes a result through, and ends the work with `lock_lost` when it was refused by the fence. */
export function unlessFenced<T extends object>(result: T | Fenced): Exclude<T, Fenced> {
  if ("reason" in result && result.reason === "fenced") throw lockErrors.lock_lost();
  return result as Exclude<T, Fenced>;
}

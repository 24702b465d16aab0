import { DECISION_TTL } from "./keys.ts";

export { DECISION_TTL, decisionFlags } from "./keys.ts";

/**
 * A callback of a failed message is delivered at least once, so the same failure may ask twice whether to try again. The
 * first script that asks leaves a flag with its answer; every later one reads the flag and changes nothing. The flag
 * and what it decides are written by one script, so a crash leaves both or neither, and the flag expires by itself.
 *
 * Scripts include `decide.lua` and call `decide(flag, decision, ttl)`: nil to the first, the stored decision afterwards.
 */
export type Decision = "retry" | "abandon";

/** How long flags live, as the argument of the scripts that write them. */
export const DECISION_MS = DECISION_TTL * 1000;

/** What such a script answered: whether the decision was made now, and which one stands. */
export interface Decided {
  readonly fresh: boolean;
  readonly decision: Decision;
}

/** Reads the pair that deciding scripts answer per item: 1 or 0, and the decision that stands. */
export function decidedOf([fresh, decision]: readonly [number, string]): Decided {
  return { fresh: fresh === 1, decision: decision === "abandon" ? "abandon" : "retry" };
}

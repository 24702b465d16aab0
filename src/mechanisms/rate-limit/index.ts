/**
 * Rate limits. Every form is one call of one script; the forms differ in what they keep:
 * a flag, a counter, a list or set of times, or a set of different values. The state is in Redis alone and expires by
 * itself, so a crash leaves at worst an action counted that never happened, for one window.
 */
export { attempt, attemptMany, type LimitContext, type LimitResult } from "./attempt.ts";
export {
  counterLimit,
  distinctSetLimit,
  distinctTimesLimit,
  flagLimit,
  type Limit,
  type LimitRule,
  slidingListLimit,
  slidingSetLimit,
  type WhenUnreachable,
} from "./limit.ts";

export { Pace } from "./pace.ts";
export { MAX_PAIRS_PER_SETTLE, type Pair, type Refill, sendThroughWindow, type WindowPlan } from "./window.ts";

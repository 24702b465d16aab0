export { Pace } from "./pace.ts";
export { MAX_PAIRS_PER_SETTLE, type Pair, sendThroughWindow, type WindowPlan } from "./window.ts";

/** Calls that arrive while one is under way form the next group, so that a burst costs a few calls. */
export { Gathering, type GatheringPlan } from "./gathering.ts";

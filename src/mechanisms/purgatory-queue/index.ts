export { type BatchRun, type BatchRunResult, runBatches, type StopReason } from "./batches.ts";
export { type Effect, encodeEffects } from "./effects.ts";
export {
  decodeEntries,
  type Entry,
  MAX_ITEMS_PER_CALL,
  type Malformed,
  PurgatoryQueue,
  type PurgatoryQueuePlan,
  type PushAnswer,
  purgatoryQueue,
  quarantineFrom,
} from "./queue.ts";
export { ack, type Claim, push, type Remaining } from "./scripts.ts";
export { type Head, Standing } from "./standing.ts";

export { type FailureStory, readFailure, readSuccess, type SuccessStory } from "./callbacks.ts";
export { DEFAULT_FAILURE, DEFAULT_SUCCESS, sendTest, suppressUnreachable } from "./defaults.ts";
export {
  acceptHandover,
  type EnqueueAnswer,
  type EnqueueOptions,
  enqueueSms,
  forgetHandover,
  type NewSms,
  sendQueueLength,
  smsEntries,
} from "./enqueue.ts";
export type { SmsEntry } from "./entries.ts";
export { errors } from "./errors.ts";
export { decideFailures, type Verdict } from "./policy.ts";
export { type Segments, segmentsOf } from "./segments.ts";
export { settings as smsSettings } from "./settings.ts";
export { whereIs } from "./where.ts";

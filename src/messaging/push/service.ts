export { afterFailures, afterSuccesses } from "./callbacks.ts";
export type { Callback, CheckEntry, Contents, SendEntry } from "./entries.ts";
export {
  acceptPushes,
  enqueuePushes,
  forgetHandover,
  type NewPush,
  type PushesQueued,
  type PushOptions,
  pushEntries,
} from "./outbox.ts";
export { coldSetInfo, hotListInfo, sendQueueInfo } from "./overview.ts";
export { retryOrAbandon, type Verdict } from "./policy.ts";
export { settings as pushSettings } from "./settings.ts";
export { type FailureStory, readFailure, readSuccess, type SuccessStory } from "./story.ts";
export { whereIs } from "./where.ts";

export { type FailureInfo, type FailureStory, readFailure, readSuccess, type SuccessStory } from "./callbacks.ts";
export {
  acceptHandover,
  attemptsFor,
  type EnqueueAnswer,
  type EnqueueOptions,
  enqueueMails,
  forgetHandover,
  type NewMail,
  sendQueueLength,
} from "./enqueue.ts";
export type { Attempt } from "./entries.ts";
export { errors } from "./errors.ts";
export { decideFailures, handleFailures, type Verdict } from "./policy.ts";
export { settings as emailSettings } from "./settings.ts";
export { readToken, type UnsubscribeWish, unsubscribeUrl } from "./unsubscribe-token.ts";
export { whereIs } from "./where.ts";

export type {
  Context,
  EnqueueOptions,
  JobContext,
  JobInfo,
  Jobs,
  ProgressEvent,
  ProgressIndicator,
  ProgressReports,
} from "./context.ts";
export { jobErrors } from "./errors.ts";
export { jobKeys } from "./keys.ts";
export { JobQueue } from "./queue.ts";
export { type RecurringJob, recurring, type Schedule } from "./recurring.ts";
export { RecurringSet } from "./recurring-set.ts";
export { type AnyRunner, type Category, defineRunner, type Outcome, type Runner } from "./runner.ts";
export { jobSettings } from "./settings.ts";
export { Worker, type WorkerOptions } from "./worker.ts";

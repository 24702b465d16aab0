export { alertQuarantined, quarantineEntry, quarantineOf, reasonOf } from "./entry.ts";
export { quarantineErrors } from "./errors.ts";
export { QuarantinedEntry, quarantineKeys } from "./keys.ts";
export {
  discardQuarantined,
  listQuarantined,
  quarantinedQueues,
  type RequeueOptions,
  requeueQuarantined,
} from "./quarantine.ts";

export {
  type Due,
  type DueEntry,
  PurgatorySchedule,
  promoteDue,
  purgatorySchedule,
  type RawMember,
  type ScheduleMode,
} from "./schedule.ts";
export type { PromoteStop } from "./scripts.ts";

/** Counters by day and month: hot in Redis while a day is open, one SQL row a day when it is over. */
export {
  calendarIn,
  calendarOf,
  type Holding,
  isoDate,
  isoMonth,
  monthOfDate,
  parseIsoDate,
  StatisticsCalendar,
} from "./calendar.ts";
export {
  type Balance,
  brokenBalances,
  createStatsTable,
  type DailyStats,
  defineDailyCount,
  defineDailyStats,
  type EventPlan,
  type RotatedCounters,
  type Snapshot,
} from "./daily-stats.ts";
export {
  applyDeltas,
  countDeltas,
  drawDeltas,
  removalOf,
  type StagedDelta,
  stageDeltas,
  stagingOf,
  sweepDeltas,
} from "./deltas.ts";
export { dailyStats, type RotationTime, type StatsFamily, type StatsFamilyPlan } from "./family.ts";
export { datedCounterKeys } from "./keys.ts";
export { Kinds } from "./kinds.ts";
export { applyOperations, type CounterOperation, encodeOperations } from "./operations.ts";
export type { Plot } from "./plots.ts";
export { brokenOnOpenDays, type DayCounts, openDaysAsIs, type ReadCounts, readCounts, readDayAsIs } from "./read.ts";
export {
  forgetRotations,
  type RotateOptions,
  type RotateResult,
  type RotateStop,
  rotate,
} from "./rotate.ts";
export { statisticsSettings } from "./settings.ts";
export { breakdownKey, Stats, statsOf } from "./stats.ts";
export { datedCounterMigrations, type StatTables } from "./tables.ts";
export { type Counting, Tally } from "./tally.ts";
export { dropMonths, type MonthlyCounters, rotateUniques, type UniqueStats } from "./uniques.ts";

import type { z } from "zod";
import type { AnyRunner, Runner } from "./runner.ts";

export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";

/** When a recurring job runs. Every filter that is set must match the local wall time in `tz`. */
export interface Schedule {
  readonly tz: string;
  readonly months?: readonly number[];
  readonly days_of_month?: readonly number[];
  readonly days_of_week?: readonly Weekday[];
  readonly hours?: readonly number[];
  readonly minutes?: readonly number[];
  readonly seconds?: readonly number[];
}

/** A schedule in the statistics timezone of the installation, filled in when the house is assembled. */
export type StatisticsSchedule = Omit<Schedule, "tz"> & { readonly tz?: string };

export interface RecurringJob {
  readonly runner: AnyRunner;
  readonly kwargs: Record<string, unknown>;
  readonly schedule: StatisticsSchedule;
}

export function recurring<K extends z.ZodType>(
  runner: Runner<K>,
  kwargs: z.input<K> & Record<string, unknown>,
  schedule: StatisticsSchedule,
): RecurringJob {
  return { runner, kwargs, schedule };
}

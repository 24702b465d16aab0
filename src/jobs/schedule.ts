import { createHash } from "node:crypto";
import { canonicalJson } from "../kernel/keyspace/canonical.ts";
import { jobErrors } from "./errors.ts";
import type { Schedule, Weekday } from "./recurring.ts";
import { zoneOf } from "./zone.ts";

/**
 * When a recurring job runs next.
 *
 * Wall times are counted as seconds on a calendar without zones ("wall seconds": what a clock on the wall would be if it
 * stood in UTC). With `hours`, a job means a moment of the day, so every wall time has exactly one instant: the first at
 * which the wall clock shows it or has jumped past it. That one sentence gives both rules for daylight saving: a
 * repeated hour counts in its first pass, and everything inside a gap happens once, right after it. Without `hours`, a
 * job means a rhythm, so it simply follows elapsed time: a repeated hour has its ticks twice, a gap has none.
 */

const WEEKDAYS: readonly Weekday[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY = 86_400;
/** No zone ever set its clock by more than a day, and none is further than a day from UTC. */
const LONGEST_FOLD = 2 * DAY;
/** Leap days are at most this far apart, so a date that exists at all comes within it. */
const LONGEST_WAIT_DAYS = 8 * 366 + 1;

const NUMBER_FILTERS = [
  ["months", 1, 12],
  ["days_of_month", 1, 31],
  ["hours", 0, 23],
  ["minutes", 0, 59],
  ["seconds", 0, 59],
] as const;

/** What is wrong with a schedule, each fault as a sentence that says what to change; none when it is valid. */
export function scheduleFaults(schedule: Schedule): string[] {
  const faults: string[] = [];
  if (typeof schedule.tz !== "string" || !isZone(schedule.tz))
    faults.push(`tz ${JSON.stringify(schedule.tz)} is not a timezone: give an IANA name such as Europe/Paris or UTC`);

  for (const [name, smallest, largest] of NUMBER_FILTERS) {
    const values = schedule[name];
    if (values === undefined) continue;
    if (values.some((value) => !Number.isInteger(value) || value < smallest || value > largest))
      faults.push(`${name} must hold whole numbers from ${smallest} to ${largest}`);
    faults.push(...listFaults(name, values, (value) => value));
  }
  if (schedule.days_of_week !== undefined) {
    if (schedule.days_of_week.some((day) => !WEEKDAYS.includes(day)))
      faults.push(`days_of_week must hold days out of ${WEEKDAYS.join(", ")}`);
    faults.push(...listFaults("days_of_week", schedule.days_of_week, (day) => WEEKDAYS.indexOf(day)));
  }

  const { months, days_of_month, days_of_week, hours, minutes, seconds } = schedule;
  if (!(months || days_of_month || days_of_week || hours || minutes || seconds))
    faults.push("no filter is set: set at least seconds, for example seconds [0] for every minute");
  if (days_of_month && days_of_week)
    faults.push("days_of_month and days_of_week are both set: keep one, or declare the job twice");
  const required = [
    ["months or a day", months || days_of_month || days_of_week, { hours, minutes, seconds }],
    ["hours", hours, { minutes, seconds }],
    ["minutes", minutes, { seconds }],
  ] as const;
  for (const [coarse, isSet, finer] of required) {
    const missing = Object.entries(finer).flatMap(([name, values]) => (values ? [] : [name]));
    if (isSet && missing.length > 0) {
      faults.push(`${coarse} is set without ${missing.join(", ")}: set them too, [0] for the start`);
      break;
    }
  }
  if (faults.length === 0 && days_of_month && !someDateExists(months, days_of_month))
    faults.push("no such date comes within 8 years: let days_of_month fit at least one of the months");
  return faults;
}

/** Raises `invalid_schedule` with every fault at once. */
export function validateSchedule(schedule: Schedule): void {
  const faults = scheduleFaults(schedule);
  if (faults.length > 0) throw jobErrors.invalid_schedule({ message: faults.join("; "), detail: faults });
}

/** The smallest whole second strictly after `t` at which the schedule is due. */
export function nextRun(schedule: Schedule, t: number): number {
  const plan = compiled(schedule);
  const zone = zoneOf(schedule.tz);
  const second = Math.floor(t);

  if (plan.followsElapsedTime) {
    for (let from = second + 1; ; ) {
      const period = zone.periodAt(from);
      const due = plan.nextWall(from + period.offset) - period.offset;
      if (due < period.end) return due;
      from = period.end;
    }
  }

  // The wall clock has shown, or jumped past, everything up to here; a repeated hour shows nothing new.
  const current = zone.periodAt(second);
  let shown = second + current.offset;
  if (second - current.start < LONGEST_FOLD) {
    const before = zone.periodAt(current.start - 1);
    shown = Math.max(shown, before.end - 1 + before.offset);
  }
  const wall = plan.nextWall(shown + 1);
  for (let from = Math.max(second, wall - LONGEST_FOLD); ; ) {
    const period = zone.periodAt(from);
    const due = Math.max(period.start, wall - period.offset);
    if (due < period.end) return due;
    from = period.end;
  }
}

/** Identifies a recurring job by what it runs and when; independent of the zone's present offset. */
export function jobDigest(job: {
  name: string;
  kwargs: Readonly<Record<string, unknown>>;
  schedule: Schedule;
}): string {
  return digestOf({ name: job.name, kwargs: job.kwargs, schedule: job.schedule });
}

/** Identifies a whole set of recurring jobs, in whatever order they are declared. */
export function scheduleSetHash(digests: readonly string[]): string {
  return digestOf([...digests].sort());
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest().readBigUInt64BE(0).toString();
}

function listFaults<T>(name: string, values: readonly T[], rank: (value: T) => number): string[] {
  if (values.length === 0) return [`${name} is an empty list: leave it out to match everything`];
  return values.some((value, index) => index > 0 && rank(values[index - 1]!) >= rank(value))
    ? [`${name} must be sorted and without duplicates`]
    : [];
}

function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function someDateExists(months: readonly number[] | undefined, days: readonly number[]): boolean {
  const inLeapYear = (month: number) => new Date(Date.UTC(2024, month, 0)).getUTCDate();
  const longest = Math.max(...(months ?? [1]).map(inLeapYear));
  return days.some((day) => day <= longest);
}

interface CompiledSchedule {
  readonly followsElapsedTime: boolean;
  /** The first matching wall second that is not before `wall`. */
  nextWall(wall: number): number;
}

const compiledSchedules = new WeakMap<Schedule, CompiledSchedule>();

function compiled(schedule: Schedule): CompiledSchedule {
  const known = compiledSchedules.get(schedule);
  if (known) return known;
  const plan = compile(schedule);
  compiledSchedules.set(schedule, plan);
  return plan;
}

/** `steps[i]` is the smallest allowed value that is not below i, or undefined when there is none left. */
function steps(allowed: readonly number[] | undefined, count: number): (number | undefined)[] {
  return Array.from({ length: count + 1 }, (_, from) =>
    allowed ? allowed.find((value) => value >= from) : from < count ? from : undefined,
  );
}

function compile(schedule: Schedule): CompiledSchedule {
  const hourFrom = steps(schedule.hours, 24);
  const minuteFrom = steps(schedule.minutes, 60);
  const secondFrom = steps(schedule.seconds, 60);
  const firstOfMinute = secondFrom[0]!;
  const firstOfHour = minuteFrom[0]! * 60 + firstOfMinute;

  const nextTimeOfDay = (from: number): number | undefined => {
    const hour = Math.floor(from / 3600);
    const minute = Math.floor((from % 3600) / 60);
    if (hourFrom[hour] === hour) {
      if (minuteFrom[minute] === minute) {
        const second = secondFrom[from % 60];
        if (second !== undefined) return from - (from % 60) + second;
      }
      const later = minuteFrom[minute + 1];
      if (later !== undefined) return hour * 3600 + later * 60 + firstOfMinute;
    }
    const laterHour = hourFrom[hour + 1];
    return laterHour === undefined ? undefined : laterHour * 3600 + firstOfHour;
  };

  const months = schedule.months && new Set(schedule.months);
  const daysOfMonth = schedule.days_of_month && new Set(schedule.days_of_month);
  const daysOfWeek = schedule.days_of_week && new Set(schedule.days_of_week);
  const nextDay = (from: number): number => {
    if (!(months || daysOfMonth || daysOfWeek)) return from;
    for (let day = from; day <= from + LONGEST_WAIT_DAYS; ) {
      const date = new Date(day * DAY * 1000);
      if (months && !months.has(date.getUTCMonth() + 1)) {
        day = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / 1000 / DAY;
        continue;
      }
      const fits =
        (!daysOfMonth || daysOfMonth.has(date.getUTCDate())) &&
        (!daysOfWeek || daysOfWeek.has(WEEKDAYS[(date.getUTCDay() + 6) % 7]!));
      if (fits) return day;
      day += 1;
    }
    throw jobErrors.invalid_schedule({ message: "no such date comes within 8 years" });
  };

  return {
    followsElapsedTime: schedule.hours === undefined,
    nextWall(wall) {
      const today = Math.floor(wall / DAY);
      const day = nextDay(today);
      const time = nextTimeOfDay(day === today ? wall - today * DAY : 0);
      return time === undefined ? nextDay(day + 1) * DAY + nextTimeOfDay(0)! : day * DAY + time;
    },
  };
}

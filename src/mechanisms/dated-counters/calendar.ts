import type { Clock } from "../../kernel/clock.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { statisticsSettings } from "./settings.ts";

/** How long a family's days stay open, in local days with today included, and the seconds of grace after midnight. */
export interface Holding {
  readonly held: number;
  readonly grace?: number;
}

export const DEFAULT_GRACE = 600;
/** Clocks of two instances may differ by this much: a day rotates only when it is closed on all of them. */
export const SKEW = 300;
const DAY = 86_400;
/** Zones change their offset on quarter hours only. */
const QUARTER = 900;

/**
 * Days and months of the statistics timezone. A unix date is the number of a local calendar day (1970-01-01 is 0), a
 * unix month the number of a local calendar month; both are independent of how long that day or month was.
 */
export class StatisticsCalendar {
  readonly timezone: string;
  readonly #format: Intl.DateTimeFormat;
  readonly #offsets = new Map<number, number>();

  constructor(timezone: string) {
    this.timezone = timezone;
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: timezone,
      calendar: "gregory",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /** The local day that holds this instant. */
  unixDate(time: number): number {
    return Math.floor((time + this.#offsetAt(time)) / DAY);
  }

  unixMonth(time: number): number {
    return monthOfDate(this.unixDate(time));
  }

  /**
   * The first instant of a local day. Mostly where the offset of that time says; around a change of clocks it is searched
   * for, because a day may begin at any offset and have 23 to 25 hours, or not be there at all.
   */
  startOf(unixDate: number): number {
    const likely = unixDate * DAY - this.#offsetAt(unixDate * DAY);
    if (this.unixDate(likely) === unixDate && this.unixDate(likely - 1) === unixDate - 1) return likely;
    let before = unixDate * DAY - 2 * DAY;
    let from = unixDate * DAY + 2 * DAY;
    while (from - before > 1) {
      const middle = Math.floor((before + from) / 2);
      if (this.unixDate(middle) >= unixDate) from = middle;
      else before = middle;
    }
    return from;
  }

  /** The oldest day that may still be counted on. */
  oldestOpenDate(now: number, { held, grace = DEFAULT_GRACE }: Holding): number {
    return this.unixDate(now - grace) - held + 1;
  }

  /** The newest day that may be moved away. Open and rotatable days never overlap. */
  newestRotatableDate(now: number, { held, grace = DEFAULT_GRACE }: Holding): number {
    return this.unixDate(now - grace - SKEW) - held;
  }

  /** The newest month that is over, for counters that are kept by month. */
  newestRotatableMonth(now: number, grace = DEFAULT_GRACE): number {
    return this.unixMonth(now - grace - SKEW) - 1;
  }

  /**
   * The day an event counts on: its own, unless that is closed already or further ahead than clocks may differ. Times
   * that are no times, or that no calendar reaches, count on the nearest open day: counting must never fail for them.
   */
  dateFor(clock: Pick<Clock, "now">, time: number, holding: Holding): { date: number; redated: boolean } {
    const now = clock.now();
    const near = Number.isNaN(time) ? now : Math.min(Math.max(time, 0), now + 3 * DAY);
    const own = this.unixDate(near);
    const date = Math.min(Math.max(own, this.oldestOpenDate(now, holding)), this.unixDate(now) + 1);
    return { date, redated: date !== own || Number.isNaN(time) };
  }

  #offsetAt(time: number): number {
    const quarter = Math.floor(time / QUARTER);
    const known = this.#offsets.get(quarter);
    if (known !== undefined) return known;
    if (this.#offsets.size > 1000) this.#offsets.clear();
    const instant = quarter * QUARTER;
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(instant * 1000)) parts[type] = Number(value);
    const local = Date.UTC(parts.year!, parts.month! - 1, parts.day!, parts.hour!, parts.minute!, parts.second!);
    const offset = local / 1000 - instant;
    this.#offsets.set(quarter, offset);
    return offset;
  }
}

const calendars = new Map<string, StatisticsCalendar>();

/** The calendar of the installation. */
export function calendarOf({ config }: Pick<KernelContext, "config">): StatisticsCalendar {
  return calendarIn(config.get(statisticsSettings.timezone));
}

export function calendarIn(timezone: string): StatisticsCalendar {
  const calendar = calendars.get(timezone) ?? new StatisticsCalendar(timezone);
  calendars.set(timezone, calendar);
  return calendar;
}

/** `2022-12-05` for 19331. */
export function isoDate(unixDate: number): string {
  return new Date(unixDate * DAY * 1000).toISOString().slice(0, 10);
}

export function parseIsoDate(iso: string): number {
  return Math.round(Date.parse(`${iso}T00:00:00Z`) / 1000 / DAY);
}

/** `2024-03` for 650. */
export function isoMonth(unixMonth: number): string {
  return `${1970 + Math.floor(unixMonth / 12)}-${String((unixMonth % 12) + 1).padStart(2, "0")}`;
}

export function monthOfDate(unixDate: number): number {
  const day = new Date(unixDate * DAY * 1000);
  return (day.getUTCFullYear() - 1970) * 12 + day.getUTCMonth();
}

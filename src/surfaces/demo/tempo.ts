import type { Person } from "./cast.ts";
import type { Tempo } from "./crowd.ts";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 24 * HOUR;
const every = (seconds: number) => () => DAY / seconds;

/** What somebody sees who looks at the dashboard for a minute: a few messages, a click, and now and then more. */
export const LIVE: Tempo = {
  sessions: every(15),
  payments: every(2 * MINUTE),
  newcomers: every(5 * MINUTE),
  whims: every(3 * MINUTE),
  reading: [3, 60],
  away: [3 * MINUTE, 12 * MINUTE],
  anyChannel: true,
  mostPeople: 150,
  awake: () => 1,
};

/** A month as it is: few things an hour, by day and not at night, and less on weekends. */
export const LIFELIKE: Tempo = {
  sessions: (people) => people * 0.3,
  payments: (people) => people * 0.05,
  newcomers: (people) => people * 0.01,
  whims: (people) => people * 0.025,
  reading: [MINUTE, 5 * HOUR],
  away: [DAY, 6 * DAY],
  anyChannel: false,
  mostPeople: 400,
  awake: (person, now) => AWAKE[hourOf(person, now)]! * WEEK[new Date(now * 1000).getUTCDay()]!,
};

/** From Sunday to Saturday. */
const WEEK = [0.65, 1, 0.95, 0.95, 0.9, 0.85, 0.6] as const;
/** From midnight to eleven at night. */
const AWAKE = [
  0.05, 0.02, 0.02, 0.02, 0.05, 0.2, 0.6, 0.9, 1, 0.9, 0.8, 0.75, 0.8, 0.75, 0.7, 0.7, 0.75, 0.85, 0.9, 0.95, 1, 0.9,
  0.6, 0.25,
] as const;

const formats = new Map<string, Intl.DateTimeFormat>();

function hourOf({ zone }: Person, now: number): number {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hour: "numeric", hourCycle: "h23" });
    formats.set(zone, format);
  }
  return Number(format.format(now * 1000));
}

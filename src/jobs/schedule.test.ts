import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import type { Schedule, Weekday } from "./recurring.ts";
import { jobDigest, nextRun, scheduleFaults, scheduleSetHash, validateSchedule } from "./schedule.ts";

const LOS_ANGELES = "America/Los_Angeles";
const at = (text: string) => Temporal.ZonedDateTime.from(text).epochMilliseconds / 1000;

/** The next `count` times. */
function runs(schedule: Schedule, from: number, count: number): number[] {
  const found: number[] = [];
  for (let t = from; found.length < count; ) {
    t = nextRun(schedule, t);
    found.push(t);
  }
  return found;
}

describe("the next time of a schedule", () => {
  it("runs a 02:00 job at 03:00 on the day that has no 02:00", () => {
    const schedule: Schedule = { tz: LOS_ANGELES, hours: [2], minutes: [0], seconds: [0] };
    expect(runs(schedule, 1772877600, 2)).toEqual([1772964000, 1773046800]);
  });

  it("runs a 01:30 job once on the day that has 01:30 twice", () => {
    const schedule: Schedule = { tz: LOS_ANGELES, hours: [1], minutes: [30], seconds: [0] };
    expect(runs(schedule, 1793435400, 2)).toEqual([1793521800, 1793611800]);
    expect(nextRun(schedule, 1793521799)).toBe(1793521800);
    expect(nextRun(schedule, 1793525399)).toBe(1793611800);
  });

  it("runs an hourly rhythm in both passes of a repeated hour", () => {
    const schedule: Schedule = { tz: LOS_ANGELES, minutes: [30], seconds: [0] };
    expect(runs(schedule, 1793521800 - 1, 3)).toEqual([1793521800, 1793525400, 1793529000]);
  });

  it("keeps an hourly rhythm over a gap without a tick too many", () => {
    const schedule: Schedule = { tz: LOS_ANGELES, minutes: [30], seconds: [0] };
    const lastBefore = at("2026-03-08T01:30:00[America/Los_Angeles]");
    expect(runs(schedule, lastBefore, 2)).toEqual([lastBefore + 3600, lastBefore + 7200]);
  });

  it("is strictly later than the time asked for, whole or not", () => {
    const everyMinute: Schedule = { tz: "UTC", seconds: [0] };
    expect(nextRun(everyMinute, 0)).toBe(60);
    expect(nextRun(everyMinute, 59.5)).toBe(60);
    expect(nextRun(everyMinute, 60)).toBe(120);
  });

  it("wraps to the next day and to the first minute of a later hour", () => {
    expect(nextRun({ tz: "UTC", hours: [0, 12], minutes: [0], seconds: [0] }, 43200)).toBe(86400);
    const quarters: Schedule = { tz: "UTC", hours: [4], minutes: [0, 15, 30, 45], seconds: [0] };
    expect(nextRun(quarters, 2 * 3600 + 20 * 60)).toBe(4 * 3600);
  });

  it("collapses all matches inside a gap into one run", () => {
    const schedule: Schedule = { tz: LOS_ANGELES, hours: [1, 2, 3], minutes: [0, 20, 40], seconds: [0] };
    const gapEnd = 1772964000;
    expect(runs(schedule, gapEnd - 1201, 4)).toEqual([gapEnd - 1200, gapEnd, gapEnd + 1200, gapEnd + 2400]);
  });

  it("skips months that are too short for the day", () => {
    const schedule: Schedule = { tz: "UTC", days_of_month: [31], hours: [0], minutes: [0], seconds: [0] };
    expect(runs(schedule, at("2026-01-31T00:00:00[UTC]"), 2)).toEqual([
      at("2026-03-31T00:00:00[UTC]"),
      at("2026-05-31T00:00:00[UTC]"),
    ]);
  });

  it("finds a leap day across a century that has none", () => {
    const schedule: Schedule = {
      tz: "UTC",
      months: [2],
      days_of_month: [29],
      hours: [12],
      minutes: [0],
      seconds: [0],
    };
    expect(nextRun(schedule, at("2096-02-29T12:00:00[UTC]"))).toBe(at("2104-02-29T12:00:00[UTC]"));
  });

  it("collapses the day that Apia skipped into the first instant after it", () => {
    const schedule: Schedule = { tz: "Pacific/Apia", hours: [2], minutes: [0], seconds: [0] };
    expect(runs(schedule, at("2011-12-29T02:00:00[Pacific/Apia]"), 2)).toEqual([
      at("2011-12-31T00:00:00[Pacific/Apia]"),
      at("2011-12-31T02:00:00[Pacific/Apia]"),
    ]);
  });

  it("answers more than 20,000 questions a second", () => {
    const schedule: Schedule = {
      tz: LOS_ANGELES,
      days_of_week: ["mon", "thu"],
      hours: [2],
      minutes: [0],
      seconds: [0],
    };
    nextRun(schedule, 1_772_000_000);
    const started = performance.now();
    for (let i = 0; i < 5_000; i++) nextRun(schedule, 1_772_000_000 + i * 5_000);
    expect(performance.now() - started).toBeLessThan(250);
  });
});

const WEEKDAYS: Weekday[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** The definition, minute by minute, on another library's calendar; only for schedules whose seconds are [0]. */
function oracle(schedule: Schedule, t: number, limit: number): number | undefined {
  const wallAt = (second: number) =>
    Temporal.Instant.fromEpochMilliseconds(second * 1000)
      .toZonedDateTimeISO(schedule.tz)
      .toPlainDateTime();
  const matches = (wall: Temporal.PlainDateTime) =>
    (schedule.months?.includes(wall.month) ?? true) &&
    (schedule.days_of_month?.includes(wall.day) ?? true) &&
    (schedule.days_of_week?.includes(WEEKDAYS[wall.dayOfWeek - 1]!) ?? true) &&
    (schedule.hours?.includes(wall.hour) ?? true) &&
    (schedule.minutes?.includes(wall.minute) ?? true);
  const compare = Temporal.PlainDateTime.compare;

  const first = Math.floor(t / 60) * 60 + 60;
  let latest = wallAt(first - 4 * 3600);
  for (let second = first - 4 * 3600; second < first + limit; second += 60) {
    const wall = wallAt(second);
    const jumped: Temporal.PlainDateTime[] = [];
    for (let missed = latest.add({ minutes: 1 }); compare(missed, wall) < 0; missed = missed.add({ minutes: 1 }))
      jumped.push(missed);
    const isNew = compare(wall, latest) > 0;
    if (isNew) latest = wall;
    if (second < first) continue;
    if (!schedule.hours ? matches(wall) : isNew && (matches(wall) || jumped.some(matches))) return second;
  }
  return undefined;
}

const subset = <T>(values: readonly T[], largest: number) =>
  fc
    .uniqueArray(fc.nat({ max: values.length - 1 }), { minLength: 1, maxLength: largest })
    .map((indexes) => indexes.sort((a, b) => a - b).map((index) => values[index]!));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Instants around which wall clocks jump, in zones whose rules differ the most. */
const CHANGES: readonly (readonly [tz: string, around: number])[] = [
  [LOS_ANGELES, 1772964000],
  [LOS_ANGELES, at("2026-11-01T01:00:00[America/Los_Angeles]")],
  ["Australia/Lord_Howe", at("2026-04-05T01:30:00[Australia/Lord_Howe]")],
  ["Australia/Lord_Howe", at("2026-10-04T02:30:00[Australia/Lord_Howe]")],
  ["Pacific/Apia", at("2011-12-31T00:00:00[Pacific/Apia]")],
  ["Pacific/Chatham", at("2026-04-05T03:00:00[Pacific/Chatham]")],
  ["Pacific/Chatham", at("2026-09-27T04:00:00[Pacific/Chatham]")],
  ["Asia/Kathmandu", 1_772_000_000],
  ["Africa/Casablanca", at("2026-02-15T02:00:00[Africa/Casablanca]")],
  ["America/Havana", at("2026-03-08T01:00:00[America/Havana]")],
  ["Asia/Beirut", at("2026-03-29T01:00:00[Asia/Beirut]")],
];

describe("the next time against the definition", () => {
  const schedules = fc.record({
    change: fc.constantFrom(...CHANGES),
    shift: fc.integer({ min: -6 * 3600, max: 4 * 3600 }),
    hours: fc.option(subset(range(0, 23), 6), { nil: undefined }),
    minutes: subset(range(0, 59), 3),
    days: fc.option(subset(WEEKDAYS, 5), { nil: undefined }),
  });

  it("agrees around every kind of clock change", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(schedules, ({ change: [tz, around], shift, hours, minutes, days }) => {
        const schedule: Schedule = {
          tz,
          ...(hours && days ? { days_of_week: days } : {}),
          ...(hours ? { hours } : {}),
          minutes,
          seconds: [0],
        };
        validateSchedule(schedule);
        const t = around + shift;
        const limit = 26 * 3600;
        const next = nextRun(schedule, t);
        expect(next).toBeGreaterThan(t);
        expect(next <= Math.floor(t / 60) * 60 + limit ? next : undefined).toBe(oracle(schedule, t, limit));
      }),
      { numRuns: 120 },
    );
  });

  it("always moves forward, whatever the schedule", () => {
    fc.assert(
      fc.property(
        fc.record({
          tz: fc.constantFrom("UTC", LOS_ANGELES, "Australia/Lord_Howe", "Asia/Kathmandu"),
          t: fc.integer({ min: 0, max: 4_000_000_000 }),
          months: subset(range(1, 12), 3),
          days: subset(range(1, 28), 3),
          seconds: subset(range(0, 59), 4),
        }),
        ({ tz, t, months, days, seconds }) => {
          const schedule: Schedule = { tz, months, days_of_month: days, hours: [2], minutes: [15], seconds };
          const [first, second] = runs(schedule, t, 2) as [number, number];
          expect(first).toBeGreaterThan(t);
          expect(second).toBeGreaterThan(first);
          // Asking from anywhere between gives the same answer.
          expect(nextRun(schedule, first - 1)).toBe(first);
          expect(nextRun(schedule, Math.floor((first + second) / 2))).toBe(second);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("a schedule's faults", () => {
  const faulty: readonly (readonly [why: string, schedule: object, expected: RegExp])[] = [
    ["an unknown timezone", { tz: "Mars/Olympus", seconds: [0] }, /tz "Mars\/Olympus" .* IANA name/],
    ["an offset instead of a timezone", { tz: "+01:00", seconds: [0] }, /IANA name/],
    ["no timezone", { seconds: [0] }, /IANA name/],
    ["no filter", { tz: "UTC" }, /set at least seconds/],
    ["an empty list", { tz: "UTC", seconds: [] }, /seconds is an empty list/],
    ["an unsorted list", { tz: "UTC", seconds: [30, 0] }, /seconds must be sorted/],
    ["a duplicate", { tz: "UTC", seconds: [0, 0] }, /without duplicates/],
    ["a number out of range", { tz: "UTC", seconds: [60] }, /seconds must hold whole numbers from 0 to 59/],
    ["a fraction", { tz: "UTC", seconds: [0.5] }, /whole numbers/],
    ["month 0", { tz: "UTC", months: [0], hours: [0], minutes: [0], seconds: [0] }, /months must hold/],
    ["an unknown weekday", { tz: "UTC", days_of_week: ["day"], hours: [0], minutes: [0], seconds: [0] }, /days out of/],
    [
      "both day filters",
      { tz: "UTC", days_of_month: [1], days_of_week: ["mon"], hours: [0], minutes: [0], seconds: [0] },
      /keep one/,
    ],
    ["a day without a time", { tz: "UTC", days_of_week: ["mon"], hours: [1] }, /without minutes, seconds/],
    ["hours without minutes", { tz: "UTC", hours: [1], seconds: [0] }, /hours is set without minutes/],
    ["minutes without seconds", { tz: "UTC", minutes: [1] }, /minutes is set without seconds/],
    [
      "30 February",
      { tz: "UTC", months: [2], days_of_month: [30], hours: [0], minutes: [0], seconds: [0] },
      /within 8 years/,
    ],
    [
      "31 April or June",
      { tz: "UTC", months: [4, 6], days_of_month: [31], hours: [0], minutes: [0], seconds: [0] },
      /within 8 years/,
    ],
  ];
  it.each(faulty)("include %s", (_why, schedule, expected) => {
    expect(scheduleFaults(schedule as Schedule)).toHaveLength(1);
    expect(() => validateSchedule(schedule as Schedule)).toThrow(expected);
  });

  it("are absent from 29 February and from a plain minute", () => {
    validateSchedule({ tz: "UTC", months: [2], days_of_month: [29, 30], hours: [0], minutes: [0], seconds: [0] });
    validateSchedule({ tz: "UTC", seconds: [0] });
  });
});

describe("digests of recurring jobs", () => {
  const schedule: Schedule = { tz: "UTC", minutes: [0], seconds: [0] };

  it("depend on name, kwargs and schedule, and on nothing else", () => {
    const digest = jobDigest({ name: "runners.example", kwargs: { b: 1, a: [2] }, schedule });
    expect(digest).toMatch(/^\d{1,20}$/);
    const reordered: Schedule = { seconds: [0], minutes: [0], tz: "UTC" };
    expect(jobDigest({ schedule: reordered, kwargs: { a: [2], b: 1 }, name: "runners.example" })).toBe(digest);
    expect(jobDigest({ name: "runners.other", kwargs: { b: 1, a: [2] }, schedule })).not.toBe(digest);
    expect(jobDigest({ name: "runners.example", kwargs: { b: 1, a: [3] }, schedule })).not.toBe(digest);
    expect(
      jobDigest({ name: "runners.example", kwargs: { b: 1, a: [2] }, schedule: { ...schedule, minutes: [1] } }),
    ).not.toBe(digest);
  });

  it("are the first eight bytes of SHA-256 in decimal", () => {
    // printf '{"kwargs":{},"name":"runners.example","schedule":{"minutes":[0],"seconds":[0],"tz":"UTC"}}' | sha256sum
    expect(jobDigest({ name: "runners.example", kwargs: {}, schedule })).toBe(BigInt("0x61a627c75ee53cef").toString());
  });

  it("give one hash for a set in any order", () => {
    expect(scheduleSetHash(["10", "9"])).toBe(scheduleSetHash(["9", "10"]));
    expect(scheduleSetHash(["10", "9"])).not.toBe(scheduleSetHash(["10"]));
  });
});

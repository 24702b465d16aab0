import fc from "fast-check";
import { expect, test } from "vitest";
import { calendarIn } from "../../mechanisms/dated-counters/index.ts";
import { type Choices, daysOf, EVERY_DAY, maskOf, TimeRange, weekdayBit, windowOf } from "./window.ts";

const preset = (name: "unspecified" | "morning" | "afternoon" | "evening", mask = EVERY_DAY) => ({
  mask,
  range: { type: "preset" as const, preset: name },
});
const explicit = (start: number, end: number, mask = EVERY_DAY) => ({
  mask,
  range: { type: "explicit" as const, start, end },
});

test("a channel follows its own choice, and what it leaves open the others", () => {
  const cases: readonly (readonly [Parameters<typeof windowOf>[0], Choices, readonly [number, number, number]])[] = [
    ["email", {}, [127, 21_600, 39_600]],
    ["sms", {}, [127, 28_800, 39_600]],
    ["sms", { sms: preset("evening", 62) }, [62, 57_600, 61_200]],
    ["sms", { sms: explicit(72_000, 73_800, 42) }, [42, 72_000, 73_800]],
    // No day is no day, whatever the others say.
    ["sms", { sms: preset("morning", 0), email: explicit(1, 2) }, [0, 28_800, 39_600]],
    // Without a row of its own: days and hours of the best match.
    ["email", { sms: explicit(72_000, 73_800, 42) }, [42, 72_000, 73_800]],
    ["push", { sms: explicit(72_000, 73_800, 42) }, [42, 72_000, 73_800]],
    // Unspecified hours: own days, hours of the best match.
    ["email", { email: preset("unspecified", 62), sms: explicit(72_000, 73_800, 42) }, [62, 72_000, 73_800]],
    // Hours of one's own before times of day, then fewer days, then the channel most alike.
    ["push", { email: preset("evening"), sms: explicit(1, 2) }, [127, 1, 2]],
    ["push", { email: explicit(5, 6, 127), sms: explicit(1, 2, 1) }, [1, 1, 2]],
    ["push", { email: explicit(5, 6), sms: explicit(1, 2) }, [127, 5, 6]],
    ["sms", { email: preset("evening", 62), push: preset("afternoon", 62) }, [62, 57_600, 61_200]],
    ["email", { sms: preset("unspecified", 5) }, [5, 21_600, 39_600]],
    ["email", { sms: preset("evening", 0), push: preset("afternoon") }, [127, 46_800, 57_600]],
  ];
  for (const [channel, choices, [mask, start, end]] of cases)
    expect(windowOf(channel, choices)).toEqual({ mask, start, end });
});

test("hours that end before they begin, or beyond the next day, are refused", () => {
  const read = (start: number, end: number) => TimeRange.safeParse({ type: "explicit", start, end }).success;
  expect([read(0, 0), read(82_800, 90_000), read(86_399, 172_799)]).toEqual([true, true, true]);
  expect([read(2, 1), read(86_400, 86_401), read(0, 172_800), read(-1, 5), read(0.5, 1)]).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});

test("days and their bits are the same thing", () => {
  expect([maskOf(["Sunday"]), maskOf(["Saturday"]), weekdayBit(0)]).toEqual([1, 64, 16]);
  fc.assert(fc.property(fc.integer({ min: 0, max: 127 }), (mask) => maskOf(daysOf(mask)) === mask));
});

test("in every zone and over ten years a local day begins where the day before ends, and its hours keep their order", () => {
  const zones = Intl.supportedValuesOf("timeZone");
  expect(zones.length).toBeGreaterThan(400);
  const first = Math.floor(Date.UTC(2020, 0, 1) / 86_400_000);
  const STEP = 9;
  const faults: string[] = [];
  let changes = 0;
  for (const zone of zones) {
    const calendar = calendarIn(zone);
    let midnight = calendar.startOf(first);
    for (let date = first; date < first + 3_653; date += STEP) {
      const next = calendar.startOf(date + STEP);
      // Where clocks do not change the days between have 24 hours; where they do, each is looked at.
      const days =
        next - midnight === STEP * 86_400 ? [date] : Array.from({ length: STEP }, (_, ahead) => date + ahead);
      for (const day of days) {
        const [begin, end] = [calendar.startOf(day), calendar.startOf(day + 1)];
        const dates = [begin - 1, begin, end - 1, end].map((at) => calendar.unixDate(at) - day);
        // Antarctica moved its clocks by three hours at once.
        if (dates.join() !== "-1,0,0,1" || Math.abs(end - begin - 86_400) > 3 * 3_600) faults.push(`${zone} ${day}`);
        if (end - begin !== 86_400) changes += 1;
      }
      midnight = next;
    }
  }
  expect(faults).toEqual([]);
  expect(changes).toBeGreaterThan(2_000);
}, 120_000);

test("a day whose midnight is skipped begins at its first instant, and one whose midnight comes twice at the first", () => {
  const clockAt = (zone: string, date: string) => {
    const [year, month, day] = date.split("-").map(Number) as [number, number, number];
    const at = calendarIn(zone).startOf(Date.UTC(year, month - 1, day) / 86_400_000);
    const shown = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
    return [shown.format(at * 1000), shown.format(at * 1000 - 1)];
  };
  // Chile goes from 24:00 to 01:00 in spring; Cuba from 01:00 back to midnight in autumn.
  expect(clockAt("America/Santiago", "2026-09-06")).toEqual(["2026-09-06 01:00", "2026-09-05 23:59"]);
  expect(clockAt("America/Havana", "2026-11-01")).toEqual(["2026-11-01 00:00", "2026-10-31 23:59"]);
});

import { expect, test } from "vitest";
import { daysCounted, joinDays } from "../../dashboard/src/api/days.ts";

const ZONE = "America/Los_Angeles";
const NOON = Date.parse("2026-11-16T12:00:00-08:00") / 1000;
/** As the server tells days that are over: dense numbers, and a breakdown by the index of the day. */
const finished = {
  labels: ["2026-11-12", "2026-11-13", "2026-11-14"],
  sent: [5, 6, 7],
  failed: [0, 1, 0],
  total: [90, 91, 92],
  sent_breakdown: { ses: [5, 6, 0], smtp: [0, 0, 7] },
  failed_breakdown: { "ses:Throttled": { "1": 1 } },
};
const open = {
  today: { sent: 2, failed: 1, sent_breakdown: { ses: 1, mailgun: 1 }, failed_breakdown: { "ses:Throttled": 1 } },
  yesterday: { sent: 9, failed: 0, sent_breakdown: { ses: 9 }, failed_breakdown: {} },
  checked_at: NOON,
};

test("days that may still change follow those that are over, told apart by their number", () => {
  const days = joinDays(finished, open, ZONE, 30);
  expect(days.labels).toEqual(["2026-11-12", "2026-11-13", "2026-11-14", "2026-11-15", "2026-11-16"]);
  expect(days.open).toBe(2);
  expect(days.events).toMatchObject({ sent: [5, 6, 7, 9, 2], failed: [0, 1, 0, 0, 1] });
});

test("every key of a breakdown has a number for every day, also one of today alone and one that is seldom", () => {
  const { breakdowns } = joinDays(finished, open, ZONE, 30);
  expect(breakdowns).toEqual({
    sent: { ses: [5, 6, 0, 9, 1], smtp: [0, 0, 7, 0, 0], mailgun: [0, 0, 0, 0, 1] },
    failed: { "ses:Throttled": [0, 1, 0, 0, 1] },
  });
});

test("what is looked up when a day ends is unknown on days that are open, rather than nothing", () => {
  expect(joinDays(finished, open, ZONE, 30).events.total).toEqual([90, 91, 92, null, null]);
});

test("a span has as many days as were asked for, open ones among them", () => {
  const days = joinDays(finished, open, ZONE, 3);
  expect(days.labels).toEqual(["2026-11-14", "2026-11-15", "2026-11-16"]);
  expect([days.open, days.events.sent, days.breakdowns.sent?.smtp]).toEqual([2, [7, 9, 2], [7, 0, 0]]);
  expect(joinDays(finished, open, ZONE, 1)).toMatchObject({ labels: ["2026-11-16"], open: 1, events: { sent: [2] } });
});

test("a day that was open a moment ago and is over now is told once, as it is over", () => {
  const later = {
    ...finished,
    labels: [...finished.labels, "2026-11-15"],
    sent: [5, 6, 7, 10],
    failed: [0, 1, 0, 0],
    total: [90, 91, 92, 93],
  };
  const days = joinDays(later, open, ZONE, 30);
  expect([days.labels.slice(-2), days.open, days.events.sent]).toEqual([
    ["2026-11-15", "2026-11-16"],
    1,
    [5, 6, 7, 10, 2],
  ]);
});

test("days before anything was counted are left out, but never so many that no chart is left", () => {
  const daysOf = (counts: readonly number[]) => ({
    labels: counts.map((_, at) => `day ${at}`),
    open: 1,
    events: { sent: counts },
    breakdowns: {},
  });
  const silence = Array.from({ length: 60 }, () => 0);
  expect(daysCounted(daysOf([...silence, ...silence.slice(0, 19), 1]))).toBe(14);
  expect(daysCounted(daysOf([...silence, 1, ...silence.slice(0, 29)]))).toBe(30);
  expect(daysCounted(daysOf([0, 1]))).toBe(2);
});

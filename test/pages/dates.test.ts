import { expect, test } from "vitest";
import { dateAt } from "../../dashboard/src/api/dates.ts";

const at = (iso: string) => Date.parse(iso) / 1000;

test("days before an hour was put back are counted as days, also shortly before midnight", () => {
  // The hour was put back on the 1st of November: 89 times 24 hours before is already the next day.
  const late = at("2026-11-15T23:45:00-08:00");
  expect(dateAt(late, "America/Los_Angeles")).toBe("2026-11-15");
  expect(dateAt(late, "America/Los_Angeles", 89)).toBe("2026-08-18");
});

test("days before an hour was skipped are counted as days, also shortly after midnight", () => {
  const early = at("2026-04-05T00:15:00-07:00");
  expect(dateAt(early, "America/Los_Angeles", 89)).toBe("2026-01-06");
  expect(dateAt(early, "America/Los_Angeles", -1)).toBe("2026-04-06");
});

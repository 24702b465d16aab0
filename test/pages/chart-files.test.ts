import { expect, test } from "vitest";
import { tableOf } from "../../dashboard/src/parts/chart-rows.ts";
import { csvName, csvOf } from "../../dashboard/src/parts/csv.ts";
import { drawLargest } from "../../dashboard/src/parts/largest.ts";

test("a cell of a chart's file is quoted where it must be, and is never a formula", () => {
  const table = [
    ["date", 'say "hi", Ada', "two\nlines", "=1+1", "+49", "-5", "@sum", "plain"],
    ["2026-11-16", 1, 0, -2, "", "", "", ""],
  ];
  expect(csvOf(table)).toBe(
    `date,"say ""hi"", Ada","two\nlines",'=1+1,'+49,'-5,'@sum,plain\r\n2026-11-16,1,0,-2,,,,\r\n`,
  );
});

test("a chart's file is named by what the chart is called", () => {
  expect(csvName("Messages over 90 days")).toBe("messages-over-90-days.csv");
  expect(csvName("Mails: who/what?")).toBe("mails-who-what.csv");
  expect(csvName("Grüße")).toBe("grüße.csv");
  expect(csvName("…")).toBe("chart.csv");
});

test("what a chart draws as the others stands in its file one by one, and days that may still change are marked", () => {
  const column = (label: string, ...numbers: readonly (number | null)[]) => ({ label, numbers });
  const drawn = drawLargest(
    ["2026-11-14", "2026-11-15", "2026-11-16"],
    [
      column("none", 0, 0, 0),
      column("b", 1, 2, 0),
      column("a.x", 5, 5, 5),
      column("c", 0, 1, 1),
      column("d", 1, 0, null),
    ],
    { most: 2, colorsOf: () => ["red", "blue"], other: "grey" },
  );
  expect(drawn.series).toMatchObject([
    { name: "s0", label: "a.x", color: "red" },
    { name: "s1", label: "b", color: "blue" },
    { name: "rest", label: "2 others", color: "grey" },
  ]);
  expect(drawn.rows).toEqual([
    { label: "2026-11-14", s0: 5, s1: 1, s2: 0, s3: 1, rest: 1 },
    { label: "2026-11-15", s0: 5, s1: 2, s2: 1, s3: 0, rest: 1 },
    { label: "2026-11-16", s0: 5, s1: 0, s2: 1, rest: 1 },
  ]);
  expect(tableOf({ ...drawn, open: 2 })).toEqual([
    ["date", "a.x", "b", "c", "d", "open"],
    ["2026-11-14", 5, 1, 0, 1, ""],
    ["2026-11-15", 5, 2, 1, 0, "not final"],
    ["2026-11-16", 5, 0, 1, "", "so far"],
  ]);
});

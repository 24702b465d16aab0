import { afterAll, beforeAll, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { ChartCopies } from "./chart-copies.ts";

const MIB = 1024 * 1024;

let world: TestContext;
beforeAll(async () => {
  world = await openTestContext();
});
afterAll(() => world.close());

/** Copies in memory alone: what they forget is gone. */
function copies() {
  const held = new ChartCopies(world.clock, undefined);
  const keep = (name: string, blob = Buffer.alloc(1)) =>
    held.keep(name, { blob, etag: `W/"${name}"`, provisional: false, expiresAt: world.clock.now() + 3600 });
  const has = (...names: string[]) => names.map((name) => held.find(name)?.etag === `W/"${name}"`);
  return { held, keep, has };
}

it("at most 256 charts are in memory, and the one that was asked for least lately goes first", () => {
  const { held, keep, has } = copies();
  for (let at = 0; at < 256; at++) keep(`chart${at}`);
  expect(held.size).toBe(256);
  expect(has("chart0")).toEqual([true]);
  keep("one more");
  expect(held.size).toBe(256);
  expect(has("chart1", "chart0", "chart2", "one more")).toEqual([false, true, true, true]);
});

it("charts in memory weigh at most 32 MiB together, and one that is kept again is weighed once", () => {
  const { held, keep, has } = copies();
  const large = Buffer.alloc(12 * MIB);
  keep("small");
  for (let time = 0; time < 5; time++) keep("first", large);
  keep("second", large);
  expect(has("small", "first", "second")).toEqual([true, true, true]);
  keep("third", large);
  expect(has("small", "first", "second", "third")).toEqual([false, false, true, true]);
  keep("exactly as much", Buffer.alloc(32 * MIB));
  expect(has("second", "third", "exactly as much")).toEqual([false, false, true]);
  keep("too much for anybody", Buffer.alloc(32 * MIB + 1));
  expect(held.size).toBe(0);
});

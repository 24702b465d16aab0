import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { family, mayExpire, string, text } from "../../kernel/keyspace/index.ts";
import { advanceCursor, isMarked, markOnce, readCursor } from "./index.ts";

const keys = family("marker_test", {
  cursor: string("marker_test:cursor", text, { doc: "a walk" }),
  marker: string("marker_test:marker", text, { doc: "a fact", ttl: mayExpire() }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

it("a cursor moves only from where its reader stood, and back to the beginning at the end", async () => {
  const cursor = keys.cursor();
  expect(await readCursor(ctx, cursor)).toBeUndefined();
  expect(await advanceCursor(ctx, cursor, undefined, "b")).toBe(true);
  expect(await advanceCursor(ctx, cursor, undefined, "a")).toBe(false);
  const both = await Promise.all([advanceCursor(ctx, cursor, "b", "c"), advanceCursor(ctx, cursor, "b", "d")]);
  expect(both.filter(Boolean)).toHaveLength(1);
  expect(await readCursor(ctx, cursor)).toBe(both[0] ? "c" : "d");
  expect(await advanceCursor(ctx, cursor, both[0] ? "c" : "d", undefined)).toBe(true);
  expect(await ctx.redis.commands.exists(cursor)).toBe(0);
});

it("a marker remembers who was first", async () => {
  const marker = keys.marker();
  expect(await isMarked(ctx, marker)).toBe(false);
  expect(await markOnce(ctx, marker, "ann")).toEqual({ first: true });
  expect(await markOnce(ctx, marker, "bob")).toEqual({ first: false, value: "ann" });
  expect(await ctx.redis.commands.pttl(marker)).toBe(-1);
});

it("a marker with a lifetime can be set again afterwards", async () => {
  await markOnce(ctx, keys.marker(), "1", { ttl: 60 });
  await ctx.clock.advance(60);
  expect(await markOnce(ctx, keys.marker(), "2", { ttl: 60 })).toEqual({ first: true });
});

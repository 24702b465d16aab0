import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { family, hash, integer, mapOf, string } from "../../kernel/keyspace/index.ts";
import { defineScript, type Script } from "../../kernel/redis/index.ts";
import { type Counting, calendarOf, defineDailyStats, statsOf, Tally } from "./index.ts";

const keysOf = (name: string) =>
  family(name, {
    day: hash(`stats:${name}s:daily:{unix_date}`, mapOf(integer), { doc: "event to count" }),
    extra: hash(`stats:${name}s:daily:{unix_date}:extra:{event}`, mapOf(integer), { doc: "breakdown" }),
    earliest: string(`stats:${name}s:daily:earliest`, integer, { doc: "earliest day" }),
  });
const plan = { table: "peal_stats", events: { rung: {}, heard: { by: "{tower}" } }, held: 3 } as const;
const peals = defineDailyStats({ name: "peals", keys: keysOf("peal"), ...plan });
const chimes = defineDailyStats({ name: "chimes", keys: keysOf("chime"), ...plan });

const folder = mkdtempSync(join(tmpdir(), "tally-"));
/** Applies the blocks whose flag is 1. */
let countItems: Script<readonly ["...counters"], readonly ["...items"], number>;
let ctx: TestContext;

beforeAll(async () => {
  const fragment = new URL("./scripts/tally.fragment.lua", import.meta.url);
  const file = join(folder, "count_items.lua");
  writeFileSync(
    file,
    `-- include: ${fragment}
local at, applied = 1, 0
while at <= #ARGV do
  if ARGV[at] == '1' then
    at = tally(KEYS, 0, ARGV, at + 1)
    applied = applied + 1
  else
    at = skip_tally(ARGV, at + 1)
  end
end
return applied`,
  );
  countItems = defineScript({
    name: "peal.count_items",
    file: pathToFileURL(file),
    keys: ["...counters"],
    args: ["...items"],
    idempotent: false,
    reply: (applied: number) => applied,
  });
  ctx = await openTestContext({ start: 1_700_000_000 });
});
beforeEach(() => ctx.flush());
afterAll(async () => {
  await ctx.close();
  rmSync(folder, { recursive: true });
});

async function counters(): Promise<Record<string, unknown>> {
  const { commands } = ctx.redis;
  const names = (await commands.keys("stats:*")).sort();
  const read = (name: string) => (name.endsWith("earliest") ? commands.get(name) : commands.hgetall(name));
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await read(name)] as const)));
}

const event = fc.record({
  heard: fc.boolean(),
  tower: fc.constantFrom("north", "south", "b\u0007d"),
  age: fc.integer({ min: 0, max: 6 * 86_400 }),
  by: fc.integer({ min: 0, max: 3 }),
});
const item = fc.record({ applied: fc.boolean(), events: fc.array(event, { maxLength: 5 }) });

test("a script that applies some items counts what those alone would have counted", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 12 }), async (items) => {
      const count = (counting: Counting, events: (typeof items)[number]["events"]) => {
        for (const { heard, tower, age, by } of events) {
          const at = ctx.clock.now() - age;
          if (heard) counting.incr(peals, "heard", { extra: tower, at, by });
          else counting.incr(peals, "rung", { at, by });
        }
      };
      await ctx.flush();
      const tally = new Tally(ctx);
      const args = items.flatMap(({ applied, events }) => [applied ? 1 : 0, ...tally.block((it) => count(it, events))]);
      const applied = items.filter((each) => each.applied);
      expect(await ctx.redis.run(countItems, [...tally.keys], args)).toBe(applied.length);
      const counted = await counters();
      await ctx.flush();
      const stats = statsOf(ctx);
      for (const { events } of applied) count(stats, events);
      await stats.store();
      expect(counted).toEqual(await counters());
    }),
    { numRuns: 60 },
  );
});

test("a block merges what is equal, and names each counter once for all blocks", () => {
  const tally = new Tally(ctx);
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  const group = tally.block((counting) => {
    for (let times = 0; times < 500; times++) counting.incr(peals, "rung").incr(peals, "heard", { extra: "north" });
  });
  expect(group).toEqual([
    4,
    "low",
    1,
    "",
    today,
    "hincr",
    2,
    "rung",
    500,
    "hincr",
    2,
    "heard",
    500,
    "xhincr",
    3,
    "north",
    500,
  ]);
  expect(tally.block((counting) => counting.incr(peals, "rung"))).toEqual([
    2,
    "low",
    1,
    "",
    today,
    "hincr",
    2,
    "rung",
    1,
  ]);
  expect(tally.block(() => {})).toEqual([0]);
  expect(tally.keys).toEqual([peals.earliest(), peals.day(today), peals.extra(today, "heard")]);
});

test("a breakdown with a thousand keys gathers further ones, and its sum stays true", async () => {
  const tally = new Tally(ctx);
  const args = Array.from({ length: 1010 }, (_, tower) => [
    1,
    ...tally.block((counting) => counting.incr(peals, "heard", { extra: `tower ${tower}` })),
  ]).flat();
  await ctx.redis.run(countItems, [...tally.keys], args);
  const breakdown = await ctx.redis.commands.hgetall(tally.keys[2]!);
  expect([Object.keys(breakdown).length, breakdown.__other__]).toEqual([1001, "10"]);
});

test("one call never counts on the keys of two families", () => {
  const tally = new Tally(ctx);
  tally.block((counting) => counting.incr(peals, "rung"));
  expect(() => tally.block((counting) => counting.incr(chimes, "rung"))).toThrow("keys of chime, not of peal");
});

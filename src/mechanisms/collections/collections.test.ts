import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { family, hash, list, mapOf, mayExpire, member, set, text, zset } from "../../kernel/keyspace/index.ts";
import { bump, pushCapped, replace, top } from "./index.ts";

const ttl = mayExpire();
const keys = family("collection_test", {
  list: list("collection_test:list", member, { doc: "a list", ttl }),
  set: set("collection_test:set", member, { doc: "a set", ttl }),
  ranking: zset("collection_test:ranking", member, { doc: "a ranking", score: "points", ttl }),
  hash: hash("collection_test:hash", mapOf(text), { doc: "a hash", ttl }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

const content = () => ctx.redis.commands.lrange(keys.list(), 0, -1);

it("a capped list keeps its newest on the side it is told to", async () => {
  expect(await pushCapped(ctx, keys.list(), ["a", "b"], { cap: 3, newest: "left" })).toBe(2);
  expect(await pushCapped(ctx, keys.list(), ["c", "d"], { cap: 3, newest: "left" })).toBe(3);
  expect(await content()).toEqual(["d", "c", "b"]);
  await ctx.flush();
  await pushCapped(ctx, keys.list(), ["a", "b", "c", "d", "e"], { cap: 3, newest: "right" });
  expect(await content()).toEqual(["c", "d", "e"]);
  expect(await ctx.redis.commands.pttl(keys.list())).toBe(-1);
});

it("a lifetime starts anew with every write and not with a read", async () => {
  await pushCapped(ctx, keys.list(), ["a"], { cap: 3, ttl: 60, newest: "right" });
  await ctx.clock.advance(50);
  await pushCapped(ctx, keys.list(), ["b"], { cap: 3, ttl: 60, newest: "right" });
  await ctx.clock.advance(50);
  expect(await content()).toEqual(["a", "b"]);
  await ctx.clock.advance(10);
  expect(await content()).toEqual([]);
});

it("a ranking raises members, drops the lowest beyond its cap and says which fell out at once", async () => {
  const bounds = { cap: 2, ttl: 60 };
  const up = (member: string, by: number) => ({ member, by });
  expect(await bump(ctx, keys.ranking(), [up("ann", 3), up("bob", 2.5)], bounds)).toEqual([3, 2.5]);
  expect(await bump(ctx, keys.ranking(), [up("cid", 1), up("ann", 1)], bounds)).toEqual([undefined, 4]);
  expect(await top(ctx, keys.ranking(), 5)).toEqual([
    { member: "ann", score: 4 },
    { member: "bob", score: 2.5 },
  ]);
});

it("the top comes highest first and equal scores by name", async () => {
  await ctx.redis.commands.zadd(keys.ranking(), 1, "d", 1, "c", 1, "a", 1, "b", 9, "z");
  expect((await top(ctx, keys.ranking(), 3)).map(({ member }) => member)).toEqual(["z", "a", "b"]);
  expect(await top(ctx, keys.ranking(), 0)).toEqual([]);
});

it("a replacement swaps whole contents of every type, however long they are", async () => {
  const many = Array.from({ length: 5000 }, (_, index) => `m${index}`);
  expect(await replace(ctx, { type: "list", key: keys.list(), items: many }, { ttl: 60 })).toBe(5000);
  expect(await replace(ctx, { type: "list", key: keys.list(), items: ["x"] })).toBe(1);
  expect(await content()).toEqual(["x"]);
  expect(await ctx.redis.commands.pttl(keys.list())).toBe(-1);
  expect(await replace(ctx, { type: "set", key: keys.set(), items: many })).toBe(5000);
  const scored = many.map((name, score) => ({ member: name, score }));
  expect(await replace(ctx, { type: "zset", key: keys.ranking(), items: scored })).toBe(5000);
  expect(await ctx.redis.commands.zscore(keys.ranking(), "m777")).toBe("777");
  expect(await replace(ctx, { type: "hash", key: keys.hash(), items: { a: "1", b: "2" } })).toBe(2);
  expect(await replace(ctx, { type: "hash", key: keys.hash(), items: {} })).toBe(0);
  expect(await ctx.redis.commands.exists(keys.hash())).toBe(0);
});

it("a reader never sees a half-filled key", async () => {
  const items = (round: number) => Array.from({ length: 1500 }, (_, index) => `${round}:${index}`);
  await replace(ctx, { type: "list", key: keys.list(), items: items(0) });
  let writing = true;
  const seen = new Set<number>();
  const reader = ctx.process();
  const reading = (async () => {
    while (writing) seen.add(await reader.redis.commands.llen(keys.list()));
  })();
  for (let round = 1; round <= 20; round++) await replace(ctx, { type: "list", key: keys.list(), items: items(round) });
  await eventually(() => seen.size > 0);
  writing = false;
  await reading;
  expect([...seen]).toEqual([1500]);
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { audit } from "./audit.ts";
import { Catalogue } from "./catalogue.ts";
import { fields, integer, json, mapOf, text } from "./codec.ts";
import { expires, hash, list, mayExpire, set, stream, string, zset } from "./declare.ts";
import { family } from "./family.ts";
import type { Invariant } from "./invariant.ts";

const keys = family("shop", {
  orders: list("shop:orders", json(z.object({ uid: z.string() })), { doc: "orders that wait" }),
  order: hash("shop:order:{uid}", fields({ uid: text, cents: integer }), { doc: "one order" }),
  counts: hash("shop:counts", mapOf(integer), { doc: "counts" }),
  due: zset("shop:due", integer, { doc: "due ones", score: "when" }),
  tags: set("shop:tags", integer, { doc: "tags" }),
  feed: stream("shop:feed", fields({ n: integer }), { doc: "a feed" }),
  seen: string("shop:seen:{uid}", integer, { doc: "flags", ttl: expires(3600) }),
  note: string("shop:note:{uid}", text, { doc: "notes", ttl: mayExpire(3600) }),
  token: string("shop:token:{token}", integer, { doc: "tokens", ttl: expires(60), secret: true }),
});
const catalogue = new Catalogue([{ name: "shop", keys: [keys] }]);

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

async function healthy(): Promise<void> {
  const { commands } = ctx.redis;
  await commands.rpush(keys.orders(), '{"uid":"a"}', '{"uid":"b"}');
  await commands.hset(keys.order({ uid: "a" }), "uid", "a", "cents", "100");
  await commands.hset(keys.counts(), "x", "1");
  await commands.zadd(keys.due(), 5, "1");
  await commands.sadd(keys.tags(), "1");
  await commands.xadd(keys.feed(), "*", "n", "1");
  await commands.set(keys.seen({ uid: "a" }), "1", "EX", 3600);
  await commands.set(keys.note({ uid: "a" }), "no TTL is fine");
  await commands.set(keys.note({ uid: "b" }), "and so is one", "EX", 60);
  await commands.set(keys.token({ token: "hunter2" }), "1", "EX", 60);
}

const kinds = async () =>
  (await audit(ctx, catalogue)).findings.map(({ kind, pattern, key }) => ({ kind, pattern, key }));

test("a keyspace as declared has no finding, and every pattern is weighed", async () => {
  await healthy();
  const result = await audit(ctx, catalogue);
  expect(result.findings).toEqual([]);
  expect(result).toMatchObject({ ok: true, keys: 10, found: 0 });
  expect(result.patterns).toHaveLength(9);
  expect(result.patterns.find(({ pattern }) => pattern === "shop:note:{uid}")).toMatchObject({
    keys: 2,
    domain: "shop",
  });
  expect(result.patterns.find(({ pattern }) => pattern === "shop:orders")).toMatchObject({ length: 2, unread: 0 });
  expect(result.patterns.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(result.bytes);
  expect(JSON.parse(JSON.stringify(result))).toEqual(result);
});

test("a key that no pattern fits is found", async () => {
  await healthy();
  await ctx.redis.commands.set("stranger:1", "x");
  await ctx.redis.commands.set(Buffer.from([0xff, 0x00, 0x3a]), "x");
  const result = await audit(ctx, catalogue);
  expect(result.counts).toEqual([{ kind: "unknown_key", pattern: null, count: 2 }]);
  expect(result.findings.map(({ key }) => key)).toContain("stranger:1");
  expect(result.unknown.map(({ prefix }) => prefix)).toContain("stranger");
});

test("a key of another Redis type is found, and not decoded", async () => {
  await ctx.redis.commands.set(keys.orders(), "x");
  expect(await kinds()).toEqual([{ kind: "wrong_type", pattern: "shop:orders", key: "shop:orders" }]);
});

test("an undecodable value is found in every type", async () => {
  const { commands } = ctx.redis;
  await commands.rpush(keys.orders(), '{"uid":"a"}', "{broken");
  await commands.hset(keys.order({ uid: "a" }), "uid", "a");
  await commands.hset(keys.counts(), "x", "many");
  await commands.zadd(keys.due(), 5, "x");
  await commands.sadd(keys.tags(), "x");
  await commands.xadd(keys.feed(), "*", "m", "1");
  await commands.set(keys.seen({ uid: "a" }), "x", "EX", 60);
  const found = await kinds();
  expect(found.every(({ kind }) => kind === "undecodable_value")).toBe(true);
  expect(found.map(({ key }) => key).sort()).toEqual(
    ["shop:counts", "shop:due", "shop:feed", "shop:order:a", "shop:orders", "shop:seen:a", "shop:tags"].sort(),
  );
});

test("missing, forbidden and excessive TTLs are found", async () => {
  const { commands } = ctx.redis;
  await commands.set(keys.seen({ uid: "never" }), "1");
  await commands.set(keys.seen({ uid: "long" }), "1", "EX", 7200);
  await commands.set(keys.note({ uid: "long" }), "x", "EX", 7200);
  await commands.rpush(keys.orders(), '{"uid":"a"}');
  await commands.expire(keys.orders(), 60);
  const found = await kinds();
  expect(found).toHaveLength(4);
  expect(found).toEqual(
    expect.arrayContaining([
      { kind: "missing_ttl", pattern: "shop:seen:{uid}", key: "shop:seen:never" },
      { kind: "excessive_ttl", pattern: "shop:seen:{uid}", key: "shop:seen:long" },
      { kind: "excessive_ttl", pattern: "shop:note:{uid}", key: "shop:note:long" },
      { kind: "forbidden_ttl", pattern: "shop:orders", key: "shop:orders" },
    ]),
  );
});

test("of a secret pattern neither name nor value appears anywhere in the result", async () => {
  await ctx.redis.commands.set(keys.token({ token: "hunter2" }), "s3cr3t-value");
  const invariant: Invariant = {
    name: "shop:tokens",
    doc: "no tokens",
    check: async () => ["the key shop:token:hunter2 is left.", 'see "shop:token:hunter2", and shop:note:a'],
  };
  const result = await audit(ctx, catalogue, { invariants: [invariant] });
  expect(result.counts.map(({ kind }) => kind).sort()).toEqual([
    "broken_invariant",
    "missing_ttl",
    "undecodable_value",
  ]);
  expect(JSON.stringify(result)).not.toMatch(/hunter2|s3cr3t/);
  expect(result.findings.at(-2)?.detail).toBe("the key shop:token:{token} is left.");
  expect(result.findings.at(-1)?.detail).toContain("shop:note:a");
});

test("broken invariants are findings, and so is one that cannot be checked", async () => {
  const broken: Invariant = { name: "shop:broken", doc: "d", check: async () => ["shop:orders has two of uid a"] };
  const holds: Invariant = { name: "shop:holds", doc: "d", check: async () => [] };
  const fails: Invariant = { name: "shop:fails", doc: "d", check: async () => Promise.reject(new Error("no table")) };
  const result = await audit(ctx, catalogue, { invariants: [broken, holds, fails] });
  expect(result).toMatchObject({ ok: false, found: 2, invariants: 3 });
  expect(result.findings).toEqual([
    { kind: "broken_invariant", pattern: "shop:broken", key: null, detail: "shop:orders has two of uid a" },
    { kind: "broken_invariant", pattern: "shop:fails", key: null, detail: "could not be checked: no table" },
  ]);
});

test("findings are listed up to a limit per pattern and all counted, over many pages", async () => {
  const pipeline = ctx.redis.commands.pipeline();
  for (let uid = 0; uid < 3500; uid++) pipeline.set(keys.seen({ uid }), "1");
  for (let n = 0; n < 120; n++) pipeline.set(`prefix${n}:x`, "1");
  await pipeline.exec();
  const progress: [number, number][] = [];
  const result = await audit(ctx, catalogue, { onProgress: (done, total) => progress.push([done, total]) });
  expect(result.counts).toEqual([
    { kind: "missing_ttl", pattern: "shop:seen:{uid}", count: 3500 },
    { kind: "unknown_key", pattern: null, count: 120 },
  ]);
  expect(result.findings).toHaveLength(40);
  expect(result.unknown).toHaveLength(51);
  expect(progress.length).toBeGreaterThan(2);
  expect(progress.at(-1)).toEqual([3620, 3620]);
});

test("a fault in the middle of a long list is found by a deep audit, one at its end by any", async () => {
  const good = Array.from({ length: 200 }, (_, n) => `{"uid":"${n}"}`);
  await ctx.redis.commands.rpush(keys.orders(), ...good, "broken", ...good);
  expect(await audit(ctx, catalogue)).toMatchObject({ ok: true });
  expect(await audit(ctx, catalogue, { deep: true })).toMatchObject({ ok: false, found: 1 });
  await ctx.redis.commands.rpush(keys.orders(), "broken too");
  expect(await audit(ctx, catalogue)).toMatchObject({ ok: false, found: 1 });
});

test("collections of any type that are longer than the sample are judged by their sample", async () => {
  const pipeline = ctx.redis.commands.pipeline();
  for (let n = 0; n < 600; n++) {
    pipeline.hset(keys.counts(), `f${n}`, n).zadd(keys.due(), n, n).sadd(keys.tags(), n);
    pipeline.xadd(keys.feed(), "*", "n", n);
  }
  await pipeline.exec();
  expect((await audit(ctx, catalogue)).findings).toEqual([]);
  const fields = Array.from({ length: 600 }, (_, n) => [`f${n}`, n] as const);
  await ctx.redis.commands.hset(keys.order({ uid: "a" }), ...fields.flat());
  expect((await audit(ctx, catalogue)).findings[0]?.detail).toMatch(/600 fields/);
});

test("values too large to read are counted, and large samples are fetched in several replies", async () => {
  const half = "x".repeat(700 * 1024);
  const pipeline = ctx.redis.commands.pipeline();
  for (let uid = 0; uid < 20; uid++) pipeline.set(keys.note({ uid }), half);
  pipeline.set(keys.note({ uid: "huge" }), half + half);
  await pipeline.exec();
  const result = await audit(ctx, catalogue);
  expect(result).toMatchObject({ ok: true, keys: 21 });
  expect(result.patterns[0]).toMatchObject({ keys: 21, unread: 1 });
});

test("an audit writes nothing, uses SCAN and never KEYS", async () => {
  await healthy();
  await ctx.redis.commands.call("CONFIG", "RESETSTAT");
  await audit(ctx, catalogue, { deep: true });
  const used = (await ctx.redis.commands.info("commandstats")).match(/(?<=cmdstat_)[^:]+/g) ?? [];
  expect(used).toContain("scan");
  expect(used).not.toContain("keys");
  const allowed =
    /^(scan|evalsha_ro|script\|load|dbsize|info|client\|.*|hello|select|config\|resetstat|type|pttl|memory\|usage|strlen|get|[lhx]len|[sz]card|lrange|smembers|zrange|hgetall|xrange)$/;
  expect(used.filter((command) => !allowed.test(command))).toEqual([]);
});

test("a second server for caches is audited too", async () => {
  const other = await openTestContext();
  try {
    await healthy();
    await other.redis.commands.set("stranger", "x");
    const result = await audit({ ...pick(ctx), cacheRedis: other.redis }, catalogue);
    expect(result).toMatchObject({ keys: 11, found: 1 });
  } finally {
    await other.close();
  }
});

function pick({ redis, sql, clock, config }: TestContext) {
  return { redis, sql, clock, config };
}

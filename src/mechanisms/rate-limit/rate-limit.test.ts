import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { expires, family, integer, list, literal, member, set, string, zset } from "../../kernel/keyspace/index.ts";
import {
  attempt,
  attemptMany,
  counterLimit,
  distinctSetLimit,
  distinctTimesLimit,
  flagLimit,
  type Limit,
  slidingListLimit,
  slidingSetLimit,
} from "./index.ts";

const keys = family("limit_test", {
  flag: string("limit_test:flag:{name}", literal("1"), { doc: "a flag", ttl: expires() }),
  counter: string("limit_test:counter:{name}", integer, { doc: "a counter", ttl: expires() }),
  times: list("limit_test:times:{name}", member, { doc: "times", ttl: expires() }),
  actions: zset("limit_test:actions:{name}", member, { doc: "actions", score: "time", ttl: expires() }),
  values: set("limit_test:values:{name}", member, { doc: "values", ttl: expires() }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(async () => {
  await ctx.flush();
  ctx.alerts.recorded.length = 0;
});
afterAll(() => ctx.close());

const fixed = counterLimit({ limit: 3, window: 60, mode: "fixed", reason: "too_many" });
const counter = (name = "a") => keys.counter({ name });
const outcomes = async (limit: () => Limit, count: number) =>
  (
    await attemptMany(
      ctx,
      Array.from({ length: count }, () => [limit()]),
    )
  ).map(({ allowed }) => allowed);

describe("forms", () => {
  it("a flag lets one action pass until it expires and says how long that is", async () => {
    const flag = flagLimit({ window: 15, reason: "too_soon" });
    const key = keys.flag({ name: "a" });
    expect(await attempt(ctx, [flag(key)])).toEqual({ allowed: true });
    await ctx.clock.advance(5);
    const refused = await attempt(ctx, [flag(key)]);
    expect(refused).toMatchObject({ allowed: false, reason: "too_soon" });
    expect(refused.allowed === false && Math.ceil(refused.retryAfter)).toBe(10);
    expect(await ctx.redis.commands.get(key)).toBe("1");
    await ctx.clock.advance(10);
    expect(await attempt(ctx, [flag(key)])).toEqual({ allowed: true });
  });

  it("a flag that somebody left without a TTL gets one instead of refusing for ever", async () => {
    const flag = flagLimit({ window: 15, reason: "too_soon" });
    await ctx.redis.commands.set(keys.flag({ name: "a" }), "1");
    expect(await attempt(ctx, [flag(keys.flag({ name: "a" }))])).toMatchObject({ allowed: false, retryAfter: 15 });
    await ctx.clock.advance(15);
    expect(await attempt(ctx, [flag(keys.flag({ name: "a" }))])).toEqual({ allowed: true });
  });

  it("a fixed counter starts its window with the first action and does not count refused ones", async () => {
    expect(await outcomes(() => fixed(counter()), 5)).toEqual([true, true, true, false, false]);
    expect(await ctx.redis.commands.get(counter())).toBe("3");
    await ctx.clock.advance(59);
    expect((await attempt(ctx, [fixed(counter())])).allowed).toBe(false);
    await ctx.clock.advance(1);
    expect((await attempt(ctx, [fixed(counter())])).allowed).toBe(true);
  });

  it("a punishing counter also counts what it refuses", async () => {
    const punishing = counterLimit({ limit: 1, window: 60, mode: "fixed", reason: "x", punish: true });
    expect(await outcomes(() => punishing(counter()), 3)).toEqual([true, false, false]);
    expect(await ctx.redis.commands.get(counter())).toBe("3");
  });

  it("a gap counter is only cleared by a pause of a whole window", async () => {
    const gap = counterLimit({ limit: 2, window: 10, mode: "gap", reason: "too_fast" });
    const results: boolean[] = [];
    for (let times = 0; times < 4; times++) {
      results.push((await attempt(ctx, [gap(counter())])).allowed);
      await ctx.clock.advance(9);
    }
    expect(results).toEqual([true, true, false, false]);
    await ctx.clock.advance(1);
    expect((await attempt(ctx, [gap(counter())])).allowed).toBe(true);
  });

  it("a sliding list refuses the attempt that fills it within one window, and records refused ones", async () => {
    const sliding = slidingListLimit({ limit: 10, window: 60, reason: "ratelimit" });
    const key = keys.times({ name: "a" });
    const results: boolean[] = [];
    for (let times = 0; times < 10; times++) {
      results.push((await attempt(ctx, [sliding(key)])).allowed);
      await ctx.clock.advance(1);
    }
    expect(results).toEqual([...new Array(9).fill(true), false]);
    await ctx.clock.advance(4);
    expect((await attempt(ctx, [sliding(key)])).allowed).toBe(false);
    expect(await ctx.redis.commands.llen(key)).toBe(10);
    await ctx.clock.advance(61);
    expect((await attempt(ctx, [sliding(key)])).allowed).toBe(true);
  });

  it("the wait that a sliding list names is enough", async () => {
    const sliding = slidingListLimit({ limit: 3, window: 60, reason: "ratelimit" });
    const key = keys.times({ name: "a" });
    for (let times = 0; times < 2; times++) {
      await attempt(ctx, [sliding(key)]);
      await ctx.clock.advance(10);
    }
    const refused = await attempt(ctx, [sliding(key)]);
    expect(refused).toEqual({ allowed: false, reason: "ratelimit", retryAfter: 50 });
    await ctx.clock.advance(50.001);
    expect((await attempt(ctx, [sliding(key)])).allowed).toBe(true);
  });

  it("a sliding set counts over several windows and keeps its key a minute longer than the longest", async () => {
    const sliding = slidingSetLimit({
      windows: [
        { window: 60, limit: 2 },
        { window: 3600, limit: 3 },
      ],
      reason: "uid_ratelimited",
    });
    const key = keys.actions({ name: "a" });
    expect(await outcomes(() => sliding(key), 3)).toEqual([true, true, false]);
    await ctx.clock.advance(20);
    expect(await attempt(ctx, [sliding(key)])).toEqual({ allowed: false, reason: "uid_ratelimited", retryAfter: 40 });
    await ctx.clock.advance(40);
    expect(await outcomes(() => sliding(key), 2)).toEqual([true, false]);
    await ctx.clock.advance(100);
    expect(await attempt(ctx, [sliding(key)])).toMatchObject({ allowed: false, retryAfter: 3600 - 160 });
    expect(await ctx.redis.commands.zcard(key)).toBe(3);
    const left = await ctx.redis.commands.pttl(key);
    expect(left).toBeGreaterThan(3_558_000);
    expect(left).toBeLessThanOrEqual(3_560_000);
  });

  it("a sliding set keeps the id it is given", async () => {
    const sliding = slidingSetLimit({ windows: [{ window: 60, limit: 2 }], reason: "x" });
    await attempt(ctx, [sliding(keys.actions({ name: "a" }), "crl_rpc_1")]);
    expect(await ctx.redis.commands.zrange(keys.actions({ name: "a" }), "0", "-1")).toEqual(["crl_rpc_1"]);
  });

  it("a distinct limit counts different values only", async () => {
    const distinct = distinctSetLimit({ limit: 2, ttl: 100, reason: "too_many_values" });
    const key = keys.values({ name: "a" });
    const results = await attemptMany(
      ctx,
      ["x", "y", "x", "z", "y"].map((value) => [distinct(key, value)]),
    );
    expect(results.map(({ allowed }) => allowed)).toEqual([true, true, true, false, true]);
    expect((await ctx.redis.commands.smembers(key)).sort()).toEqual(["x", "y"]);
    await ctx.clock.advance(60);
    await attempt(ctx, [distinct(key, "x")]);
    await ctx.clock.advance(40);
    expect((await attempt(ctx, [distinct(key, "z")])).allowed).toBe(true);
  });

  it("a distinct limit that extends its lifetime is only cleared by a pause", async () => {
    const distinct = distinctSetLimit({ limit: 1, ttl: 100, reason: "x", extend: true });
    const key = keys.values({ name: "a" });
    for (let times = 0; times < 3; times++) {
      await attempt(ctx, [distinct(key, "x")]);
      await ctx.clock.advance(90);
    }
    expect((await attempt(ctx, [distinct(key, "y")])).allowed).toBe(false);
    await ctx.clock.advance(10);
    expect((await attempt(ctx, [distinct(key, "y")])).allowed).toBe(true);
  });

  it("distinct times forget a value one window after it first came", async () => {
    const distinct = distinctTimesLimit({ limit: 2, window: 100, reason: "x" });
    const key = keys.actions({ name: "a" });
    await attempt(ctx, [distinct(key, "first")]);
    await ctx.clock.advance(40);
    await attempt(ctx, [distinct(key, "second")]);
    await attempt(ctx, [distinct(key, "first")]);
    expect(await attempt(ctx, [distinct(key, "third")])).toMatchObject({ allowed: false, retryAfter: 60 });
    await ctx.clock.advance(60);
    expect((await attempt(ctx, [distinct(key, "third")])).allowed).toBe(true);
  });
});

describe("several limits for one action", () => {
  it("the first limit that refuses names the reason and nothing is recorded", async () => {
    const daily = counterLimit({ limit: 1, window: 86_400, mode: "fixed", reason: "daily" });
    const limits = () => [fixed(counter("minute")), daily(counter("day"))];
    expect(await attempt(ctx, limits())).toEqual({ allowed: true });
    expect(await attempt(ctx, limits())).toMatchObject({ allowed: false, reason: "daily" });
    expect(await ctx.redis.commands.mget(counter("minute"), counter("day"))).toEqual(["1", "1"]);
  });

  it("limits of different forms are checked together before any is recorded", async () => {
    const flag = flagLimit({ window: 15, reason: "too_soon" });
    const distinct = distinctSetLimit({ limit: 1, ttl: 100, reason: "too_many_values" });
    const limits = (value: string) => [
      fixed(counter()),
      distinct(keys.values({ name: "a" }), value),
      flag(keys.flag({ name: "a" })),
    ];
    expect((await attempt(ctx, limits("x"))).allowed).toBe(true);
    expect(await attempt(ctx, limits("y"))).toMatchObject({ reason: "too_many_values" });
    expect(await attempt(ctx, limits("x"))).toMatchObject({ reason: "too_soon" });
    expect(await ctx.redis.commands.get(counter())).toBe("1");
  });
});

describe("many at once", () => {
  it("a thousand attempts in flight let exactly the limit pass", async () => {
    const limit = counterLimit({ limit: 137, window: 60, mode: "fixed", reason: "x" });
    const results = await Promise.all(Array.from({ length: 1000 }, () => attempt(ctx, [limit(counter())])));
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(137);
    expect(await ctx.redis.commands.get(counter())).toBe("137");
  });

  it("attempts under different rules that travel at once get their own answers", async () => {
    const other = counterLimit({ limit: 1, window: 60, mode: "fixed", reason: "other" });
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        attempt(ctx, index % 2 === 0 ? [fixed(counter("a"))] : [other(counter("b")), fixed(counter("c"))]),
      ),
    );
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(4);
    expect(results.flatMap((result) => (result.allowed ? [] : [result.reason])).sort()).toEqual([
      ...new Array(19).fill("other"),
      ...new Array(17).fill("too_many"),
    ]);
  });

  it("a sliding set agrees with a plain model over any order of attempts and pauses", async () => {
    const sliding = slidingSetLimit({
      windows: [
        { window: 10, limit: 2 },
        { window: 30, limit: 4 },
      ],
      reason: "x",
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 15 }), async (pauses) => {
        const key = keys.actions({ name: String(run++) });
        const recorded: number[] = [];
        for (const pause of pauses) {
          await ctx.clock.advance(pause);
          const now = ctx.clock.now();
          const within = (window: number) => recorded.filter((time) => time > now - window).length;
          const expected = within(10) < 2 && within(30) < 4;
          expect((await attempt(ctx, [sliding(key)])).allowed).toBe(expected);
          if (expected) recorded.push(now);
        }
      }),
      { numRuns: 25 },
    );
  });
});

describe("bad values and no Redis", () => {
  it("a counter that is no number counts as absent, is overwritten, and one warning says so", async () => {
    await ctx.redis.commands.set(counter(), "three");
    expect((await attempt(ctx, [fixed(counter())])).allowed).toBe(true);
    expect(await ctx.redis.commands.get(counter())).toBe("1");
    expect(await ctx.redis.commands.pttl(counter())).toBeGreaterThan(0);
    expect(ctx.alerts.identifiers()).toEqual(["rate_limit:not_a_number"]);
    await ctx.redis.commands.set(counter("b"), "3.5");
    expect((await attempt(ctx, [fixed(counter()), fixed(counter("b"))])).allowed).toBe(true);
    expect(await ctx.redis.commands.get(counter("b"))).toBe("1");
    expect(ctx.alerts.identifiers()).toHaveLength(2);
  });

  it("a key of another type raises wrong_type and stays as it is", async () => {
    await ctx.redis.commands.sadd(counter(), "x");
    await expect(attempt(ctx, [fixed(counter())])).rejects.toMatchObject({ code: "wrong_type" });
    expect(await ctx.redis.commands.type(counter())).toBe("set");
  });

  it("scripts that the server forgot are loaded again without counting twice", async () => {
    await ctx.redis.commands.script("FLUSH");
    expect((await attempt(ctx, [fixed(counter())])).allowed).toBe(true);
    expect(await ctx.redis.commands.get(counter())).toBe("1");
  });

  it("without Redis an open family lets pass and a closed one refuses, both at once", async () => {
    const closed = counterLimit({ limit: 3, window: 60, mode: "fixed", reason: "x", whenUnreachable: "closed" });
    const gone = ctx.process();
    await gone.redis.ready();
    gone.redis.commands.disconnect();
    expect(await attempt(gone, [fixed(counter())])).toEqual({ allowed: true });
    expect(await attempt(gone, [fixed(counter()), closed(counter("b"))])).toEqual({
      allowed: false,
      retryAfter: 5,
      reason: "limiter_unreachable",
    });
    expect(await ctx.redis.commands.exists(counter())).toBe(0);
  });
});

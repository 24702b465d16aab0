import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { mortalConnection } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { expires, family, hash, literal, mapOf, member, string, text, zset } from "../../kernel/keyspace/index.ts";
import { consume, delist, delistAll, enlist, isLive, isRevoked, issue, markSeen, revoke, use } from "./index.ts";

const keys = family("token_test", {
  code: string("token_test:code:{code}", text, { doc: "a code", ttl: expires(60), secret: true }),
  jti: string("token_test:jti:{jti}", literal("1"), { doc: "a seen id", ttl: expires() }),
  multi: hash("token_test:multi:{uid}", mapOf(text), { doc: "a token of several fields", ttl: expires() }),
  live: zset("token_test:live:{sub}", member, { doc: "live tokens", score: "expiry", ttl: expires() }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

const live = keys.live({ sub: "ann" });

it("a code is drawn again while it is taken, and the first to consume it wins", async () => {
  const codes = ["aaa", "aaa", "bbb"];
  const plan = { code: () => codes.shift()!, key: (code: string) => keys.code({ code }), value: "v1", ttl: 60 };
  expect(await issue(ctx, plan)).toBe("aaa");
  expect(await issue(ctx, { ...plan, value: "v2" })).toBe("bbb");
  const taken = await Promise.all(Array.from({ length: 20 }, () => consume(ctx, keys.code({ code: "aaa" }))));
  expect(taken.filter((value) => value !== undefined).map(String)).toEqual(["v1"]);
  await ctx.clock.advance(60);
  expect(await consume(ctx, keys.code({ code: "bbb" }))).toBeUndefined();
});

it("a code generator without randomness is an error, not an endless loop", async () => {
  const plan = { code: () => "same", key: (code: string) => keys.code({ code }), value: "v", ttl: 60 };
  await issue(ctx, plan);
  await expect(issue(ctx, plan)).rejects.toThrow(/too little randomness/);
});

it("a token of several fields is used once, and its own expiry decides, not the TTL", async () => {
  const key = keys.multi({ uid: "u" });
  const fields = { used: "already_used", expires: "expires_at" } as const;
  expect(await use(ctx, key, fields)).toEqual({ ok: false, reason: "unknown" });
  await ctx.redis.commands.hset(key, { already_used: "0", expires_at: String(ctx.clock.now() + 10) });
  const results = await Promise.all(Array.from({ length: 10 }, () => use(ctx, key, fields)));
  expect(results.filter(({ ok }) => ok)).toHaveLength(1);
  expect(await use(ctx, key, fields)).toEqual({ ok: false, reason: "used" });
  await ctx.redis.commands.hset(key, { already_used: "0" });
  await ctx.clock.advance(10);
  expect(await use(ctx, key, fields)).toEqual({ ok: false, reason: "expired" });
  expect(await ctx.redis.commands.hget(key, "already_used")).toBe("0");
});

it("an id is first once, until a minute after its token has expired", async () => {
  const key = keys.jti({ jti: "j" });
  const expiry = ctx.clock.now() + 30;
  expect(await markSeen(ctx, key, expiry)).toBe("first");
  await ctx.clock.advance(89);
  expect(await markSeen(ctx, key, expiry)).toBe("already_seen");
  await ctx.clock.advance(1);
  expect(await ctx.redis.commands.exists(key)).toBe(0);
});

it("a revocation replaces what was noted and lasts as long", async () => {
  const key = keys.jti({ jti: "j" });
  await markSeen(ctx, key, ctx.clock.now() + 1);
  await revoke(ctx, key, ctx.clock.now() + 1000);
  await ctx.clock.advance(1000);
  expect(await isRevoked(ctx, key)).toBe(true);
  await ctx.clock.advance(61);
  expect(await isRevoked(ctx, key)).toBe(false);
});

it("a holder keeps as many tokens as the cap, losing those that expire soonest", async () => {
  const at = (seconds: number) => ctx.clock.now() + seconds;
  await enlist(ctx, live, [{ jti: "expired", expiry: at(1) }], { cap: 2 });
  await ctx.clock.advance(1);
  const tokens = [
    { jti: "late", expiry: at(300) },
    { jti: "soon", expiry: at(100) },
    { jti: "middle", expiry: at(200) },
  ];
  expect(await enlist(ctx, live, tokens, { cap: 2 })).toEqual(["soon"]);
  expect(await ctx.redis.commands.zrange(live, "0", "-1")).toEqual(["middle", "late"]);
  expect(await isLive(ctx, live, "late")).toBe(true);
  expect(await isLive(ctx, live, "soon")).toBe(false);
  await ctx.clock.advance(200);
  expect(await isLive(ctx, live, "middle")).toBe(false);
  expect(await delist(ctx, live, "late")).toBe(true);
  expect(await delist(ctx, live, "late")).toBe(false);
  await enlist(ctx, live, [{ jti: "again", expiry: at(10) }], { cap: 2 });
  expect(await ctx.redis.commands.pttl(live)).toBeLessThanOrEqual(10_000);
  await delistAll(ctx, live);
  expect(await isLive(ctx, live, "again")).toBe(false);
});

it("without Redis every check answers 503, whether the connection is gone or goes at the check", async () => {
  const gone = ctx.process();
  await gone.redis.ready();
  gone.redis.commands.disconnect();
  const unavailable = { code: "token_check_unavailable", status: 503 };
  await expect(consume(gone, keys.code({ code: "a" }))).rejects.toMatchObject(unavailable);
  await expect(isLive(gone, live, "x")).rejects.toMatchObject(unavailable);
  await expect(isRevoked(gone, keys.jti({ jti: "x" }))).rejects.toMatchObject(unavailable);
  await expect(markSeen(gone, keys.jti({ jti: "x" }), 1)).rejects.toMatchObject(unavailable);
  for (const death of ["before", "after"] as const) {
    const redis = await mortalConnection(ctx.server, { dieAt: 1, death });
    const dying = use({ ...ctx, redis, clock: ctx.clock }, keys.multi({ uid: "u" }), { used: "used" });
    await expect(dying).rejects.toMatchObject(unavailable);
    redis.commands.disconnect();
  }
});

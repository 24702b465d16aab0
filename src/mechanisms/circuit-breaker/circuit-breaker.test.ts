import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { expires, family, member, zset } from "../../kernel/keyspace/index.ts";
import { guarded, isOpen, recordErrors } from "./index.ts";

const keys = family("breaker_test", {
  errors: zset("breaker_test:errors", member, { doc: "errors", score: "time", ttl: expires(300) }),
});
const breaker = { key: keys.errors() };

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

it("ten errors within the window open it for every process, and it closes by itself as they age out", async () => {
  expect(await recordErrors(ctx, breaker, 5)).toBe(false);
  await ctx.clock.advance(100);
  expect(await recordErrors(ctx, breaker, 4)).toBe(false);
  expect(await isOpen(ctx, breaker)).toBe(false);
  expect(await recordErrors(ctx, breaker)).toBe(true);
  expect(await isOpen(ctx.process(), breaker)).toBe(true);
  await ctx.clock.advance(200);
  expect(await isOpen(ctx, breaker)).toBe(false);
  expect(await ctx.redis.commands.zcard(keys.errors())).toBe(5);
  await ctx.clock.advance(100);
  expect(await ctx.redis.commands.exists(keys.errors())).toBe(0);
});

it("while open the provider is not called and the fallback answers", async () => {
  const small = { ...breaker, threshold: 2 };
  let calls = 0;
  const call = async () => {
    calls += 1;
    throw new Error("down");
  };
  const ask = () => guarded<string>(ctx, small, call, () => "active");
  await expect(ask()).rejects.toThrow("down");
  await expect(ask()).rejects.toThrow("down");
  expect(await ask()).toBe("active");
  expect(calls).toBe(2);
});

it("an answer that comes too late counts as an error and its signal fires", async () => {
  let signal: AbortSignal | undefined;
  const asking = guarded<string>(
    ctx,
    breaker,
    (given) => {
      signal = given;
      return new Promise(() => {});
    },
    () => "fallback",
  );
  const refused = expect(asking).rejects.toThrow("no answer within 5 s");
  await eventually(() => ctx.clock.sleeping === 1);
  await ctx.clock.advance(5);
  await refused;
  expect(signal?.aborted).toBe(true);
  expect(await ctx.redis.commands.zcard(keys.errors())).toBe(1);
});

it("a good answer leaves no trace and no timer", async () => {
  expect(
    await guarded(
      ctx,
      breaker,
      async () => "fine",
      () => "fallback",
    ),
  ).toBe("fine");
  expect(await ctx.redis.commands.exists(keys.errors())).toBe(0);
  await eventually(() => ctx.clock.sleeping === 0);
});

import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { decimal, expires, family, string } from "../../kernel/keyspace/index.ts";
import { callSpaced, reserve, type SpacedApi } from "./index.ts";

const keys = family("spacing_test", {
  slot: string("spacing_test:{api}", decimal, { doc: "the last slot of an API", ttl: expires() }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

const pexels: SpacedApi = { name: "pexels", key: keys.slot({ api: "pexels" }), longestInterval: 40 };
const ccmixter: SpacedApi = { name: "ccmixter", key: keys.slot({ api: "ccmixter" }), longestInterval: 30 };

it("fifty calls of five processes are never closer than the interval, and a hasty sixth caller reserves nothing", async () => {
  const start = ctx.clock.now();
  const times: number[] = [];
  const processes = Array.from({ length: 5 }, () => ctx.process());
  let callers = processes.length;
  const running = processes.map(async (process) => {
    for (let call = 0; call < 10; call++)
      await callSpaced(process, pexels, { interval: 40 }, async () => void times.push(ctx.clock.now()));
    callers--;
  });
  await eventually(() => ctx.clock.sleeping >= 4);
  const hasty = callSpaced(ctx.process(), pexels, { interval: 40, maxWait: 60 }, async () => {});
  await expect(hasty).rejects.toMatchObject({ code: "api_busy", status: 503 });
  while (times.length < 50) {
    // Everybody who has calls left is asleep before time goes on.
    await eventually(() => ctx.clock.sleeping === callers);
    await ctx.clock.advance(40);
  }
  await Promise.all(running);
  expect(times.map((time) => Math.round(time - start))).toEqual(Array.from({ length: 50 }, (_, index) => index * 40));
});

it("each reservation keeps its own interval from the slot before, and the key lives as long as it matters", async () => {
  const now = ctx.clock.now();
  const slots: number[] = [];
  for (const interval of [3, 30, 3]) {
    const reservation = await reserve(ctx, ccmixter, { interval });
    expect(reservation.ok).toBe(true);
    slots.push(Math.round(reservation.slot - now));
  }
  expect(slots).toEqual([0, 30, 33]);
  expect(Math.round((await ctx.redis.commands.pttl(ccmixter.key)) / 1000)).toBe(63);
});

it("a slot too far ahead is named and not taken", async () => {
  await reserve(ctx, pexels, { interval: 40 });
  const before = await ctx.redis.commands.get(pexels.key);
  expect(await reserve(ctx, pexels, { interval: 40, maxWait: 39 })).toEqual({
    ok: false,
    reason: "busy",
    slot: ctx.clock.now() + 40,
  });
  expect(await ctx.redis.commands.get(pexels.key)).toBe(before);
});

it("a wait that is cut short wastes its slot and calls nothing", async () => {
  await reserve(ctx, pexels, { interval: 40 });
  const stopping = new AbortController();
  let called = false;
  const waiting = callSpaced(ctx, pexels, { interval: 40, signal: stopping.signal }, async () => {
    called = true;
  });
  await eventually(() => ctx.clock.sleeping === 1);
  stopping.abort();
  await expect(waiting).rejects.toThrow(/abort/i);
  expect(called).toBe(false);
  expect((await reserve(ctx, pexels, { interval: 40 })).slot).toBe(ctx.clock.now() + 80);
});

it("a slot that is no number counts as never used, is overwritten, and one warning says so", async () => {
  await ctx.redis.commands.set(pexels.key, "soon");
  expect(await reserve(ctx, pexels, { interval: 40 })).toEqual({ ok: true, slot: ctx.clock.now() });
  expect(ctx.alerts.identifiers()).toEqual(["api_limiter:not_a_number"]);
  expect(Number(await ctx.redis.commands.get(pexels.key))).toBe(ctx.clock.now());
});

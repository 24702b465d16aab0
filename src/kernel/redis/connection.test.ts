import { afterAll, beforeAll, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());

test("a key with a TTL obeys the virtual clock", async () => {
  await ctx.redis.commands.set("a", "1", "PX", 60_000);
  await ctx.clock.advance(59);
  expect(await ctx.redis.commands.pttl("a")).toBeLessThanOrEqual(1000);
  await ctx.clock.advance(1);
  expect(await ctx.redis.commands.get("a")).toBeNull();
});

test("a death before a command leaves it undone, a death after it leaves it done", async () => {
  const seen: string[] = [];
  const deaths = await dieAtEveryCommand(ctx.server, {
    prepare: () => ctx.flush(),
    life: async (connection) => {
      await connection.commands.incr("n");
      await connection.commands.incr("n");
    },
    afterlife: async (death) => {
      seen.push(`${death.at} ${death.kind} ${await ctx.redis.commands.get("n")}`);
    },
  });
  expect(deaths).toBe(4);
  expect(seen).toEqual(["1 before null", "1 after 1", "2 before 1", "2 after 2"]);
});

import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { dieAtEveryCommand, mortalConnection } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement, MortalSql } from "../../../test/harness/chaos-sql.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { Catalogue } from "../../kernel/keyspace/index.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { dailyStats, datedCounterMigrations, isoDate, readCounts, rotate, StatisticsCalendar, Stats } from "./index.ts";

const WEEK = 604_800;
const calls = dailyStats({
  family: "shop_calls",
  keysFamily: "shop",
  title: "Calls",
  table: "shop_call_stats",
  held: 1,
  keep: WEEK,
  events: { received: {}, refused: { by: "{reason}" } },
});

const calendar = new StatisticsCalendar("America/Los_Angeles");
const YESTERDAY = 19_999;
const START = calendar.startOf(YESTERDAY + 1) + 3 * 3600;

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ sql: "empty", start: START });
  await migrate(ctx.sql, [
    { domain: "dated_counters", migrations: datedCounterMigrations },
    { domain: "stats:shop_calls", migrations: calls.migrations },
  ]);
});
const clean = async () => {
  await ctx.flush();
  await ctx.sql.script("truncate stat_rotations, shop_call_stats restart identity");
};
beforeEach(clean);
afterAll(() => ctx.close());

async function count(by: number, date = YESTERDAY): Promise<void> {
  const stats = new Stats(ctx, calendar).incrOn(calls, "received", date, { by });
  await stats.incrOn(calls, "refused", date, { by, extra: "no_signature" }).store();
}
const run = (process: Pick<KernelContext, "redis" | "sql" | "clock" | "alerts"> = ctx) =>
  rotate(process, calls, { calendar });

async function rows() {
  const found = await sql<Record<string, unknown>>`
    select retrieved_for, received, refused, refused_breakdown from shop_call_stats order by retrieved_for`.execute(
    ctx.sql.tables(),
  );
  return found.rows;
}
const rowOf = (total: number, date = YESTERDAY) => ({
  retrieved_for: isoDate(date),
  received: total,
  refused: total,
  refused_breakdown: { no_signature: total },
});
const ttl = (key: string) => ctx.redis.commands.ttl(key);

it("a family that keeps its days stores them like any other, and their counters stay for as long as it says", async () => {
  await count(5);
  expect(await run()).toEqual({ stop: "list_exhausted", dates: [YESTERDAY] });
  expect(await rows()).toEqual([rowOf(5)]);
  const { commands } = ctx.redis;
  expect(await commands.hgetall(calls.day(YESTERDAY))).toEqual({ received: "5", refused: "5" });
  expect(await commands.hgetall(calls.extra(YESTERDAY, "refused"))).toEqual({ no_signature: "5" });
  expect(await ttl(calls.day(YESTERDAY))).toBeGreaterThan(WEEK - 10);
  expect(await ttl(calls.extra(YESTERDAY, "refused"))).toBeGreaterThan(WEEK - 10);
  expect(await commands.get(calls.earliest())).toBe(String(YESTERDAY + 1));
  expect(new Catalogue([{ name: "shop", keys: [calls.keys] }]).match(calls.day(1))?.entry.ttl).toMatchObject({
    rule: "optional",
    max: WEEK,
  });
  // A kept day is in SQL: what Redis still has of it does not count again.
  const { days } = await readCounts(ctx, calls, YESTERDAY, YESTERDAY + 1);
  expect(days.get(YESTERDAY)?.counts).toEqual({ received: 5, refused: 5 });
});

it("what is counted on a day that is kept is added to its row, and what was stored before is not", async () => {
  await count(5);
  await run();
  await count(2);
  await run();
  expect(await rows()).toEqual([rowOf(7)]);
  expect(await ctx.redis.commands.hget(calls.day(YESTERDAY), "received")).toBe("7");
  expect(await ctx.redis.commands.get(calls.earliest())).toBe(String(YESTERDAY + 1));
  await ctx.redis.commands.del(calls.day(YESTERDAY), calls.extra(YESTERDAY, "refused"));
  await count(3);
  await run();
  expect(await rows()).toEqual([rowOf(10)]);
});

it("a kept day that is counted on again is told once, and so are the kept days after it, before and after it is stored", async () => {
  await count(3, YESTERDAY - 1);
  await count(5);
  await run();
  const told = async () => {
    const { days } = await readCounts(ctx, calls, YESTERDAY - 1, YESTERDAY + 1);
    return [...days.values()].map(({ counts, breakdowns }) => [counts.received, breakdowns.refused?.no_signature]);
  };
  // It also moves the pointer back, and Redis is read from there on.
  await count(2, YESTERDAY - 1);
  expect(await told()).toEqual([
    [5, 5],
    [5, 5],
  ]);
  await run();
  expect(await told()).toEqual([
    [5, 5],
    [5, 5],
  ]);
  // Once its counters have expired, what is counted then is all that Redis has.
  await ctx.redis.commands.del(calls.day(YESTERDAY), calls.extra(YESTERDAY, "refused"));
  await count(4);
  expect(await told()).toEqual([
    [5, 5],
    [9, 9],
  ]);
});

it("keeping days for longer than rotations are remembered is refused", () => {
  const plan = { family: "x", keysFamily: "x", title: "X", table: "x", held: 1, events: { a: {} } };
  expect(() => dailyStats({ ...plan, keep: 30 * 86_400 })).toThrow("at most");
});

const prepare = async () => {
  await clean();
  await count(3, YESTERDAY - 1);
  await count(5);
};
const afterlife = async (death: object) => {
  await count(7);
  await run();
  await run();
  expect(await rows(), JSON.stringify(death)).toEqual([rowOf(3, YESTERDAY - 1), rowOf(12)]);
  expect(await ctx.redis.commands.get(calls.earliest())).toBe(String(YESTERDAY + 1));
  expect(await ttl(calls.day(YESTERDAY)), JSON.stringify(death)).toBeGreaterThan(0);
};

it("a rotation of kept days that dies at any Redis command loses and doubles no count", async () => {
  const deaths = await dieAtEveryCommand(ctx.server, {
    prepare,
    life: async (redis) => void (await run({ ...ctx.process(), redis })),
    afterlife,
  });
  expect(deaths).toBeGreaterThanOrEqual(8);
});

it("a rotation of kept days that dies at any SQL statement loses and doubles no count", async () => {
  const deaths = await dieAtEveryStatement(ctx.sql, {
    prepare,
    life: async (mortal) => void (await run({ ...ctx.process(), sql: mortal })),
    afterlife,
  });
  expect(deaths).toBeGreaterThanOrEqual(20);
});

it("no order of counts, rotations and deaths loses or doubles a count of a kept day", async () => {
  const dying = (kind: "redis" | "sql", boundaries: number) =>
    fc.record({
      kind: fc.constant(kind),
      at: fc.integer({ min: 1, max: boundaries }),
      death: fc.constantFrom("before" as const, "after" as const),
    });
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("count" as const), by: fc.integer({ min: 1, max: 9 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("rotate" as const) }) },
    { weight: 3, arbitrary: dying("redis", 8) },
    { weight: 3, arbitrary: dying("sql", 10) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 12 }), async (steps) => {
      await clean();
      let total = 0;
      for (const next of steps)
        if (next.kind === "count") {
          await count(next.by);
          total += next.by;
        } else if (next.kind === "rotate") await run();
        else if (next.kind === "sql") {
          const mortal = new MortalSql(ctx.sql, { dieAt: next.at, death: next.death });
          await run({ ...ctx.process(), sql: mortal }).catch(() => {});
        } else {
          const redis = await mortalConnection(ctx.server, { dieAt: next.at, death: next.death });
          await run({ ...ctx.process(), redis }).catch(() => {});
          redis.commands.disconnect();
        }
      await run();
      await run();
      if (total > 0) expect(await rows()).toEqual([rowOf(total)]);
    }),
    { numRuns: 20 },
  );
});

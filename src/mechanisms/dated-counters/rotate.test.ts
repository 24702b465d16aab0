import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { dieAtEveryCommand, mortalConnection } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement, MortalSql } from "../../../test/harness/chaos-sql.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { family, hash, integer, mapOf, member, set, string } from "../../kernel/keyspace/index.ts";
import { migrate } from "../../kernel/sql/index.ts";
import {
  applyDeltas,
  applyOperations,
  createStatsTable,
  datedCounterMigrations,
  defineDailyCount,
  defineDailyStats,
  dropMonths,
  forgetRotations,
  isoDate,
  readCounts,
  rotate,
  rotateUniques,
  StatisticsCalendar,
  Stats,
  stageDeltas,
  sweepDeltas,
} from "./index.ts";

const keys = family("shop", {
  day: hash("stats:checkouts:daily:{unix_date}", mapOf(integer), { doc: "event to count" }),
  extra: hash("stats:checkouts:daily:{unix_date}:extra:{event}", mapOf(integer), { doc: "breakdown" }),
  earliest: string("stats:checkouts:daily:earliest", integer, { doc: "earliest day" }),
  news: string("stats:new_things:{unix_date}", integer, { doc: "new things" }),
  newsEarliest: string("stats:new_things:earliest", integer, { doc: "earliest day" }),
  active: set("stats:active:{unix_date}", member, { doc: "who was there" }),
  activeEarliest: string("stats:active:earliest", integer, { doc: "earliest day" }),
  month: string("stats:things:monthly:{unix_month}:count", integer, { doc: "things this month" }),
  monthEarliest: string("stats:things:monthly:earliest", integer, { doc: "earliest month" }),
});

const checkouts = defineDailyStats({
  name: "shop:checkouts",
  table: "shop_checkout_stats",
  events: { started: {}, paid: { by: "{currency}" }, failed: { by: "{provider}:{code}" } },
  held: 1,
  keys: { day: keys.day, extra: keys.extra, earliest: keys.earliest },
});
const news = defineDailyCount({
  name: "new_things",
  table: "new_thing_stats",
  held: 1,
  keys: { day: keys.news, earliest: keys.newsEarliest },
});
const active = {
  name: "active",
  table: "active_stats",
  period: "day" as const,
  held: 1,
  members: (unix_date: number) => keys.active({ unix_date }),
  earliest: keys.activeEarliest,
};

const calendar = new StatisticsCalendar("America/Los_Angeles");
/** Three in the morning, so that yesterday may be rotated. */
const START = calendar.startOf(20_000) + 3 * 3600;
const YESTERDAY = 19_999;

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ sql: "empty", start: START });
  const count = (table: string) => `create table ${table} (
  id bigint generated always as identity primary key,
  retrieved_for date not null unique,
  retrieved_at timestamptz not null,
  total integer not null
);
`;
  const up = createStatsTable(checkouts) + count("new_thing_stats") + count("active_stats");
  await migrate(ctx.sql, [
    { domain: "dated_counters", migrations: datedCounterMigrations },
    { domain: "shop", migrations: [{ number: 1, name: "create statistics", up }] },
  ]);
});
beforeEach(() => clean());
afterAll(() => ctx.close());

async function clean(): Promise<void> {
  await ctx.flush();
  await ctx.sql.script(
    "truncate stat_rotations, stat_deltas, shop_checkout_stats, new_thing_stats, active_stats restart identity",
  );
  ctx.alerts.recorded.length = 0;
}

/** Counts on a day as a unit of work would. */
async function count(date: number, events: { started?: number; paid?: number }): Promise<void> {
  const stats = new Stats(ctx, calendar);
  stats.incrOn(checkouts, "started", date, { by: events.started ?? 0 });
  stats.incrOn(checkouts, "paid", date, { by: events.paid ?? 0, extra: "usd" });
  await stats.store();
}

interface CheckoutRow {
  retrieved_for: string;
  started: number;
  paid: number;
  paid_breakdown: Record<string, number>;
}

async function rows(): Promise<CheckoutRow[]> {
  const found = await sql<CheckoutRow>`
    select retrieved_for, started, paid, paid_breakdown from shop_checkout_stats order by retrieved_for`.execute(
    ctx.sql.tables(),
  );
  return found.rows;
}

const run = (process: Pick<KernelContext, "redis" | "sql" | "clock" | "alerts"> = ctx) =>
  rotate(process, checkouts, { calendar });

describe("rotation", () => {
  it("moves a finished day into one row with its breakdowns and leaves nothing of it in Redis", async () => {
    await count(YESTERDAY, { started: 10, paid: 8 });
    await count(YESTERDAY + 1, { started: 1 });
    expect(await run()).toEqual({ stop: "list_exhausted", dates: [YESTERDAY] });
    expect(await rows()).toEqual([
      { retrieved_for: isoDate(YESTERDAY), started: 10, paid: 8, paid_breakdown: { usd: 8 } },
    ]);
    expect(await ctx.redis.commands.keys(`stats:checkouts:daily:${YESTERDAY}*`)).toEqual([]);
    expect(await ctx.redis.commands.get(keys.earliest())).toBe(String(YESTERDAY + 1));
    expect(await ctx.redis.commands.hgetall(keys.day({ unix_date: YESTERDAY + 1 }))).toEqual({ started: "1" });
  });

  it("stores a row of zeros for a day without events", async () => {
    await count(YESTERDAY - 2, { started: 1 });
    await run();
    expect((await rows()).map(({ started }) => started)).toEqual([1, 0, 0]);
  });

  it("holds as many days back as the family says, plus the grace after midnight", async () => {
    const held = { ...checkouts, held: 2 };
    await count(YESTERDAY - 1, { started: 1 });
    await count(YESTERDAY, { started: 2 });
    expect((await rotate(ctx, held, { calendar })).dates).toEqual([YESTERDAY - 1]);
    const early = { ...ctx, clock: { ...ctx.clock, now: () => calendar.startOf(20_000) + 800, monotonic: () => 0 } };
    expect(
      (await rotate({ ...early, redis: ctx.redis, sql: ctx.sql, alerts: ctx.alerts } as never, checkouts, { calendar }))
        .dates,
    ).toEqual([]);
  });

  it("answers uninitialized when nothing was ever counted, and stops on a signal before a day", async () => {
    expect((await run()).stop).toBe("uninitialized");
    await count(YESTERDAY, { started: 1 });
    const stopped = await rotate(ctx, checkouts, { calendar, signal: AbortSignal.abort() });
    expect(stopped).toEqual({ stop: "signal", dates: [] });
    expect(await rows()).toEqual([]);
  });

  it("alerts about a breakdown that does not add up and about undeclared events, and rotates both", async () => {
    await count(YESTERDAY, { started: 1, paid: 2 });
    await ctx.redis.commands.hincrby(keys.day({ unix_date: YESTERDAY }), "paid", 1);
    await ctx.redis.commands.hincrby(keys.day({ unix_date: YESTERDAY }), "refunded", 4);
    await run();
    expect(ctx.alerts.identifiers()).toEqual(["stats:mismatch", "stats:undeclared"]);
    expect((await rows())[0]).toMatchObject({ paid: 3, paid_breakdown: { usd: 2 } });
    const kept = await sql<{ outcome: string; leftover: object }>`select outcome, leftover from stat_rotations`.execute(
      ctx.sql.tables(),
    );
    expect(kept.rows).toEqual([{ outcome: "mismatch", leftover: { refunded: 4 } }]);
    expect(await ctx.redis.commands.exists(keys.day({ unix_date: YESTERDAY }))).toBe(0);
  });

  it("stops with an urgent alert at a count that is no number, changes nothing, and writes down once what is wrong", async () => {
    await count(YESTERDAY - 1, { started: 2 });
    await count(YESTERDAY, { started: 1 });
    const rotations = async () => {
      const found = await sql<object>`select retrieved_for, outcome, leftover, consumed_at is not null as consumed
        from stat_rotations order by id`.execute(ctx.sql.tables());
      return found.rows;
    };
    const day = keys.day({ unix_date: YESTERDAY });
    await ctx.redis.commands.hset(day, "paid", "many");
    expect(await run()).toEqual({ stop: "malformed", dates: [YESTERDAY - 1] });
    expect(await run()).toEqual({ stop: "malformed", dates: [] });
    expect(ctx.alerts.recorded.at(-1)).toMatchObject({ level: "urgent", identifier: "stats:malformed" });
    expect(await rows()).toHaveLength(1);
    expect(await ctx.redis.commands.hgetall(day)).toEqual({ started: "1", paid: "many" });
    const before = { retrieved_for: isoDate(YESTERDAY - 1), outcome: "ok", leftover: null, consumed: true };
    const wrong = { retrieved_for: isoDate(YESTERDAY), outcome: "malformed", consumed: true };
    expect(await rotations()).toEqual([before, { ...wrong, leftover: { day: { paid: "many" } } }]);
    await ctx.redis.commands.hdel(day, "paid");
    expect(await run()).toEqual({ stop: "list_exhausted", dates: [YESTERDAY] });
    expect((await rows())[1]).toMatchObject({ started: 1 });
    expect(await rotations()).toHaveLength(3);
  });

  it("rotates string counters the same way", async () => {
    await applyOperations(ctx, [
      { op: "low", key: keys.newsEarliest(), value: YESTERDAY },
      { op: "incr", key: keys.news({ unix_date: YESTERDAY }), by: 5 },
    ]);
    await rotate(ctx, news, { calendar });
    const stored = await sql<{ total: number }>`select total from new_thing_stats`.execute(ctx.sql.tables());
    expect(stored.rows).toEqual([{ total: 5 }]);
    expect(await ctx.redis.commands.exists(keys.news({ unix_date: YESTERDAY }))).toBe(0);
  });

  it("two workers that rotate the same days at once store each count once", async () => {
    for (let day = 0; day < 6; day++) await count(YESTERDAY - day, { started: day + 1, paid: 1 });
    await Promise.all([run(ctx.process()), run(ctx.process()), run(ctx.process())]);
    await run();
    expect((await rows()).map(({ started }) => started)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(await ctx.redis.commands.keys("stats:checkouts:daily:1*")).toEqual([]);
  });

  it("forgets consumed rotations after thirty days", async () => {
    await count(YESTERDAY, { started: 1 });
    await run();
    expect(await forgetRotations(ctx)).toBe(0);
    const later = { sql: ctx.sql, clock: { ...ctx.clock, now: () => START + 31 * 86_400 } } as never;
    expect(await forgetRotations(later)).toBe(1);
  });
});

describe("crashes", () => {
  const prepare = async () => {
    await clean();
    await count(YESTERDAY - 1, { started: 3, paid: 2 });
    await count(YESTERDAY, { started: 5, paid: 4 });
  };
  /** Late counts arrive while the dead process's work lies about; two further rotations must make everything true. */
  const afterlife = async (death: object) => {
    await count(YESTERDAY, { started: 7 });
    await run();
    await run();
    const expected = [
      { retrieved_for: isoDate(YESTERDAY - 1), started: 3, paid: 2, paid_breakdown: { usd: 2 } },
      { retrieved_for: isoDate(YESTERDAY), started: 12, paid: 4, paid_breakdown: { usd: 4 } },
    ];
    expect(await rows(), JSON.stringify(death)).toEqual(expected);
    expect(await ctx.redis.commands.keys("stats:checkouts:daily:1*"), JSON.stringify(death)).toEqual([]);
    expect(await ctx.redis.commands.get(keys.earliest())).toBe(String(YESTERDAY + 1));
  };

  it("a rotation that dies at any Redis command loses and doubles nothing", async () => {
    const deaths = await dieAtEveryCommand(ctx.server, {
      prepare,
      life: async (redis) => void (await run({ ...ctx.process(), redis })),
      afterlife,
    });
    expect(deaths).toBeGreaterThanOrEqual(8);
  });

  it("a rotation that dies at any SQL statement loses and doubles nothing", async () => {
    const deaths = await dieAtEveryStatement(ctx.sql, {
      prepare,
      life: async (mortal) => void (await run({ ...ctx.process(), sql: mortal })),
      afterlife,
    });
    expect(deaths).toBeGreaterThanOrEqual(20);
  });

  it("a day is told once also while SQL and Redis both hold it", async () => {
    await prepare();
    const told = async () => {
      const { days } = await readCounts(ctx, checkouts, YESTERDAY - 1, YESTERDAY + 1);
      return [...days.values()].map(({ counts }) => counts.started);
    };
    // Statements: begun, highest, begin, insert, check, upsert, commit, and then the mark.
    const mortal = new MortalSql(ctx.sql, { dieAt: 8, death: "before" });
    await expect(run({ ...ctx.process(), sql: mortal })).rejects.toThrow();
    expect(await rows()).toHaveLength(1);
    expect(await told()).toEqual([3, 5]);
    await run();
    expect(await told()).toEqual([3, 5]);
  });

  it("no order of counts, rotations and crashes loses or doubles a count", async () => {
    const counting = fc.record({
      kind: fc.constant("count" as const),
      day: fc.integer({ min: 0, max: 1 }),
      by: fc.integer({ min: 1, max: 9 }),
    });
    const dying = (kind: "redis" | "sql", boundaries: number) =>
      fc.record({
        kind: fc.constant(kind),
        at: fc.integer({ min: 1, max: boundaries }),
        death: fc.constantFrom("before" as const, "after" as const),
      });
    const step = fc.oneof(
      { weight: 4, arbitrary: counting },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("rotate" as const) }) },
      { weight: 3, arbitrary: dying("redis", 6) },
      { weight: 3, arbitrary: dying("sql", 14) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 14 }), async (steps) => {
        await clean();
        const truth = new Map<number, number>();
        for (const next of steps) {
          if (next.kind === "count") {
            await count(YESTERDAY - next.day, { started: next.by, paid: next.by });
            truth.set(YESTERDAY - next.day, (truth.get(YESTERDAY - next.day) ?? 0) + next.by);
          } else if (next.kind === "rotate") await run();
          else if (next.kind === "sql")
            await run({ ...ctx.process(), sql: new MortalSql(ctx.sql, { dieAt: next.at, death: next.death }) }).catch(
              () => {},
            );
          else {
            const redis = await mortalConnection(ctx.server, { dieAt: next.at, death: next.death });
            await run({ ...ctx.process(), redis }).catch(() => {});
            redis.commands.disconnect();
          }
        }
        await run();
        await run();
        const stored = new Map((await rows()).map((row) => [row.retrieved_for, row]));
        for (const [date, total] of truth)
          expect(stored.get(isoDate(date))).toMatchObject({
            started: total,
            paid: total,
            paid_breakdown: { usd: total },
          });
        expect(await ctx.redis.commands.keys("stats:checkouts:daily:1*")).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });
});

describe("counts of a SQL transaction", () => {
  const stage = async (process: KernelContext) => {
    const stats = new Stats(process, calendar).incr(checkouts, "paid", { extra: "eur", by: 3 });
    const staged = await process.sql
      .tables<never>()
      .transaction()
      .execute((tx) => stageDeltas(tx, process, stats));
    await applyDeltas(process, staged);
  };
  const counted = async () => ({
    day: await ctx.redis.commands.hget(keys.day({ unix_date: YESTERDAY + 1 }), "paid"),
    extra: await ctx.redis.commands.hget(keys.extra({ unix_date: YESTERDAY + 1, event: "paid" }), "eur"),
    left: (await sql`select 1 from stat_deltas`.execute(ctx.sql.tables())).rows.length,
  });

  it("are applied after the commit and leave no row", async () => {
    await stage(ctx);
    expect(await counted()).toEqual({ day: "3", extra: "3", left: 0 });
  });

  it("are applied exactly once if the transaction committed, wherever the process died", async () => {
    const afterlife = async (death: { statement?: string; command?: string }) => {
      const committed = (await sql`select 1 from stat_deltas`.execute(ctx.sql.tables())).rows.length > 0;
      const before = await counted();
      expect(committed || before.day === null || before.day === "3", JSON.stringify(death)).toBe(true);
      await ctx.clock.advance(10);
      await sweepDeltas(ctx);
      await sweepDeltas(ctx);
      const happened = committed || before.day === "3";
      expect(await counted()).toEqual(
        happened ? { day: "3", extra: "3", left: 0 } : { day: null, extra: null, left: 0 },
      );
    };
    await dieAtEveryCommand(ctx.server, {
      prepare: clean,
      life: (redis) => stage({ ...ctx.process(), redis } as KernelContext),
      afterlife,
    });
    await dieAtEveryStatement(ctx.sql, {
      prepare: clean,
      life: (mortal) => stage({ ...ctx.process(), sql: mortal } as KernelContext),
      afterlife,
    });
  });

  it("the sweep leaves a transaction's own process the first seconds", async () => {
    await ctx.sql
      .tables<never>()
      .transaction()
      .execute((tx) => stageDeltas(tx, ctx, new Stats(ctx, calendar).incr(checkouts, "started")));
    expect(await sweepDeltas(ctx)).toBe(0);
    await ctx.clock.advance(5);
    expect(await sweepDeltas(ctx)).toBe(1);
  });
});

describe("sets and months", () => {
  it("a finished set becomes a number and a second rotation keeps the larger one with a warning", async () => {
    const today = calendar.unixDate(ctx.clock.now());
    await applyOperations(ctx, [
      { op: "low", key: keys.activeEarliest(), value: today - 1 },
      { op: "sadd", key: keys.active({ unix_date: today - 1 }), member: "a" },
      { op: "sadd", key: keys.active({ unix_date: today - 1 }), member: "b" },
    ]);
    expect((await rotateUniques(ctx, active, { calendar })).dates).toEqual([today - 1]);
    await ctx.redis.commands.sadd(keys.active({ unix_date: today - 1 }), "late");
    await ctx.redis.commands.set(keys.activeEarliest(), String(today - 1));
    await rotateUniques(ctx, active, { calendar });
    const stored = await sql<{ total: number }>`select total from active_stats`.execute(ctx.sql.tables());
    expect(stored.rows).toEqual([{ total: 2 }]);
    expect(ctx.alerts.identifiers()).toEqual(["stats:row_exists"]);
    expect(await ctx.redis.commands.get(keys.activeEarliest())).toBe(String(today));
  });

  it("counters of past months are dropped and the pointer names the current month", async () => {
    const month = calendar.unixMonth(ctx.clock.now());
    await applyOperations(ctx, [
      { op: "low", key: keys.monthEarliest(), value: month - 2 },
      { op: "incr", key: keys.month({ unix_month: month - 2 }), by: 3 },
      { op: "incr", key: keys.month({ unix_month: month }), by: 4 },
    ]);
    const counters = { month: (unix_month: number) => keys.month({ unix_month }), earliest: keys.monthEarliest };
    expect(await dropMonths(ctx, counters, calendar)).toBe(1);
    expect(await ctx.redis.commands.get(keys.month({ unix_month: month }))).toBe("4");
    expect(await ctx.redis.commands.get(keys.monthEarliest())).toBe(String(month));
    expect(await dropMonths(ctx, counters, calendar)).toBe(0);
  });
});

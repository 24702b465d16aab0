import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { family, hash, integer, mapOf, member, set, string } from "../../kernel/keyspace/index.ts";
import {
  applyOperations,
  breakdownKey,
  defineDailyStats,
  isoDate,
  isoMonth,
  Kinds,
  StatisticsCalendar,
  Stats,
} from "./index.ts";

const calendar = new StatisticsCalendar("America/Los_Angeles");
const keys = family("bell", {
  day: hash("stats:bells:daily:{unix_date}", mapOf(integer), { doc: "event to count" }),
  extra: hash("stats:bells:daily:{unix_date}:extra:{event}", mapOf(integer), { doc: "breakdown" }),
  earliest: string("stats:bells:daily:earliest", integer, { doc: "earliest day" }),
  from: set("stats:bells:from:{unix_date}", member, { doc: "not yet" }),
  to: set("stats:bells:to:{unix_date}", member, { doc: "come back" }),
});
const bells = defineDailyStats({
  name: "bells",
  table: "bell_stats",
  events: { rung: {}, heard: { by: "{tower}" } },
  held: 2,
  keys,
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ start: calendar.startOf(20_000) + 3600 });
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

describe("calendar", () => {
  it("numbers local days and months", () => {
    expect(calendar.unixDate(Date.UTC(2022, 11, 5, 12) / 1000)).toBe(19_331);
    expect(isoDate(19_331)).toBe("2022-12-05");
    expect(calendar.unixMonth(Date.UTC(2024, 2, 1, 7, 59) / 1000)).toBe(649);
    expect(calendar.unixMonth(Date.UTC(2024, 2, 1, 8) / 1000)).toBe(650);
    expect(isoMonth(650)).toBe("2024-03");
  });

  it("finds the first instant of days that have 23, 24 and 25 hours", () => {
    const hours = (date: number) => (calendar.startOf(date + 1) - calendar.startOf(date)) / 3600;
    expect([19_791, 19_792, 19_793].map(hours)).toEqual([24, 23, 24]);
    expect([20_029, 20_030, 20_031].map(hours)).toEqual([24, 25, 24]);
    for (const date of [19_792, 19_793, 20_030, 20_031]) {
      expect(calendar.unixDate(calendar.startOf(date))).toBe(date);
      expect(calendar.unixDate(calendar.startOf(date) - 1)).toBe(date - 1);
    }
  });

  it("a day is never open and rotatable at once, and always becomes rotatable", () => {
    for (let minute = 0; minute < 60 * 24 * 3; minute += 5) {
      const now = calendar.startOf(20_029) + minute * 60;
      const open = calendar.oldestOpenDate(now, bells);
      expect(calendar.newestRotatableDate(now, bells)).toBeLessThan(open);
      expect(calendar.newestRotatableDate(now + 301, bells)).toBeGreaterThanOrEqual(open - 1);
    }
  });

  it("dates a late event on the oldest open day and a future one on tomorrow at most", () => {
    const now = ctx.clock.now();
    const dated = (time: number) => calendar.dateFor(ctx.clock, time, bells);
    expect(dated(now)).toEqual({ date: 20_000, redated: false });
    expect(dated(now - 86_400)).toEqual({ date: 19_999, redated: false });
    expect(dated(now - 5 * 86_400)).toEqual({ date: 19_999, redated: true });
    expect(dated(now + 9 * 86_400)).toEqual({ date: 20_001, redated: true });
  });

  it("dates what is no time, or what no calendar reaches, on the nearest open day", () => {
    const dated = (time: number) => calendar.dateFor(ctx.clock, time, bells);
    for (const time of [1e300, Number.POSITIVE_INFINITY]) expect(dated(time)).toEqual({ date: 20_001, redated: true });
    for (const time of [-1e300, Number.NEGATIVE_INFINITY, -1])
      expect(dated(time)).toEqual({ date: 19_999, redated: true });
    expect(dated(Number.NaN)).toEqual({ date: 20_000, redated: true });
  });

  it("tells which sums of a day differ, and stays silent about those that agree", () => {
    const { examine } = defineDailyStats({
      name: "chimes",
      table: "chime_stats",
      events: { rung: {}, heard: {}, missed: {} },
      balances: [{ sum: ["rung"], equals: ["heard", "missed"] }],
      held: 2,
      keys,
    });
    expect(examine({ day: { rung: 3, heard: 2, missed: 1 } }).mismatches).toEqual([]);
    expect(examine({ day: { rung: 3, heard: 1 } }).mismatches).toEqual(["rung is 3, and heard + missed is 1"]);
  });
});

describe("collector", () => {
  it("merges equal increments and applies everything with one call", async () => {
    const stats = new Stats(ctx, calendar);
    for (let times = 0; times < 50; times++) stats.incr(bells, "heard", { extra: times % 2 === 0 ? "north" : "south" });
    stats.incr(bells, "rung", { at: ctx.clock.now() - 86_400, by: 4 });
    stats.incr(bells, "rung", { by: 0 });
    expect(stats.operations("bell")).toHaveLength(5);
    await ctx.redis.commands.config("RESETSTAT");
    await stats.store();
    expect(await ctx.redis.commands.info("commandstats")).toMatch(/cmdstat_evalsha:calls=1,/);
    expect(await ctx.redis.commands.hgetall(keys.day({ unix_date: 20_000 }))).toEqual({ heard: "50" });
    expect(await ctx.redis.commands.hgetall(keys.extra({ unix_date: 20_000, event: "heard" }))).toEqual({
      north: "25",
      south: "25",
    });
    expect(await ctx.redis.commands.get(keys.earliest())).toBe("19999");
    await new Stats(ctx, calendar).incr(bells, "rung").store();
    expect(await ctx.redis.commands.get(keys.earliest())).toBe("19999");
  });

  it("counts an event whose day is closed on the oldest open day and says so in a metric", async () => {
    await new Stats(ctx, calendar).incr(bells, "rung", { at: ctx.clock.now() - 9 * 86_400 }).store();
    expect(await ctx.redis.commands.hget(keys.day({ unix_date: 19_999 }), "rung")).toBe("1");
    const redated = async () =>
      Number(/stats_redated_total\{family="bells"\} (\d+)/.exec(await ctx.metrics.text())?.[1]);
    expect(await redated()).toBe(1);
    await new Stats(ctx, calendar).incr(bells, "rung", { at: ctx.clock.now() - 9 * 86_400, by: 4 }).store();
    expect(await redated()).toBe(5);
    // Items of one kind are written down once, and each is an event of its own.
    const kinds = new Kinds(ctx);
    for (const at of [9 * 86_400, 9 * 86_400, 9 * 86_400, 0]) {
      const dated = { at: ctx.clock.now() - at, by: 2 };
      kinds.of("rung", dated.at, (stats) => stats.incr(bells, "rung", dated));
    }
    expect([kinds.count, await redated()]).toEqual([2, 11]);
  });

  it("asks for a breakdown exactly where the event has one", () => {
    const stats = new Stats(ctx, calendar);
    // @ts-expect-error heard has a breakdown, so it needs its key
    stats.incr(bells, "heard", {});
    // @ts-expect-error rung has none
    stats.incr(bells, "rung", { extra: "north" });
    // @ts-expect-error not an event of this family
    expect(() => stats.incr(bells, "silent")).not.toThrow();
  });

  it("cuts breakdown keys to 200 bytes of printable text", () => {
    expect(breakdownKey("a\u0000b\n")).toBe("a?b?");
    const cut = breakdownKey("é".repeat(150));
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(200);
    expect(cut).toMatch(/^é+~$/);
  });

  it("gathers the thousand-and-first breakdown key in one field, so that sums stay true", async () => {
    const key = keys.extra({ unix_date: 20_000, event: "heard" });
    for (let part = 0; part < 3; part++)
      await applyOperations(
        ctx,
        Array.from({ length: 350 }, (_, index) => ({
          op: "xhincr" as const,
          key,
          field: `t${part * 350 + index}`,
          by: 1,
        })),
      );
    expect(await ctx.redis.commands.hlen(key)).toBe(1001);
    expect(await ctx.redis.commands.hget(key, "__other__")).toBe("50");
  });

  it("splits very large units of work and leads each part with the pointers", async () => {
    const operations = Array.from({ length: 1000 }, (_, index) => ({
      op: "hincr" as const,
      key: keys.day({ unix_date: 20_000 }),
      field: `e${index}`,
      by: 1,
    }));
    await applyOperations(ctx, [...operations, { op: "low", key: keys.earliest(), value: 20_000 }]);
    expect(await ctx.redis.commands.hlen(keys.day({ unix_date: 20_000 }))).toBe(1000);
    expect(await ctx.redis.commands.get(keys.earliest())).toBe("20000");
  });

  it("moves a member once, lowering the pointer only then, and stops at an unless that holds", async () => {
    const [from, to, pointer] = [keys.from({ unix_date: 1 }), keys.to({ unix_date: 1 }), keys.earliest()];
    const move = { op: "smove" as const, from, to, member: "ann", pointer, value: 7 };
    await applyOperations(ctx, [move]);
    expect(await ctx.redis.commands.get(pointer)).toBeNull();
    await ctx.redis.commands.sadd(from, "ann");
    await applyOperations(ctx, [move]);
    expect(await ctx.redis.commands.get(pointer)).toBe("7");
    const guarded = [
      { op: "unless" as const, sets: [from, to] as const, member: "ann" },
      { op: "hlow" as const, key: keys.day({ unix_date: 1 }), field: "x", value: 3 },
    ];
    expect(await applyOperations(ctx, guarded)).toBe(-1);
    expect(await ctx.redis.commands.exists(keys.day({ unix_date: 1 }))).toBe(0);
  });
});

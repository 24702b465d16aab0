import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { Catalogue } from "../../kernel/keyspace/index.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { calendarOf, dailyStats, datedCounterMigrations, type Plot, readCounts, rotate, statsOf } from "./index.ts";

const orders = dailyStats({
  family: "cafe:orders",
  keysFamily: "cafe",
  title: "Orders",
  table: "cafe_order_stats",
  events: { taken: {}, served: { by: "{drink}" }, order: {} },
  held: 1,
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ sql: "empty" });
  await migrate(ctx.sql, [
    { domain: "dated_counters", migrations: datedCounterMigrations },
    { domain: "cafe", migrations: orders.migrations },
  ]);
});
afterAll(() => ctx.close());
beforeEach(async () => {
  await ctx.flush();
  await ctx.sql.script("truncate stat_rotations, cafe_order_stats");
});

it("a family in ten lines has its keys, its channel and a table, also for events that SQL has a word for", async () => {
  const { entries } = new Catalogue([{ name: "cafe", keys: [orders.keys] }]);
  expect(entries.map(({ pattern, type, family, origin }) => [pattern, type, family, origin])).toEqual([
    ["ps:stats:cafe:orders:daily", "channel", "cafe", "carillon"],
    ["stats:cafe:orders:daily:earliest", "string", "cafe", "carillon"],
    ["stats:cafe:orders:daily:{unix_date}", "hash", "cafe", "carillon"],
    ["stats:cafe:orders:daily:{unix_date}:extra:{event}", "hash", "cafe", "carillon"],
  ]);
  expect(orders.cachePrefix).toBe("daily_cafe_orders");
  await statsOf(ctx).incr(orders, "order").incr(orders, "served", { extra: "tea", by: 2 }).store();
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  await rotate(ctx, orders, { calendar: calendarOf(ctx), through: today });
  await statsOf(ctx).incr(orders, "served", { extra: "tea" }).store();
  const { days, earliest } = await readCounts(ctx, orders, today, today + 1);
  expect(days.get(today)).toEqual({
    counts: { taken: 0, served: 3, order: 1 },
    breakdowns: { served: { tea: 3 } },
  });
  expect(earliest).toBe(today);
});

it("a family without breakdowns or channel has no keys for them", () => {
  const plain = dailyStats({
    family: "plain",
    keysFamily: "cafe",
    title: "Plain",
    table: "plain_stats",
    events: { seen: {} },
    held: 1,
    channel: false,
    origin: "documented",
  });
  const { entries } = new Catalogue([{ name: "cafe", keys: [plain.keys] }]);
  expect(entries.map(({ pattern, origin }) => [pattern, origin])).toEqual([
    ["stats:plain:daily:earliest", "documented"],
    ["stats:plain:daily:{unix_date}", "documented"],
  ]);
  expect(plain.channel).toBeUndefined();
  expect(() => plain.extra(1, "seen")).toThrow("has no breakdowns");
});

it("a breakdown is demanded and refused by types, and one that is missing all the same is counted and seen", async () => {
  const stats = statsOf(ctx);
  // @ts-expect-error: drinks are told apart
  stats.incr(orders, "served");
  // @ts-expect-error: nothing tells these apart
  expect(() => stats.incr(orders, "taken", { extra: "tea" })).not.toThrow();
  // @ts-expect-error: nobody declares this event
  expect(() => stats.incr(orders, "spilt", { by: 0 })).not.toThrow();
  await stats.store();
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  expect(await ctx.redis.commands.hgetall(orders.extra(today, "served"))).toEqual({ __missing__: "1" });
  expect(await ctx.redis.commands.exists(orders.extra(today, "taken"))).toBe(0);
});

it("what pages draw of a family is checked, and every breakdown is drawn when nothing is said", () => {
  const plan = { family: "drawn", keysFamily: "shop", title: "Drawn", table: "drawn_stats", held: 1 } as const;
  const events = { made: {}, lost: { by: "{why}" } } as const;
  expect(dailyStats({ ...plan, events }).plots).toEqual([
    { title: "Drawn", type: "line", series: ["made", "lost"] },
    { title: "Drawn: lost", type: "stacked", breakdown: "lost" },
  ]);
  const draw = (plot: object) => () =>
    dailyStats({ ...plan, events, plots: [{ title: "P", type: "line", ...plot } as Plot] });
  expect(draw({ series: ["made", "gone"] })).toThrow('drawn: "P" draws gone, which it has not');
  expect(draw({ breakdown: "made" })).toThrow('drawn: "P" draws made, which it has not');
});

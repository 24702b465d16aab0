import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isoDate, rotate, statsOf } from "../../mechanisms/dated-counters/index.ts";
import { invariantsOf } from "./invariants.ts";
import {
  calendar,
  checkouts,
  count,
  FIRST_DAY,
  keptFamily,
  openStatisticsHouse,
  rooms,
  type StatisticsHouse,
  visits,
} from "./statistics.fixture.ts";

let house: StatisticsHouse;
beforeAll(async () => {
  house = await openStatisticsHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const families = [visits, checkouts];

describe("the invariants of a family", () => {
  const broken = async () => {
    const { ctx } = house.instance();
    const found = await Promise.all(
      invariantsOf(() => rooms).map(async ({ name, check }) => (await check(ctx)).map((each) => `${name}: ${each}`)),
    );
    return found.flat();
  };

  it("hold over days that were counted, rotated and counted again", async () => {
    const { ctx } = house.instance();
    for (let date = FIRST_DAY; date < FIRST_DAY + 4; date++) {
      await house.at(date, 13);
      await count(ctx);
      await count(ctx, date - 1);
      for (const family of families) await house.rotate(family);
      expect(await broken()).toEqual([]);
    }
  });

  it("hold on each of five weeks of days in which clocks change, and name the one field that then goes missing", async () => {
    const { ctx } = house.instance();
    // 2024-11-03, the 30th of these days, has 25 hours.
    for (let date = FIRST_DAY; date < FIRST_DAY + 35; date++) {
      await house.at(date, 0, 20);
      await count(ctx, date - 1);
      await house.rotate(visits);
      await house.at(date, 2, 1);
      await house.rotate(checkouts);
      await count(ctx);
      if (date % 5 === 0) expect(await broken(), isoDate(date)).toEqual([]);
    }
    const stored = await house.rows(checkouts);
    expect(stored.slice(1).map(({ started }) => started)).toEqual(Array.from({ length: 33 }, () => 6));
    const today = FIRST_DAY + 34;
    await house.redis.commands.hdel(checkouts.extra(today, "paid"), "eur");
    expect(await broken()).toEqual([
      `stats:breakdowns_add_up: ${checkouts.extra(today, "paid")} adds up to 2, but paid in ${checkouts.day(today)} is 3`,
    ]);
  });

  it("do not take a day that is kept for a while after it was stored for one that is late", async () => {
    const calls = await keptFamily(house, "shop_calls");
    const { ctx } = house.instance();
    await statsOf(ctx).incr(calls, "received").store();
    await house.at(FIRST_DAY + 5, 3);
    const late = invariantsOf(() => [{ stats: [calls] }]).find(({ name }) => name === "stats:rotated_in_time")!;
    expect(await late.check(ctx)).toHaveLength(1);
    await rotate(ctx, calls, { calendar });
    expect(await house.redis.commands.exists(calls.day(FIRST_DAY))).toBe(1);
    for (const { name, check } of invariantsOf(() => [{ stats: [calls] }])) expect(await check(ctx), name).toEqual([]);
  });

  it("name a day before the pointer, and a day without one", async () => {
    await count(house.instance().ctx);
    await house.redis.commands.set(checkouts.earliest(), FIRST_DAY + 1);
    expect((await broken()).filter((each) => each.startsWith("stats:days_are_not_before_earliest"))).toEqual([
      expect.stringContaining(`stats:shop:checkouts:daily:${FIRST_DAY} is older`),
      expect.stringContaining(`stats:shop:checkouts:daily:${FIRST_DAY}:extra:paid is older`),
    ]);
    await house.redis.commands.del(checkouts.earliest(), checkouts.extra(FIRST_DAY, "paid"));
    await house.redis.commands.hdel(checkouts.day(FIRST_DAY), "paid");
    expect(await broken()).toEqual([
      expect.stringContaining("is there, but stats:shop:checkouts:daily:earliest is not"),
    ]);
  });

  it("name a breakdown that does not add up, and one that is not declared", async () => {
    await count(house.instance().ctx);
    await house.redis.commands.hdel(checkouts.extra(FIRST_DAY, "paid"), "eur");
    expect(await broken()).toEqual([
      `stats:breakdowns_add_up: stats:shop:checkouts:daily:${FIRST_DAY}:extra:paid adds up to 2, but paid in stats:shop:checkouts:daily:${FIRST_DAY} is 3`,
    ]);
    await house.redis.commands.hset(checkouts.extra(FIRST_DAY, "paid"), "eur", 1);
    await house.redis.commands.hset(checkouts.extra(FIRST_DAY, "started"), "web", 3);
    expect(await broken()).toEqual([expect.stringContaining(":extra:started is a breakdown that")]);
  });

  it("name negative and broken counts, and events that nobody declares", async () => {
    await count(house.instance().ctx);
    await house.redis.commands.hset(visits.day(FIRST_DAY), { left: "-1", entered: "1.5", danced: "1" });
    expect(await broken()).toEqual([
      `stats:counts_are_counts: ${visits.day(FIRST_DAY)} counts danced, which shop_visits does not declare`,
      `stats:counts_are_counts: ${visits.day(FIRST_DAY)} holds "1.5" as the count of entered`,
      `stats:counts_are_counts: ${visits.day(FIRST_DAY)} holds "-1" as the count of left`,
    ]);
  });

  it("name days that should long be in SQL", async () => {
    await count(house.instance().ctx);
    await house.at(FIRST_DAY + 3, 12);
    expect(await broken()).toEqual([
      expect.stringContaining(`${visits.day(FIRST_DAY)} of ${isoDate(FIRST_DAY)} is not`),
    ]);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement } from "../../../test/harness/chaos-sql.ts";
import { passTimeUntil } from "../../../test/harness/time.ts";
import { RecurringSet } from "../../jobs/index.ts";
import { nextRun } from "../../jobs/schedule.ts";
import { migrate, timestamp } from "../../kernel/sql/index.ts";
import {
  applyDeltas,
  dailyStats,
  isoDate,
  type StatsFamily,
  type StatTables,
  stageDeltas,
  statisticsSettings,
  statsOf,
} from "../../mechanisms/dated-counters/index.ts";
import { lockKeys } from "../../mechanisms/lock/index.ts";
import { checkColumns } from "./columns.ts";
import { readHealth } from "./health.ts";
import { statisticsDomain } from "./index.ts";
import { keys } from "./keys.ts";
import { readRange } from "./ranges.ts";
import { readPartial } from "./service.ts";
import { settings } from "./settings.ts";
import {
  calendar,
  checkouts,
  count,
  FIRST_DAY,
  keptFamily,
  openStatisticsHouse,
  room,
  type StatisticsHouse,
  visits,
  ZONE,
} from "./statistics.fixture.ts";

let house: StatisticsHouse;
beforeAll(async () => {
  house = await openStatisticsHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const THIRD = FIRST_DAY + 2;
const families = [visits, checkouts];
const ROW = { retrieved_for: isoDate(FIRST_DAY), started: 3, paid: 3, paid_breakdown: { eur: 1, usd: 2 }, failed: 0 };
const lockOf = (family: StatsFamily) => `jobs:runner:stats.rotate:${family.name}:lock`;

describe("the rotation of a family", () => {
  it("happens by itself at 02:00 when the family's days are over, and leaves nothing of the day in Redis", async () => {
    const { ctx, worker } = house.instance();
    await count(ctx);
    await house.at(THIRD, 1, 59);
    await worker.start();
    await passTimeUntil(house, async () => (await house.rows(checkouts)).length > 0, { step: 5, limit: 300 });
    await worker.stop();
    expect(house.clock.now() - calendar.startOf(THIRD)).toBeGreaterThanOrEqual(2 * 3600);
    expect(await house.rows(checkouts)).toMatchObject([ROW]);
    expect(await house.redis.commands.keys("stats:shop:checkouts:*")).toEqual([checkouts.earliest()]);
    expect(await house.redis.commands.get(checkouts.earliest())).toBe(String(FIRST_DAY + 1));
  });

  it("is due every hour from 02:00 on, or at a quarter past every hour", () => {
    const set = new RecurringSet(room.recurring, ZONE);
    const next = (family: StatsFamily, after: number) =>
      set.next(set.digestOf("runners.stats.rotate", { family: family.name })!, after) - calendar.startOf(THIRD);
    const midnight = calendar.startOf(THIRD);
    expect(next(visits, midnight)).toBe(900);
    expect(next(visits, midnight + 900)).toBe(4500);
    expect(next(checkouts, midnight)).toBe(7200);
    expect(next(checkouts, midnight + 7200)).toBe(10_800);
    // 2024-03-10 has no 02:00.
    const nightly = [...set.jobs.values()].find(({ kwargs }) => kwargs.family === checkouts.name)!;
    expect(nextRun(nightly.schedule, 1_710_057_600)).toBe(1_710_064_800);
  });

  it("leaves the days that the family holds, and stores days without events as zeros", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(FIRST_DAY + 1, 23, 59);
    await house.rotate(checkouts);
    await house.rotate(visits);
    expect(await house.rows(checkouts)).toEqual([]);
    expect(await house.rows(visits)).toMatchObject([{ entered: 1, total: FIRST_DAY }]);
    await house.at(FIRST_DAY + 4, 3);
    await house.rotate(checkouts);
    expect(await house.rows(checkouts)).toMatchObject([
      ROW,
      { started: 0, paid_breakdown: {} },
      { retrieved_for: isoDate(THIRD), started: 0 },
    ]);
  });

  it("ends without effect while another worker holds its lock", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(THIRD, 3);
    await ctx.locks.withLock(
      lockKeys.runnerLock({ runner: `stats.rotate:${checkouts.name}` }),
      { kind: "owner", wait: "fail" },
      async (lock) => {
        expect(lock.key).toBe(lockOf(checkouts));
        await expect(house.rotate(checkouts, house.instance())).rejects.toMatchObject({ code: "lock_held" });
      },
    );
    expect(await house.rows(checkouts)).toEqual([]);
  });

  it("adds late counts to the row that is already there", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(THIRD, 3);
    await house.rotate(checkouts);
    await statsOf(ctx).incrOn(checkouts, "paid", FIRST_DAY, { extra: "usd", by: 5 }).store();
    expect(await house.redis.commands.get(checkouts.earliest())).toBe(String(FIRST_DAY));
    await house.rotate(checkouts);
    expect(await house.rows(checkouts)).toMatchObject([{ ...ROW, paid: 8, paid_breakdown: { eur: 1, usd: 7 } }]);
  });

  it("counts an event whose day is closed on the oldest open day, and says so", async () => {
    const { ctx } = house.instance();
    await house.at(THIRD, 0, 20);
    await statsOf(ctx)
      .incr(checkouts, "started", { at: calendar.startOf(FIRST_DAY) + 60 })
      .store();
    expect(await readPartial(ctx, checkouts)).toMatchObject({ yesterday: { started: 1 } });
    expect(await ctx.metrics.text()).toContain('carillon_stats_redated_total{family="shop:checkouts"} 1');
  });

  it("that finds something else than counts says so in the health of its family until it is mended", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(THIRD, 3);
    const paid = (value: string) => house.redis.commands.hset(checkouts.extra(FIRST_DAY, "paid"), "usd", value);
    const last = async () => (await readHealth(ctx, families)).families[1]!.last_rotation;
    await paid("two");
    await house.rotate(checkouts);
    expect(await last()).toMatchObject({
      ...{ retrieved_for: isoDate(FIRST_DAY), outcome: "malformed", finished: false },
      leftover: { "extra:paid": { usd: "two" } },
      duration_ms: expect.any(Number),
    });
    await paid("2");
    await house.rotate(checkouts);
    expect(await last()).toMatchObject({ retrieved_for: isoDate(FIRST_DAY), outcome: "ok", finished: true });
    expect(await house.rows(checkouts)).toMatchObject([ROW]);
  });

  describe.each([
    { title: "counts alone", family: checkouts, stored: [ROW] },
    {
      title: "a column that is looked up",
      family: visits,
      stored: [
        { retrieved_for: isoDate(FIRST_DAY), entered: 1, left: 0, total: FIRST_DAY },
        { retrieved_for: isoDate(FIRST_DAY + 1), entered: 0, left: 0, total: FIRST_DAY + 1 },
      ],
    },
  ])("that dies, of a family with $title,", ({ family, stored }) => {
    const prepare = async () => {
      await house.reset();
      await count(house.instance().ctx);
      await house.at(THIRD, 3);
    };
    /** The lock of the dead worker ends, and the next run goes on; nothing is lost, nothing twice. */
    const afterlife = async (death: object) => {
      await house.clock.advance(121);
      await house.rotate(family, house.instance());
      expect(await house.rows(family), JSON.stringify(death)).toMatchObject(stored);
      const left = (await house.redis.commands.keys(`stats:${family.name}:daily:*`)).sort();
      expect(left, JSON.stringify(death)).toEqual([family.earliest()]);
      const told = (await readHealth(house.instance().ctx, families)).families.find(({ name }) => name === family.name);
      const earliest = isoDate(FIRST_DAY + stored.length);
      expect(told).toMatchObject({ earliest, last_rotation: { finished: true } });
    };

    it("at any Redis command of its runner loses no count and doubles none", async () => {
      const deaths = await dieAtEveryCommand(house.server, {
        prepare,
        life: (redis) => house.rotate(family, house.instance({ redis, cacheRedis: redis })),
        afterlife,
      });
      expect(deaths).toBeGreaterThanOrEqual(8);
    });

    it("at any SQL statement of its runner loses no count and doubles none", async () => {
      const deaths = await dieAtEveryStatement(house.sql, {
        prepare,
        life: (sql) => house.rotate(family, house.instance({ sql })),
        afterlife,
      });
      expect(deaths).toBeGreaterThanOrEqual(14);
    });
  });
});

describe("what the minute and the day clear up", () => {
  it("counts of a committed transaction whose process died are applied within a minute, once", async () => {
    const { ctx, worker } = house.instance();
    const stats = statsOf(ctx).incr(checkouts, "started", { by: 7 });
    const staged = await ctx.sql
      .tables<never>()
      .transaction()
      .execute((tx) => stageDeltas(tx, ctx, stats));
    await worker.start();
    await passTimeUntil(house, async () => (await readHealth(ctx, families)).deltas_waiting === 0, { limit: 90 });
    await worker.stop();
    await applyDeltas(ctx, staged);
    expect(await readPartial(ctx, checkouts)).toMatchObject({ today: { started: 7 } });
  });

  it("rotations are forgotten after 30 days, and a family that is late is told, urgently on its second day", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    const insert = (uid: string, consumed_at: number | null) =>
      ctx.sql
        .tables<StatTables>()
        .insertInto("stat_rotations")
        .values({
          uid,
          table_name: "other",
          retrieved_for: "2024-01-01",
          snapshot: "{}",
          outcome: "ok",
          leftover: null,
          created_at: timestamp(0),
          consumed_at: consumed_at === null ? null : timestamp(consumed_at),
        } as never)
        .execute();
    await insert("old", house.clock.now() - 31 * 86_400);
    await insert("young", house.clock.now() - 20 * 86_400);
    await insert("begun", null);
    const forget = room.runners.find(({ name }) => name === "runners.stats.forget_rotations")!;
    await forget.run!(ctx as never, {});
    const left = await ctx.sql.tables<StatTables>().selectFrom("stat_rotations").select("uid").orderBy("uid").execute();
    expect(left.map(({ uid }) => uid)).toEqual(["begun", "young"]);
    expect(ctx.alerts.recorded).toEqual([]);
    await house.at(FIRST_DAY + 3, 3, 10);
    await forget.run!(ctx as never, {});
    expect(ctx.alerts.recorded.map(({ level, identifier }) => [level, identifier])).toEqual([
      ["urgent", "stats:late"],
      ["warning", "stats:late"],
    ]);
  });
});

describe("after Redis lost its data", () => {
  const repair = async () => {
    const runner = room.runners.find(({ name }) => name === "runners.stats.repair_redis")!;
    await runner.run!(Object.assign(Object.create(house.instance().ctx), { progress: async () => {} }) as never, {});
  };

  it("a repair lets rotation go on after the last day in SQL, and days that were lost become zeros", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(THIRD, 3);
    await house.rotate(checkouts);
    await house.flush();
    await house.at(FIRST_DAY + 4, 12);
    await count(ctx);
    expect(await house.redis.commands.get(checkouts.earliest())).toBe(String(FIRST_DAY + 4));
    await repair();
    expect(await house.redis.commands.get(checkouts.earliest())).toBe(String(FIRST_DAY + 1));
    // A family of which SQL has nothing starts anew.
    expect(await house.redis.commands.get(visits.earliest())).toBe(String(FIRST_DAY + 4));
    await house.at(FIRST_DAY + 6, 3);
    await house.rotate(checkouts);
    expect((await house.rows(checkouts)).map(({ started }) => started)).toEqual([3, 0, 0, 0, 3]);
  });

  it("a repair changes nothing where nothing was lost", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(THIRD, 3);
    await count(ctx, FIRST_DAY + 1);
    await house.rotate(checkouts);
    const before = await house.redis.commands.get(checkouts.earliest());
    await repair();
    expect(await house.redis.commands.get(checkouts.earliest())).toBe(before);
  });
});

describe("a start", () => {
  const roles = { web: false, worker: true };
  const inZone = (zone: string, rebase = false) =>
    house.instance({
      settings: [
        [statisticsSettings.timezone, zone],
        [settings.rebase, rebase],
      ],
    }).ctx;

  it("in another timezone is refused once something was counted, unless it is meant; then the open days are closed first", async () => {
    await room.start(inZone(ZONE), roles);
    await room.start(inZone("Europe/Berlin"), roles);
    await room.start(inZone(ZONE), roles);
    await count(inZone(ZONE));
    await expect(room.start(inZone("Europe/Berlin"), roles)).rejects.toMatchObject({ code: "timezone_changed" });
    await room.start(inZone(ZONE), roles);
    expect(await house.rows(checkouts)).toEqual([]);

    await room.start(inZone("Europe/Berlin", true), roles);
    expect((await house.rows(checkouts))[0]).toMatchObject(ROW);
    expect((await house.rows(visits))[0]).toMatchObject({ entered: 1 });
    expect(await house.redis.commands.keys("stats:shop*:daily:2*")).toEqual([]);
    expect(await house.redis.commands.get(keys.timezone())).toBe("Europe/Berlin");
    await expect(room.start(inZone(ZONE), roles)).rejects.toThrow("counted in Europe/Berlin");

    // What a straggler of the old timezone counts is added to the row of its day.
    await count(inZone(ZONE));
    await house.at(THIRD, 12);
    await house.rotate(checkouts, house.instance({ settings: [[statisticsSettings.timezone, "Europe/Berlin"]] }));
    expect((await house.rows(checkouts))[0]).toMatchObject({ started: 6, paid_breakdown: { eur: 2, usd: 4 } });
  });

  it("in another timezone does not let a day that is kept count twice", async () => {
    const calls = await keptFamily(house, "shop_rings");
    const { start } = statisticsDomain(() => [{ stats: [calls] }]);
    await start(inZone(ZONE), roles);
    await statsOf(inZone(ZONE)).incr(calls, "received", { by: 5 }).store();
    const berlin = inZone("Europe/Berlin", true);
    await start(berlin, roles);
    await statsOf(berlin).incr(calls, "received", { by: 2 }).store();
    expect(await readPartial(berlin, calls)).toMatchObject({ today: { received: 7 } });
    const day = isoDate(FIRST_DAY);
    expect(await readRange(berlin, calls, { from: day, to: day, group: "day" })).toMatchObject({ received: [7] });
  });

  it("is refused when an event has no column, and an event that came later gets one by its own step", async () => {
    const first = { family: "late_shop", keysFamily: "shop", title: "Late", table: "late_shop_stats", held: 1 };
    const old = dailyStats({ ...first, events: { opened: {}, sold: {} } });
    const forgotten = dailyStats({ ...first, events: { opened: {}, sold: {}, closed: { by: "{reason}" } } });
    const right = dailyStats({
      ...first,
      events: { opened: {}, sold: { by: "{item}", bySince: 3 }, closed: { by: "{reason}", since: 2 } },
    });
    const plan = (family: StatsFamily) => [{ domain: `stats:${family.name}`, migrations: family.migrations }];
    await migrate(house.sql, plan(old));
    await checkColumns(house, [old]);
    await expect(checkColumns(house, [forgotten])).rejects.toThrow(
      "lack late_shop_stats.closed, late_shop_stats.closed_breakdown",
    );
    const applied = await migrate(house.sql, plan(right));
    expect(applied.map(({ number }) => number)).toEqual([2, 3]);
    await checkColumns(house, [right]);
    expect(() => dailyStats({ ...first, grace: 7000, events: {} })).toThrow("shorten the grace");
  });
});

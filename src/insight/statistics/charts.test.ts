import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { chartFrame } from "../../kernel/keyspace/frames.ts";
import { isoDate, type StatsFamily, statsOf } from "../../mechanisms/dated-counters/index.ts";
import { cacheSettings } from "../../mechanisms/layered-cache/index.ts";
import type { ChartCopy } from "./chart-copies.ts";
import { ChartDesk, deskOf, openDesk } from "./chart-desk.ts";
import { chartSpan } from "./charts.ts";
import { readChart, readPartial } from "./service.ts";
import {
  calendar,
  checkouts,
  count,
  FIRST_DAY,
  openStatisticsHouse,
  room,
  type StatisticsHouse,
  visits,
} from "./statistics.fixture.ts";

let house: StatisticsHouse;
beforeAll(async () => {
  house = await openStatisticsHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const NEXT = FIRST_DAY + 1;
const chartOf = ({ blob }: ChartCopy) => JSON.parse(gunzipSync(blob).toString()) as Record<string, never[]>;
const lastOf = (copy: ChartCopy, column: string) => chartOf(copy)[column]!.at(-1);

/** What is told on a family's channel from now on. */
async function heard(family: StatsFamily): Promise<Buffer[]> {
  const frames: Buffer[] = [];
  await house.process().subscriber.subscribe(family.channel!, (frame) => frames.push(frame));
  return frames;
}

describe("a chart", () => {
  it("at five past midnight it shows yesterday from Redis and is told to nobody; after the rotation it is the same from SQL, and told once", async () => {
    const frames = await heard(visits);
    const { ctx, desk } = house.instance();
    await count(ctx);
    await house.at(NEXT, 0, 5);
    const early = await desk.chart(visits, 90);
    expect(early.provisional).toBe(true);
    expect(early.expiresAt - house.clock.now()).toBe(60);
    expect(lastOf(early, "entered")).toBe(1);

    await house.at(NEXT, 2);
    await house.rotate(visits);
    await house.at(NEXT, 2, 1);
    const late = await desk.chart(visits, 90);
    expect(late.provisional).toBe(false);
    expect(late.expiresAt).toBe(calendar.startOf(NEXT + 1));
    expect(chartOf(late)).toEqual({ ...chartOf(early), total: expect.arrayContaining([FIRST_DAY]) });
    expect(chartOf(late).labels).toHaveLength(90);
    expect(lastOf(late, "labels")).toBe(isoDate(FIRST_DAY));
    await desk.chart(visits, 90);
    await eventually(() => frames.length === 1);
    expect(chartFrame.decode(frames[0]!)).toEqual({ startDate: NEXT - 90, endDate: NEXT, blob: late.blob });
  });

  it("is answered by a second instance from the frame of the first, without a question to SQL", async () => {
    const first = house.instance();
    const sql = new MortalSql(house.sql);
    const second = house.instance({ sql });
    await second.desk.listen([visits, checkouts]);
    await house.at(NEXT, 3);
    const built = await first.desk.chart(visits, 30);
    await eventually(() => second.desk.atHand === 1);
    expect((await second.desk.chart(visits, 30)).blob).toEqual(built.blob);
    expect(sql.sent).toBe(0);
    await second.desk.close();
  });

  it("is served from its copy while SQL is down, also after a restart, and refused with 503 when there is none", async () => {
    const folder = mkdtempSync(join(tmpdir(), "carillon-charts-"));
    try {
      const settings = [[cacheSettings.folder, folder]] as const;
      const { ctx } = house.instance({ settings });
      await count(ctx);
      await house.at(NEXT, 3);
      await house.rotate(visits);
      const before = await openDesk(ctx, [visits]);
      const built = await before.chart(visits, 90);
      await before.close();

      const sql = new MortalSql(house.sql, { dieAt: 1, death: "before" });
      const restarted = house.instance({ sql, settings });
      const desk = await openDesk(restarted.ctx, [visits]);
      expect(await readChart(restarted.ctx, visits)).toEqual(chartOf(built));
      expect(deskOf(restarted.ctx)).toBe(desk);
      expect(sql.sent).toBe(0);
      await expect(desk.chart(visits, 30)).rejects.toMatchObject({
        code: "source_unavailable",
        status: 503,
        retryAfter: 5,
      });
      await desk.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("is built at night by one worker for all instances, which then ask SQL for nothing", async () => {
    const sql = new MortalSql(house.sql);
    const web = house.instance({ sql });
    await web.desk.listen([visits, checkouts]);
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(FIRST_DAY + 2, 2, 20);
    await house.rotate(visits);
    await house.rotate(checkouts);
    const warm = room.runners.find(({ name }) => name === "runners.stats.warm_charts")!;
    await warm.run!(Object.assign(Object.create(ctx), { shuttingDown: () => false }) as never, {});
    await eventually(() => web.desk.atHand === 2);
    expect(chartOf(await web.desk.chart(checkouts, 90)).started!.at(-1)).toBe(3);
    expect(lastOf(await web.desk.chart(visits, 90), "labels")).toBe(isoDate(FIRST_DAY + 1));
    expect(sql.sent).toBe(0);
    await web.desk.close();
  });

  it("is built once for all who ask at the same time", async () => {
    const sql = new MortalSql(house.sql);
    const { desk } = house.instance({ sql });
    await house.at(NEXT, 3);
    const copies = await Promise.all(Array.from({ length: 20 }, () => desk.chart(checkouts, 90)));
    expect(new Set(copies).size).toBe(1);
    expect(sql.sent).toBe(3);
  });

  it("has a number for every day, key and event, and only the days of a sparse key", async () => {
    const { ctx, desk } = house.instance();
    await count(ctx);
    await statsOf(ctx).incr(checkouts, "failed", { extra: "bank:no", by: 4 }).store();
    await house.at(FIRST_DAY + 2, 3);
    await house.rotate(checkouts);
    const chart = chartOf(await desk.chart(checkouts, 30));
    const zeros = Array.from({ length: 29 }, () => 0);
    expect(chart).toEqual({
      labels: Array.from({ length: 30 }, (_, index) => isoDate(FIRST_DAY - 29 + index)),
      started: [...zeros, 3],
      paid: [...zeros, 3],
      failed: [...zeros, 4],
      paid_breakdown: { eur: [...zeros, 1], usd: [...zeros, 2] },
      failed_breakdown: { "bank:no": { 29: 4 } },
    });
  });

  it("is not kept for the day while its last day could still be counted on, even if nothing was", async () => {
    const { desk } = house.instance();
    await house.at(NEXT, 0, 10);
    expect((await desk.chart(visits, 30)).provisional).toBe(true);
    await house.at(NEXT, 0, 15);
    expect((await desk.chart(visits, 30)).provisional).toBe(false);
  });

  it("on the day of a clock change it ends at the real midnight", async () => {
    house.clock.jump(calendar.startOf(19_792) + 4 * 3600 - house.clock.now());
    const { desk } = house.instance();
    // 2024-03-10 had 23 hours.
    expect((await desk.chart(visits, 30)).expiresAt).toBe(calendar.startOf(19_792) + 23 * 3600);
  });
});

describe("a frame", () => {
  const blob = Buffer.from(
    "1f8b0800000000000003ab56ca494c4acd2956b28a5632323032d135" +
      "30d635b054d281730c0d94627594 8a4b127352 95aca28d750c626b01a1a9d92f34000000".replaceAll(" ", ""),
    "hex",
  );
  const frame = chartFrame.encode({ startDate: 19_791, endDate: 19_793, blob }) as Buffer;

  it("is kept with bytes behind it, and dropped and counted when it is cut, too wide, of open days or no gzip", async () => {
    const { ctx, desk } = house.instance();
    expect(frame).toHaveLength(80);
    expect(JSON.parse(gunzipSync(blob).toString())).toEqual({ labels: ["2024-03-09", "2024-03-10"], stale: [3, 0] });
    expect(desk.receive(checkouts, frame)).toBe(true);
    expect(desk.receive(checkouts, Buffer.concat([frame, Buffer.from("xyz")]))).toBe(true);
    const { end } = chartSpan(calendar, house.clock.now(), checkouts, 0);
    const wrong = [
      frame.subarray(0, -1),
      frame.subarray(0, 15),
      Buffer.alloc(0),
      chartFrame.encode({ startDate: 19_000, endDate: 19_367, blob }) as Buffer,
      chartFrame.encode({ startDate: 19_793, endDate: 19_793, blob }) as Buffer,
      chartFrame.encode({ startDate: end - 1, endDate: end + 1, blob }) as Buffer,
      chartFrame.encode({ startDate: 19_791, endDate: 19_793, blob: Buffer.from("no gzip") }) as Buffer,
      // It begins like gzip, but is none.
      chartFrame.encode({ startDate: 19_791, endDate: 19_793, blob: blob.subarray(0, 40) }) as Buffer,
    ];
    for (const each of wrong) expect(desk.receive(checkouts, each), each.toString("hex")).toBe(false);
    expect(await ctx.metrics.text()).toContain(
      `carillon_frames_dropped_total{channel="ps:stats:shop:checkouts:daily"} ${wrong.length}`,
    );
  });

  it("may hold a chart of 16 MiB, and is dropped when it holds a byte more", () => {
    const { desk } = house.instance();
    const most = 16 * 1024 * 1024;
    /** Gzip that does not compress, of exactly this size. */
    const gzipOf = (size: number) => {
      let length = size;
      for (;;) {
        const packed = gzipSync(Buffer.alloc(length), { level: 0 });
        if (packed.length === size) return packed;
        length += size - packed.length;
      }
    };
    const received = (size: number) =>
      desk.receive(checkouts, chartFrame.encode({ startDate: 19_791, endDate: 19_793, blob: gzipOf(size) }) as Buffer);
    expect([received(most), received(most + 1)]).toEqual([true, false]);
    expect(desk.atHand).toBe(1);
  });

  it("is told on the family's own word, which may differ from its keys", () => {
    expect(visits.channel).toBe("ps:stats:shop_visitors:daily");
    expect(visits.day(19_791)).toBe("stats:shop_visits:daily:19791");
  });
});

describe("the days that may still change", () => {
  it("are as many as the family holds, from wherever they are", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(NEXT, 12);
    await count(ctx);
    await count(ctx);
    const zeros = { failed: 0, failed_breakdown: {} };
    expect(await readPartial(ctx, checkouts)).toEqual({
      today: { started: 6, paid: 6, paid_breakdown: { eur: 2, usd: 4 }, ...zeros },
      yesterday: { started: 3, paid: 3, paid_breakdown: { eur: 1, usd: 2 }, ...zeros },
      checked_at: house.clock.now(),
    });
    expect(await readPartial(ctx, visits)).toEqual({
      today: { entered: 2, left: 0 },
      checked_at: house.clock.now(),
    });
  });

  it("count once while a rotation has committed them to SQL and not yet taken them from Redis", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(FIRST_DAY + 2, 3);
    const redis = house.server.connect(house.clock);
    const run = redis.run.bind(redis) as (...call: unknown[]) => Promise<never>;
    redis.run = (script, ...call) =>
      script.name === "counters.consume" ? Promise.reject(new Error("gone")) : run(script, ...call);
    const dying = house.instance({ redis });
    await expect(house.rotate(checkouts, dying)).rejects.toThrow("gone");
    expect(await house.redis.commands.hget(checkouts.day(FIRST_DAY), "started")).toBe("3");
    expect(await house.rows(checkouts)).toMatchObject([{ started: 3, paid_breakdown: { eur: 1, usd: 2 } }]);

    house.clock.jump(-86_400);
    expect(await readPartial(ctx, checkouts)).toMatchObject({
      yesterday: { started: 3, paid: 3, paid_breakdown: { eur: 1, usd: 2 } },
    });
    house.clock.jump(86_400);
    const chart = chartOf(await new ChartDesk(ctx).chart(checkouts, 30));
    expect(chart.started!.at(-1)).toBe(3);
  });

  it("are read again when they move from Redis to SQL between the two looks", async () => {
    const { ctx } = house.instance();
    await count(ctx);
    await house.at(FIRST_DAY + 2, 3);
    const redis = house.server.connect(house.clock);
    const get = redis.commands.get.bind(redis.commands) as (key: string) => Promise<string | null>;
    let looks = 0;
    // SQL was asked already and has no row yet; when Redis is asked, it has nothing any more.
    redis.commands.get = (async (key: string) => {
      looks += 1;
      if (looks === 1) await house.rotate(checkouts);
      return get(key);
    }) as typeof redis.commands.get;
    const { desk } = house.instance({ redis });
    expect(lastOf(await desk.chart(checkouts, 30), "started")).toBe(3);
    expect(looks).toBe(2);
  });
});

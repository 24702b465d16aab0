import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { migrationsOf } from "../../domain.ts";
import { isoDate, rotate, statsOf } from "../../mechanisms/dated-counters/index.ts";
import { routesOf } from "./routes.ts";
import { calendar, checkouts, count, FIRST_DAY, room, rooms, visits } from "./statistics.fixture.ts";

const NOON = calendar.startOf(FIRST_DAY) + 12 * 3600;
const enqueued: { name: string; kwargs: unknown; jobUid: string | undefined }[] = [];

let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  server = await openTestServer({ domains: rooms });
  expect(rooms.flatMap(migrationsOf).map(({ domain }) => domain)).toContain("stats:shop:checkouts");
  Object.assign(server.ctx.jobs, {
    enqueue: async (runner: { name: string }, kwargs: unknown, options: { jobUid?: string }) =>
      void enqueued.push({ name: runner.name, kwargs, jobUid: options.jobUid }),
  });
  stop = await room.start(server.ctx, { web: true, worker: false });
});
afterAll(async () => {
  await stop();
  await server.close();
});
beforeEach(async () => {
  server.ctx.clock.jump(NOON - server.ctx.clock.now());
  enqueued.length = 0;
});

const get = (path: string, headers: Record<string, string> = {}) =>
  server.call("GET", `/api/1/admin${path}`, { token: server.admin, headers });

it("lists every declared family with its events, breakdowns and addresses", async () => {
  const answer = await get("/stats");
  expect(answer.headers["cache-control"]).toBe("private, max-age=60");
  expect(answer.json().items).toEqual([
    expect.objectContaining({
      name: "shop_visits",
      title: "Visits",
      held: 1,
      computed: ["total"],
      breakdowns: {},
      charts: expect.objectContaining({
        plots: [{ title: "Visits", type: "line", series: ["entered", "left", "total"] }],
      }),
    }),
    {
      name: "shop:checkouts",
      title: "Checkouts",
      events: ["started", "paid", "failed"],
      breakdowns: {
        paid: { by: "{currency}", sparse: false },
        failed: { by: "{provider}:{code}", sparse: true },
      },
      computed: [],
      held: 2,
      table: "shop_checkout_stats",
      charts: {
        spans: [30, 90, 182, 365],
        default: 90,
        plots: [
          { title: "How checkouts end", type: "stacked", series: ["paid", "failed"] },
          { title: "Why they fail", type: "bars", breakdown: "failed" },
        ],
      },
      routes: {
        daily: [
          "/api/1/admin/stats/shop:checkouts/daily",
          "/api/1/admin/shop/daily_checkouts",
          "/api/1/admin/shop/checkout_stats",
        ],
        range: "/api/1/admin/stats/shop:checkouts/range",
        partial: ["/api/1/admin/stats/shop:checkouts/partial", "/api/1/admin/shop/partial_checkout_stats"],
        rotate: "/api/1/admin/stats/shop:checkouts/rotate",
      },
    },
  ]);
});

it("is empty, and not broken, in a house that counts nothing", async () => {
  const nothing = routesOf(() => [], {} as never, {} as never);
  const list = nothing.find(({ path }) => path.endsWith("/stats"))!;
  expect(await list.handle(server.ctx, {} as never)).toMatchObject({ status: 200, body: { items: [] } });
  expect(nothing).toHaveLength(7);
});

it("serves a chart compressed to those who take it, plain to others, and not at all to those who have it", async () => {
  const path = "/stats/shop:checkouts/daily?days=30";
  const packed = await get(path, { "accept-encoding": "br, gzip;q=0.8" });
  expect(packed.statusCode).toBe(200);
  expect(packed.headers).toMatchObject({
    "content-encoding": "gzip",
    "content-type": "application/json; charset=utf-8",
    "cache-control": "private, max-age=43200, stale-if-error=600",
    vary: expect.stringContaining("accept-encoding"),
  });
  const plain = await get(path, { "accept-encoding": "gzip;q=0, br" });
  expect(plain.headers["content-encoding"]).toBeUndefined();
  expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
  expect(plain.json().labels).toHaveLength(30);
  const etag = String(packed.headers.etag);
  const known = await get(path, { "if-none-match": `"other", ${etag}` });
  expect([known.statusCode, known.body, known.headers.etag]).toEqual([304, "", etag]);
  expect((await get(path, { "if-none-match": '"other"' })).statusCode).toBe(200);
});

it("says how long a chart lasts: to the next midnight, and a minute in the last second and while it is provisional", async () => {
  const age = async () => String((await get("/stats/shop_visits/daily")).headers["cache-control"]).split(", ")[1];
  expect(await age()).toBe("max-age=43200");
  server.ctx.clock.jump(12 * 3600 - 0.5);
  expect(await age()).toBe("max-age=60");
  server.ctx.clock.jump(300);
  expect(await age()).toBe("max-age=60");
});

it("shows the open days as they are now, under both addresses", async () => {
  await count(server.ctx);
  const answer = await get("/stats/shop:checkouts/partial");
  expect(answer.headers["cache-control"]).toBe("no-store");
  expect(answer.json()).toEqual({
    today: { started: 3, paid: 3, paid_breakdown: { eur: 1, usd: 2 }, failed: 0, failed_breakdown: {} },
    yesterday: { started: 0, paid: 0, paid_breakdown: {}, failed: 0, failed_breakdown: {} },
    checked_at: NOON,
  });
  expect((await get("/shop/partial_checkout_stats")).json()).toEqual(answer.json());
  const chart = (await get("/stats/shop:checkouts/daily?days=90")).body;
  for (const path of ["/shop/daily_checkouts", "/shop/checkout_stats"]) expect((await get(path)).body).toBe(chart);
  expect((await get("/shop/daily_checkouts?days=7")).statusCode).toBe(422);
});

it("refuses spans and families that there are not, and names those there are", async () => {
  const days = await get("/stats/shop_visits/daily?days=31");
  expect(days.statusCode).toBe(422);
  expect(JSON.stringify(days.json().detail)).toMatch(/30.*90.*182.*365/);
  for (const [method, path] of [
    ["GET", "/stats/nothing/daily"],
    ["GET", "/stats/nothing/partial"],
    ["POST", "/stats/nothing/rotate"],
  ] as const) {
    const answer = await server.call(method, `/api/1/admin${path}`, { token: server.admin });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toMatchObject({
      type: "unknown_family",
      detail: { allowed: ["shop_visits", "shop:checkouts"] },
    });
  }
  expect((await server.call("GET", "/api/1/admin/stats")).statusCode).toBe(401);
});

it("gives a chart as a table to whoever asks for it, under all of its addresses", async () => {
  await server.ctx.flush();
  const stats = statsOf(server.ctx).incr(checkouts, "started", { by: 3 });
  await stats
    .incr(checkouts, "paid", { by: 2, extra: '=sum("a"),1' })
    .incr(checkouts, "failed", { by: 4, extra: "bank:no" })
    .store();
  server.ctx.clock.jump(2 * 86_400 - 12 * 3600 + 60);
  const answer = await get("/stats/shop:checkouts/daily?days=30&format=csv");
  expect(answer.headers).toMatchObject({
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": 'attachment; filename="daily_shop_checkouts.csv"',
    "cache-control": "private, max-age=60, stale-if-error=600",
  });
  const lines = answer.body.split("\r\n");
  expect(lines).toHaveLength(32);
  expect(lines[0]).toBe(`date,started,paid,failed,"paid:=sum(""a""),1",failed:bank:no`);
  expect(lines[29]).toBe(`${isoDate(FIRST_DAY - 1)},0,0,0,0,0`);
  expect(lines[30]).toBe(`${isoDate(FIRST_DAY)},3,2,4,2,4`);
  const plain = await get("/stats/shop:checkouts/daily?days=30");
  expect(plain.headers.etag).not.toBe(answer.headers.etag);
  expect((await get("/shop/daily_checkouts?days=30&format=csv")).body).toBe(answer.body);
  expect((await get("/stats/shop:checkouts/daily?days=30&format=xml")).statusCode).toBe(422);
  expect((await get("/stats/shop:checkouts/daily?dayz=30")).statusCode).toBe(422);
});

it("adds up any days by week and month, stored ones and open ones alike", async () => {
  await server.ctx.flush();
  // 2024-10-04 is a Friday: of these eleven days three are in its week, seven in the next, one after it.
  for (let day = 0; day < 11; day++) {
    await count(server.ctx);
    server.ctx.clock.jump(86_400);
  }
  server.ctx.clock.jump(-86_400);
  await rotate(server.ctx, checkouts, { calendar });
  const range = async (query: string) => (await get(`/stats/shop:checkouts/range?${query}`)).json();
  const ends = `from=${isoDate(FIRST_DAY)}&to=2999-12-31`;
  const days = await range(ends);
  expect(days.labels).toEqual(Array.from({ length: 11 }, (_, at) => isoDate(FIRST_DAY + at)));
  expect(days.started).toEqual(Array.from({ length: 11 }, () => 3));
  expect(await range(`${ends}&group=week`)).toMatchObject({
    labels: ["2024-09-30", "2024-10-07", "2024-10-14"],
    started: [9, 21, 3],
    paid_breakdown: { eur: [3, 7, 1], usd: [6, 14, 2] },
  });
  expect(await range(`${ends}&group=month`)).toMatchObject({ labels: ["2024-10"], paid: [33] });
  const visited = (await get(`/stats/shop_visits/range?${ends}&group=month`)).json();
  // What is looked up at the end of a day does not add up.
  expect(visited.total).toEqual([0]);
  const table = await get(`/stats/shop:checkouts/range?${ends}&group=month&format=csv`);
  expect(table.body).toBe("date,started,paid,failed,paid:eur,paid:usd\r\n2024-10,33,33,0,11,22\r\n");
});

it("refuses days that there are not, and more of them than anybody looks at", async () => {
  const refused = async (query: string) => {
    const answer = await get(`/stats/shop_visits/range?${query}`);
    return [answer.statusCode, answer.json().type];
  };
  expect(await refused("from=2024-02-30&to=2024-03-01")).toEqual([422, "bad_date"]);
  expect(await refused("from=yesterday&to=2024-03-01")).toEqual([422, "bad_date"]);
  expect(await refused("from=2024-03-02&to=2024-03-01")).toEqual([422, "bad_range"]);
  expect(await refused("from=1990-01-01&to=2024-03-01")).toEqual([422, "bad_range"]);
  expect((await refused("from=2024-03-01"))[0]).toBe(422);
  expect((await refused("from=2024-03-01&to=2024-03-01&group=year"))[0]).toBe(422);
});

it("queues a repair and answers its uid", async () => {
  const answer = await server.call("POST", "/api/1/admin/stats/repair", { token: server.admin });
  expect(answer.statusCode).toBe(202);
  expect(enqueued).toEqual([{ name: "runners.stats.repair_redis", kwargs: {}, jobUid: answer.json().job_uid }]);
});

it("queues a rotation and answers its uid", async () => {
  const answer = await server.call("POST", "/api/1/admin/stats/shop:checkouts/rotate", { token: server.admin });
  expect(answer.statusCode).toBe(202);
  expect(enqueued).toEqual([
    { name: "runners.stats.rotate", kwargs: { family: "shop:checkouts" }, jobUid: answer.json().job_uid },
  ]);
});

it("tells how far each family is", async () => {
  await server.ctx.flush();
  await statsOf(server.ctx).incr(visits, "entered").store();
  const health = async () => (await get("/stats/health")).json();
  expect(await health()).toEqual({
    families: [
      {
        name: "shop_visits",
        earliest: isoDate(FIRST_DAY),
        days_late: 0,
        last_rotation: null,
        last_mismatch: null,
      },
      expect.objectContaining({ name: "shop:checkouts", earliest: null, days_late: 0 }),
    ],
    deltas_waiting: 0,
  });
  server.ctx.clock.jump(3 * 86_400);
  expect((await health()).families[0]).toMatchObject({ days_late: 2 });
});

it("shows scrapers what was counted today", async () => {
  await server.ctx.flush();
  await count(server.ctx);
  await server.ctx.clock.advance(6);
  const text = await server.ctx.metrics.text();
  expect(text).toContain('carillon_stats_today{family="shop:checkouts",event="paid"} 3');
  expect(text).toContain('carillon_stats_today{family="shop_visits",event="left"} 0');
});

it("puts the keys and the channel of a family into the catalogue of its room", () => {
  const { catalogue } = server.ctx;
  expect(catalogue.match(checkouts.extra(20_000, "paid"))?.entry).toMatchObject({ domain: "shop", family: "shop" });
  expect(catalogue.match(checkouts.earliest())?.entry.pattern).toBe("stats:shop:checkouts:daily:earliest");
  expect(catalogue.matchChannel("ps:stats:shop_visitors:daily")?.entry.domain).toBe("shop");
  expect(catalogue.match("stats:shop_visits:daily:20000:extra:entered")).toBeUndefined();
});

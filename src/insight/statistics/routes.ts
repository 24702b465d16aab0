import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route, RouteReply } from "../../kernel/route.ts";
import { calendarOf, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { type ChartCopy, unpack } from "./chart-copies.ts";
import { deskOf } from "./chart-desk.ts";
import { type Chart, DEFAULT_SPAN, SPANS } from "./charts.ts";
import { csvOf } from "./csv.ts";
import { familiesOf, familyNamed, type Rooms } from "./families.ts";
import { readHealth } from "./health.ts";
import type { RepairRunner, RotateRunner } from "./jobs.ts";
import { GROUPS, readRange } from "./ranges.ts";
import { readPartial } from "./service.ts";

const ADMIN = "/api/1/admin";
const PROVISIONAL_SECONDS = 60;

const Named = z.object({ family: z.string().max(64) });
const Format = z
  .enum(["json", "csv"])
  .default("json")
  .meta({ description: "`csv`: a row a day, a column for each event and each key of its breakdown" });
const IsoDate = z.string().max(10).meta({ description: "YYYY-MM-DD in the statistics timezone" });
const Range = z.strictObject({
  from: IsoDate,
  to: IsoDate,
  group: z.enum(GROUPS).default("day").meta({ description: "What becomes one number" }),
  format: Format,
});
const Span = z.strictObject({
  days: z
    .enum(SPANS.map(String) as [string, ...string[]])
    .default(`${DEFAULT_SPAN}`)
    .meta({ description: "How many days the chart spans" }),
  format: Format,
});
const ChartBody = z.looseObject({ labels: z.array(z.string()) });
const PartialBody = z.looseObject({ today: z.looseObject({}), checked_at: z.number() });
const Rotation = z.looseObject({ retrieved_for: z.string(), outcome: z.string(), at: z.number() }).nullable();

const CHART_DOC =
  "`labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it.";

export function routesOf(rooms: Rooms, rotate: RotateRunner, repair: RepairRunner): readonly Route<Context>[] {
  const aliases = familiesOf(rooms).flatMap((family) => [
    ...family.alias.daily.map((path) => dailyAlias(family, path)),
    ...family.alias.partial.map((path) => partialAlias(family, path)),
  ]);
  return [
    route({
      method: "GET",
      path: `${ADMIN}/stats`,
      access: "admin",
      summary: "Every family of statistics, and where its numbers are",
      responses: { 200: z.object({ items: z.array(z.looseObject({ name: z.string() })) }) },
      handle: () => ({
        status: 200,
        headers: { "cache-control": "private, max-age=60" },
        body: { items: familiesOf(rooms).map(described) },
      }),
    }),
    route({
      method: "GET",
      path: `${ADMIN}/stats/health`,
      access: "admin",
      summary: "How far each family has been moved to SQL, and whether its numbers agreed",
      responses: {
        200: z.object({
          families: z.array(
            z.object({
              name: z.string(),
              earliest: z.string().nullable(),
              days_late: z.int(),
              last_rotation: Rotation,
              last_mismatch: Rotation,
            }),
          ),
          deltas_waiting: z.int(),
        }),
      },
      handle: async (ctx) => ({
        status: 200,
        headers: { "cache-control": "no-store" },
        body: await readHealth(ctx, familiesOf(rooms)),
      }),
    }),
    route({
      method: "GET",
      path: `${ADMIN}/stats/{family}/daily`,
      access: "admin",
      summary: "A chart of the latest finished days",
      description: CHART_DOC,
      schemas: { params: Named, query: Span },
      responses: { 200: ChartBody },
      handle: (ctx, { params, query, headers }) => chartReply(ctx, familyNamed(rooms, params.family), query, headers),
    }),
    route({
      method: "GET",
      path: `${ADMIN}/stats/{family}/range`,
      access: "admin",
      summary: "Any days, one by one or together by week or month",
      description:
        "Both ends are included, and open days are as they are now; dates in the future are taken as today. Weeks are labelled by their Monday.",
      schemas: { params: Named, query: Range },
      responses: { 200: ChartBody },
      async handle(ctx, { params, query: { format, ...range } }) {
        const family = familyNamed(rooms, params.family);
        const chart = await readRange(ctx, family, range);
        const headers = { "cache-control": "no-store" };
        if (format === "json") return { status: 200, headers, body: chart };
        return { status: 200, headers: { ...headers, ...csvHeaders(family) }, body: csvOf(chart) };
      },
    }),
    route({
      method: "GET",
      path: `${ADMIN}/stats/{family}/partial`,
      access: "admin",
      summary: "The days that may still change, as they are now",
      schemas: { params: Named },
      responses: { 200: PartialBody },
      handle: (ctx, { params }) => partialReply(ctx, familyNamed(rooms, params.family)),
    }),
    route({
      method: "POST",
      path: `${ADMIN}/stats/{family}/rotate`,
      access: "admin",
      summary: "Move the finished days of a family to SQL now",
      schemas: { params: Named },
      responses: { 202: z.object({ job_uid: z.string() }) },
      async handle(ctx, { params }) {
        const { name } = familyNamed(rooms, params.family);
        const jobUid = newUid("jp");
        await ctx.jobs.enqueue(rotate, { family: name }, { jobUid });
        return { status: 202, body: { job_uid: jobUid } };
      },
    }),
    route({
      method: "POST",
      path: `${ADMIN}/stats/repair`,
      access: "admin",
      summary: "After a Redis that lost its data: let rotation go on where SQL ends",
      responses: { 202: z.object({ job_uid: z.string() }) },
      async handle(ctx) {
        const jobUid = newUid("jp");
        await ctx.jobs.enqueue(repair, {}, { jobUid });
        return { status: 202, body: { job_uid: jobUid } };
      },
    }),
    ...aliases,
  ];
}

function dailyAlias(family: StatsFamily, path: string): Route<Context> {
  return route({
    method: "GET",
    path: `${ADMIN}${path}`,
    access: "admin",
    summary: `${family.title}: a chart of the latest finished days`,
    description: CHART_DOC,
    schemas: { query: Span },
    responses: { 200: ChartBody },
    handle: (ctx, { query, headers }) => chartReply(ctx, family, query, headers),
  });
}

function partialAlias(family: StatsFamily, path: string): Route<Context> {
  return route({
    method: "GET",
    path: `${ADMIN}${path}`,
    access: "admin",
    summary: `${family.title}: the days that may still change, as they are now`,
    responses: { 200: PartialBody },
    handle: (ctx) => partialReply(ctx, family),
  });
}

function described(family: StatsFamily) {
  const { name, title, events, held, table, computed, alias, plots } = family;
  const broken = Object.entries(events).filter(([, { by }]) => by !== undefined);
  return {
    name,
    title,
    events: Object.keys(events),
    breakdowns: Object.fromEntries(broken.map(([event, { by, sparse = false }]) => [event, { by, sparse }])),
    computed,
    held,
    table,
    charts: { spans: SPANS, default: DEFAULT_SPAN, plots },
    routes: {
      daily: [`${ADMIN}/stats/${name}/daily`, ...alias.daily.map((path) => ADMIN + path)],
      range: `${ADMIN}/stats/${name}/range`,
      partial: [`${ADMIN}/stats/${name}/partial`, ...alias.partial.map((path) => ADMIN + path)],
      rotate: `${ADMIN}/stats/${name}/rotate`,
    },
  };
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

async function chartReply(
  ctx: Context,
  family: StatsFamily,
  { days, format }: z.output<typeof Span>,
  headers: Headers,
): Promise<RouteReply> {
  const copy = await deskOf(ctx).chart(family, Number(days));
  const common = {
    etag: format === "csv" ? copy.etag.replace(/"$/, '-csv"') : copy.etag,
    vary: "accept-encoding",
    "cache-control": `private, max-age=${maxAge(ctx, copy)}, stale-if-error=600`,
  };
  if (knows(headers["if-none-match"], common.etag)) return { status: 304, headers: common };
  if (format === "csv") {
    const body = csvOf(JSON.parse(unpack(copy.blob)!.toString("utf8")) as Chart);
    return { status: 200, headers: { ...common, ...csvHeaders(family) }, body };
  }
  const type = { ...common, "content-type": "application/json; charset=utf-8" };
  return takesGzip(headers["accept-encoding"])
    ? { status: 200, headers: { ...type, "content-encoding": "gzip" }, body: copy.blob }
    : { status: 200, headers: type, body: unpack(copy.blob) };
}

function csvHeaders({ cachePrefix }: StatsFamily) {
  return {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${cachePrefix}.csv"`,
  };
}

async function partialReply(ctx: Context, family: StatsFamily): Promise<RouteReply> {
  return { status: 200, headers: { "cache-control": "no-store" }, body: await readPartial(ctx, family) };
}

/** Until midnight, when there is another finished day; a provisional chart may be another one in a minute. */
function maxAge(ctx: Context, { provisional }: ChartCopy): number {
  if (provisional) return PROVISIONAL_SECONDS;
  const calendar = calendarOf(ctx);
  const now = ctx.clock.now();
  return Math.floor(calendar.startOf(calendar.unixDate(now) + 1) - now) || PROVISIONAL_SECONDS;
}

function knows(given: Headers[string], etag: string): boolean {
  const known = String(given ?? "").split(/\s*,\s*/);
  return known.some((each) => each === "*" || each.replace(/^W\//, "") === etag.replace(/^W\//, ""));
}

function takesGzip(given: Headers[string]): boolean {
  return String(given ?? "")
    .split(",")
    .some((each) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/.test(each));
}

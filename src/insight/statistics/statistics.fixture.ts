import { sql } from "kysely";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { type JobProcess, jobProcess } from "../../../test/harness/jobs.ts";
import { type Domain, domain, migrationsOf } from "../../domain.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import type { JobContext } from "../../jobs/context.ts";
import type { Setting } from "../../kernel/config.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { calendarIn, dailyStats, type StatsFamily, statsOf } from "../../mechanisms/dated-counters/index.ts";
import { ChartDesk } from "./chart-desk.ts";
import { statisticsDomain } from "./index.ts";
import type { RotateRunner } from "./jobs.ts";

export const ZONE = "America/Los_Angeles";
export const calendar = calendarIn(ZONE);

/** Counted when it happens, told under an irregular word, moved at a quarter past. */
export const visits = dailyStats({
  family: "shop_visits",
  keysFamily: "shop",
  title: "Visits",
  table: "shop_visit_stats",
  events: { entered: {}, left: {} },
  held: 1,
  channel: "shop_visitors",
  rotation: "quarter_past",
  computed: {
    columns: ["total"],
    async read(tx, date) {
      const { rows } = await sql<{ total: number }>`select ${date}::integer as total`.execute(tx);
      return { total: rows[0]!.total };
    },
  },
});

/** Counted on the day of the order, with breakdowns, under further addresses. */
export const checkouts = dailyStats({
  family: "shop:checkouts",
  keysFamily: "shop",
  title: "Checkouts",
  table: "shop_checkout_stats",
  events: { started: {}, paid: { by: "{currency}" }, failed: { by: "{provider}:{code}", sparse: true } },
  held: 2,
  plots: [
    { title: "How checkouts end", type: "stacked", series: ["paid", "failed"] },
    { title: "Why they fail", type: "bars", breakdown: "failed" },
  ],
  alias: { daily: ["/shop/daily_checkouts", "/shop/checkout_stats"], partial: "/shop/partial_checkout_stats" },
});

const shop = domain({ name: "shop", stats: [visits, checkouts] });
export const room = statisticsDomain(() => rooms);
export const rooms: readonly Domain[] = [operations, shop, room];

export interface Instance extends JobProcess {
  readonly desk: ChartDesk;
}

export type InstanceOptions = Partial<KernelContext> & {
  readonly settings?: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];
};

/** A house with a shop that counts, in which instances come and go. */
export interface StatisticsHouse extends TestContext {
  instance(options?: InstanceOptions): Instance;
  /** The clock goes to that wall time of that day. */
  at(date: number, hours: number, minutes?: number): Promise<void>;
  /** Forgets all counts, and it is noon of the first day again. */
  reset(): Promise<void>;
  /** Runs the rotation of a family as a worker would. */
  rotate(family: StatsFamily, instance?: JobProcess): Promise<void>;
  rows(family: StatsFamily): Promise<Record<string, unknown>[]>;
}

export const FIRST_DAY = 20_000;

export async function openStatisticsHouse(): Promise<StatisticsHouse> {
  const noon = calendar.startOf(FIRST_DAY) + 12 * 3600;
  const house = await openTestContext({ sql: true, start: noon });
  await migrate(house.sql, rooms.flatMap(migrationsOf));
  const { runners } = room;
  const rotateDays = runners[0] as RotateRunner;
  const instance = ({ settings = [], ...overrides }: InstanceOptions = {}): Instance => {
    const process = jobProcess(house, { runners, recurring: room.recurring, overrides, config: settings });
    return Object.assign(process, { desk: new ChartDesk(process.ctx) });
  };
  const own = instance();
  return Object.defineProperties(
    {
      instance,
      at: (date: number, hours: number, minutes = 0) =>
        house.clock.advance(calendar.startOf(date) + hours * 3600 + minutes * 60 - house.clock.now()),
      async reset() {
        await house.flush();
        await house.sql.script(
          "truncate stat_rotations, stat_deltas, mirrored_settings, shop_visit_stats, shop_checkout_stats restart identity",
        );
        house.clock.jump(noon - house.clock.now());
      },
      async rotate(family: StatsFamily, { ctx }: JobProcess = own) {
        const run = Object.create(ctx, {
          job: { value: { name: "runners.stats.rotate" } },
          signal: { value: new AbortController().signal },
          progress: { value: async () => {} },
        }) as JobContext;
        await rotateDays.run!(run, { family: family.name });
      },
      async rows(family: StatsFamily) {
        return house.sql
          .tables<Record<string, Record<string, unknown>>>()
          .selectFrom(family.table)
          .selectAll()
          .orderBy("retrieved_for")
          .execute();
      },
    },
    Object.getOwnPropertyDescriptors(house),
  ) as unknown as StatisticsHouse;
}

/** What a busy moment counts: one visit, and a checkout in two currencies. */
export async function count(ctx: Parameters<typeof statsOf>[0], date?: number): Promise<void> {
  const at = date === undefined ? undefined : calendar.startOf(date) + 3600;
  await statsOf(ctx)
    .incr(visits, "entered", { at })
    .incr(checkouts, "started", { at, by: 3 })
    .incr(checkouts, "paid", { at, extra: "usd", by: 2 })
    .incr(checkouts, "paid", { at, extra: "eur" })
    .store();
}

/** A family that leaves its stored days in Redis for a week. */
export async function keptFamily(
  house: StatisticsHouse,
  family: string,
): Promise<StatsFamily<{ readonly received: object }>> {
  const calls = dailyStats({
    ...{ family, keysFamily: "shop", title: "Calls", table: `${family}_stats`, held: 1 },
    keep: 604_800,
    events: { received: {} },
  });
  await migrate(house.sql, [{ domain: `stats:${family}`, migrations: calls.migrations }]);
  return calls;
}

import { z } from "zod";
import { type RecurringJob, recurring as recur, type StatisticsSchedule } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import {
  calendarOf,
  forgetRotations,
  isoDate,
  type RotationTime,
  rotate,
  sweepDeltas,
} from "../../mechanisms/dated-counters/index.ts";
import { lockKeys } from "../../mechanisms/lock/index.ts";
import { deskOf } from "./chart-desk.ts";
import { DEFAULT_SPAN } from "./charts.ts";
import { familiesOf, type Rooms } from "./families.ts";
import { latenessOf } from "./health.ts";
import { repairPointers } from "./repair.ts";

const NoKwargs = z.strictObject({});
const Family = z.strictObject({ family: z.string().max(64) });
export type RotateRunner = Runner<typeof Family>;
export type RepairRunner = Runner<typeof NoKwargs>;

/** A first run soon after the days are closed, and then every hour, in case that one failed. */
const SCHEDULES: Readonly<Record<RotationTime, StatisticsSchedule>> = {
  nightly: { hours: Array.from({ length: 22 }, (_, index) => index + 2), minutes: [0], seconds: [0] },
  quarter_past: { minutes: [15], seconds: [0] },
};
const ROTATE_BUDGET = 300;
const SWEPT_AT_ONCE = 500;

export const rotationLock = (family: string) => lockKeys.runnerLock({ runner: `stats.rotate:${family}` });

/** The jobs of the house's statistics; the families are asked for at each run, when all rooms are known. */
export function jobsOf(rooms: Rooms) {
  const rotateDays: RotateRunner = defineRunner({
    name: "runners.stats.rotate",
    category: 2,
    kwargs: Family,
    doc: "Moves the finished days of one family of statistics from Redis to SQL.",
    timeout: 2 * ROTATE_BUDGET,
    async run(ctx, { family }) {
      const stats = familiesOf(rooms).find(({ name }) => name === family);
      if (!stats) return ctx.log.warn({ family }, "these statistics are not declared here, and are not rotated");
      const { stop, dates } = await ctx.locks.withLock(rotationLock(family), { kind: "owner", wait: "fail" }, () =>
        rotate(ctx, stats, { calendar: calendarOf(ctx), signal: ctx.signal, budget: ROTATE_BUDGET }),
      );
      ctx.log.info({ family, stop_reason: stop, dates: dates.map(isoDate) }, "rotation ended");
      await ctx.progress(`${dates.length} days were moved; it ended with ${stop}`);
    },
  });

  const sweep = defineRunner({
    name: "runners.stats.sweep_deltas",
    category: 2,
    kwargs: NoKwargs,
    doc: "Applies counts of committed transactions whose process died before it could.",
    async run(ctx) {
      while (!ctx.budget.exhausted() && !ctx.shuttingDown()) if ((await sweepDeltas(ctx)) < SWEPT_AT_ONCE) return;
    },
  });

  const forget = defineRunner({
    name: "runners.stats.forget_rotations",
    category: 2,
    kwargs: NoKwargs,
    doc: "Forgets finished rotations after 30 days, and tells of families that are late.",
    async run(ctx) {
      await forgetRotations(ctx);
      for (const { family, daysLate, earliest } of await latenessOf(ctx, familiesOf(rooms)))
        if (daysLate > 0)
          ctx.alerts.warning(
            "stats:late",
            `${family} of ${isoDate(earliest!)} should have been moved to SQL ${daysLate} days ago`,
            { urgent: daysLate > 1 },
          );
    },
  });

  const repairRedis: RepairRunner = defineRunner({
    name: "runners.stats.repair_redis",
    category: 2,
    kwargs: NoKwargs,
    doc: "After Redis lost its data: lets the rotation of each family go on after the last day that SQL has.",
    async run(ctx) {
      const repaired = await repairPointers(ctx, familiesOf(rooms));
      for (const { family, earliest } of repaired)
        ctx.log.warn({ family, earliest: isoDate(earliest) }, "statistics go on after the last day in SQL");
      await ctx.progress(`${repaired.length} families go on after their last day in SQL`);
    },
  });

  const warm = defineRunner({
    name: "runners.stats.warm_charts",
    category: 2,
    kwargs: NoKwargs,
    doc: "Builds the charts of finished days once the night's rotations are done and tells them to all instances, so that nobody waits for one.",
    async run(ctx) {
      const told = familiesOf(rooms).filter(({ channel }) => channel !== undefined);
      for (const family of told) {
        if (ctx.shuttingDown()) return;
        await deskOf(ctx).chart(family, DEFAULT_SPAN);
      }
    },
  });

  return {
    rotateDays,
    repairRedis,
    runners: [rotateDays, sweep, forget, repairRedis, warm],
    recurring: (): readonly RecurringJob[] => [
      recur(sweep, {}, { seconds: [20] }),
      recur(warm, {}, { hours: [2], minutes: [20], seconds: [0] }),
      recur(forget, {}, { hours: [3], minutes: [10], seconds: [0] }),
      ...familiesOf(rooms).map(({ name, rotation }) => recur(rotateDays, { family: name }, SCHEDULES[rotation])),
    ],
  };
}

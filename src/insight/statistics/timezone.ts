import type { Context } from "../../jobs/context.ts";
import { calendarIn, rotate, type StatsFamily, statisticsSettings } from "../../mechanisms/dated-counters/index.ts";
import { readSetting, writeSetting } from "../../mechanisms/setting/index.ts";
import { errors } from "./errors.ts";
import { rotationLock } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";

type ZoneContext = Pick<Context, "redis" | "sql" | "clock" | "config" | "alerts" | "locks">;

/**
 * Days are numbered in one timezone. Under another one the same number means other hours, and counts of two zones would
 * end in one row without anybody noticing; so the zone in use is remembered, and changing it has to be meant.
 */
export async function settleTimezone(ctx: ZoneContext, families: readonly StatsFamily[]): Promise<void> {
  const wanted = ctx.config.get(statisticsSettings.timezone);
  const counted = await readSetting(ctx, keys.timezone);
  if (counted === wanted) return;
  if (counted !== undefined && (await anythingCounted(ctx, families))) {
    if (!ctx.config.get(settings.rebase))
      throw errors.timezone_changed({
        message: `Statistics were counted in ${counted}, and the timezone is now set to ${wanted}.`,
      });
    for (const family of families) await closeAllDays(ctx, family, counted);
  }
  await writeSetting(ctx, keys.timezone, wanted);
}

/** A pointer stays for ever once something was counted. */
async function anythingCounted(ctx: ZoneContext, families: readonly StatsFamily[]): Promise<boolean> {
  const names = families.map((family) => ctx.redis.topology.key(family.earliest()));
  const pointers = await Promise.all(names.map((name) => ctx.redis.commands.exists(name)));
  return pointers.includes(1);
}

/** Moves even the days that are still open. What is counted on them later is added to their rows. */
async function closeAllDays(ctx: ZoneContext, family: StatsFamily, timezone: string): Promise<void> {
  const calendar = calendarIn(timezone);
  const { stop } = await ctx.locks.withLock(rotationLock(family.name), { kind: "owner", wait: "spin" }, () =>
    rotate(ctx, family, {
      calendar,
      // Clocks may differ, so something may have been counted on tomorrow.
      through: calendar.unixDate(ctx.clock.now()) + 1,
      budget: Number.POSITIVE_INFINITY,
    }),
  );
  if (stop !== "list_exhausted" && stop !== "uninitialized")
    throw errors.timezone_changed({
      message: `The open days of ${family.name} cannot be closed in ${timezone}: ${stop}.`,
    });
}

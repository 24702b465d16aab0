import { domain } from "../../domain.ts";
import { settingMigrations } from "../../mechanisms/setting/index.ts";
import { openDesk } from "./chart-desk.ts";
import { checkColumns } from "./columns.ts";
import { errors } from "./errors.ts";
import { familiesOf, type Rooms } from "./families.ts";
import { invariantsOf } from "./invariants.ts";
import { jobsOf } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routesOf } from "./routes.ts";
import { settings } from "./settings.ts";
import { settleTimezone } from "./timezone.ts";
import { watchToday } from "./today-gauge.ts";

/**
 * What the house counts by day: every family that a room declares under `stats` is rotated, charted and checked here.
 * `rooms` gives the whole floor plan; schedule and addresses follow from it, and are made when they are asked for.
 */
export function statisticsDomain(rooms: Rooms) {
  const { rotateDays, repairRedis, runners, recurring } = jobsOf(rooms);
  return domain({
    name: "statistics",
    keys: [keys],
    settings,
    errors,
    migrations: settingMigrations,
    runners,
    get recurring() {
      return recurring();
    },
    get routes() {
      return routesOf(rooms, rotateDays, repairRedis);
    },
    invariants: invariantsOf(rooms),
    async start(ctx, roles) {
      const families = familiesOf(rooms);
      await checkColumns(ctx, families);
      await settleTimezone(ctx, families);
      if (!roles.web) return async () => {};
      const desk = await openDesk(ctx, families);
      const stop = watchToday(ctx, families);
      return async () => {
        stop();
        await desk.close();
      };
    },
  });
}

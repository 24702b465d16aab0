import { sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { switchNotifications } from "../contacts/service.ts";
import { settings } from "./settings.ts";

const PAGE = 100;

/**
 * True where somebody said that the installation is for trying things out. That it is the default says nothing: whoever
 * sets real providers up and leaves it at that must not lose the numbers of real people overnight.
 */
function isDevelopment({ config }: Pick<JobContext, "config">): boolean {
  return config.effective.some(
    ({ setting, value, source }) => setting.name === "env" && value === "development" && source !== "default",
  );
}

/** Switches every number off but the test numbers, so that a copy of real data never texts real people. */
export async function disablePhonesInDev(ctx: JobContext): Promise<number> {
  if (!isDevelopment(ctx)) return 0;
  const spared = [...ctx.config.get(settings.testNumbers)];
  let switched = 0;
  while (!ctx.shuttingDown()) {
    const { rows } = await sql<{ uid: string; sub: string }>`
      select method.uid, users.sub from user_phone_numbers as method join users on users.id = method.user_id
      where method.verified and method.receives_notifications and method.phone_number <> all(${spared}::text[])
      order by method.id limit ${PAGE}`.execute(ctx.sql.tables());
    if (rows.length === 0) break;
    await switchNotifications(
      ctx,
      rows.map(({ uid, sub }) => ({ uid, userSub: sub, enabled: false })),
      "dev_auto_disable",
    );
    switched += rows.length;
  }
  return switched;
}

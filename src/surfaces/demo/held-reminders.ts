import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";

interface Held {
  readonly uid: string;
  readonly date: number;
}

const fileIn = (folder: string) => join(folder, "reminded.json");

/**
 * Whoever was reminded today would not be reminded on any day before it. What is known of days after this one is put aside
 * in a file for the time of the past, so that it is true again afterwards, also when the process dies meanwhile.
 */
export async function holdBackReminders(ctx: Context, folder: string, after: number): Promise<void> {
  const db = ctx.sql.tables();
  const { rows } = await sql<Held>`
    select uid, last_unix_date as date from user_daily_reminders where last_unix_date > ${after}`.execute(db);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(fileIn(folder), JSON.stringify([...heldIn(folder), ...rows]), { mode: 0o600 });
  await sql`update user_daily_reminders set last_unix_date = null where last_unix_date > ${after}`.execute(db);
}

/** Makes what was put aside true again. */
export async function restoreReminders(ctx: Context, folder: string): Promise<void> {
  const rows = heldIn(folder);
  await sql`
    update user_daily_reminders as held set last_unix_date = greatest(held.last_unix_date, wish.date)
    from unnest(${rows.map(({ uid }) => uid)}::text[], ${rows.map(({ date }) => date)}::integer[])
      as wish (uid, date) where held.uid = wish.uid`.execute(ctx.sql.tables());
  rmSync(fileIn(folder), { force: true });
}

function heldIn(folder: string): readonly Held[] {
  return existsSync(fileIn(folder)) ? (JSON.parse(readFileSync(fileIn(folder), "utf8")) as readonly Held[]) : [];
}

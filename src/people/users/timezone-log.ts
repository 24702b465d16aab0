import { type Kysely, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";

/** How it is known where somebody is. */
export interface TimezoneSource {
  /** What brought it: `profile`, `admin`, `update_notification_time`. */
  readonly source: string;
  /** What told it, such as `browser` or `app`. */
  readonly style?: string | undefined;
  /** It was guessed, and not asked for. */
  readonly guessed?: boolean;
}

/** Keeps where somebody is now, and writes down that it changed; nothing if they were there already. */
export async function changeTimezone(
  db: Kysely<never>,
  ctx: Pick<Context, "clock">,
  userId: number,
  timezone: string | null,
  { source, style, guessed = false }: TimezoneSource,
): Promise<void> {
  await sql`
    with moved as (
      update users set timezone = ${timezone} where id = ${userId} and timezone is distinct from ${timezone} returning id)
    insert into user_timezone_log (uid, user_id, timezone, source, style, guessed, created_at)
    select ${newUid("utzl")}, moved.id, ${timezone}::text, ${source}::text, ${style ?? null}::text, ${guessed}::boolean,
      to_timestamp(${ctx.clock.now()}::float8) from moved`.execute(db);
}

/** Every change of where somebody is, the newest first. */
export async function timezoneLog(
  ctx: Pick<Context, "sql">,
  sub: string,
  { before, limit }: { readonly before?: number | undefined; readonly limit: number },
) {
  const older = before === undefined ? sql`true` : sql`log.id < ${before}`;
  const { rows } = await sql<{
    id: number;
    uid: string;
    timezone: string | null;
    source: string;
    style: string | null;
    guessed: boolean;
    created_at: number;
  }>`
    select log.id, log.uid, log.timezone, log.source, log.style, log.guessed,
      extract(epoch from log.created_at)::float8 as created_at
    from user_timezone_log as log join users on users.id = log.user_id
    where users.sub = ${sub} and ${older} order by log.id desc limit ${limit}`.execute(ctx.sql.tables());
  const next = rows.length === limit ? rows.at(-1)!.id : null;
  return { items: rows.map(({ id: _, ...row }) => row), next };
}

import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { LinkTables } from "./tables.ts";
import { readWaiting } from "./waiting.ts";

export interface LinkOrigin {
  readonly touch_uid: string;
  readonly page_identifier: string;
}

/** Which touch each link belongs to and where it leads, wherever the link is now: one call to Redis, at most one query. */
export async function originsOfLinks(
  ctx: Pick<Context, "redis" | "sql" | "alerts">,
  codes: readonly string[],
): Promise<ReadonlyMap<string, LinkOrigin>> {
  const found = new Map<string, LinkOrigin>();
  for (const { code, link } of await readWaiting(ctx, codes))
    if (link) found.set(code, { touch_uid: link.touch_uid, page_identifier: link.page_identifier });
  // A link is in SQL before it leaves the buffer, so looking there second misses none.
  const others = codes.filter((code) => !found.has(code));
  if (others.length === 0) return found;
  const { rows } = await sql<LinkOrigin & { code: string }>`
    select link.code, link.page_identifier, touch.send_uid as touch_uid
    from user_touch_links as link join user_touches as touch on touch.id = link.user_touch_id
    where link.code = any(${others}::text[])`.execute(ctx.sql.tables<LinkTables>());
  for (const { code, ...origin } of rows) found.set(code, origin);
  return found;
}

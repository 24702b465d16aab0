import { type Kysely, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { BufferedClick, Link, LinkTarget } from "./entries.ts";
import type { LinkTables, TouchChannel } from "./tables.ts";

/** Every statement of this file takes any number of rows; a repeat finds them there and changes nothing. */
export type LinkSql = Kysely<LinkTables>;

const column = <T, V>(rows: readonly T[], of: (row: T) => V) => rows.map(of);

/** One arrival of a touch at one address. */
export interface TouchRow {
  readonly row_uid: string;
  /** The touch. */
  readonly uid: string;
  readonly user_sub: string;
  readonly channel: TouchChannel;
  readonly touch_point_id: number | null;
  readonly destination: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly created_at: number;
}

/** Stores arrivals; answers the rows that are there now and were not before. Those of deleted users are left out. */
export async function recordTouches(db: LinkSql, rows: readonly TouchRow[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set();
  const stored = await sql<{ uid: string }>`
    insert into user_touches (uid, send_uid, user_id, channel, touch_point_id, destination, message, created_at)
    select asked.row_uid, asked.uid, users.id, asked.channel, asked.touch_point_id, asked.destination, asked.message,
      to_timestamp(asked.created_at)
    from unnest(
      ${column(rows, (row) => row.row_uid)}::text[], ${column(rows, (row) => row.uid)}::text[],
      ${column(rows, (row) => row.user_sub)}::text[], ${column(rows, (row) => row.channel)}::text[],
      ${column(rows, (row) => row.touch_point_id)}::bigint[], ${column(rows, (row) => row.destination)}::text[],
      ${column(rows, (row) => JSON.stringify(row.message))}::jsonb[], ${column(rows, (row) => row.created_at)}::float8[]
    ) as asked (row_uid, uid, user_sub, channel, touch_point_id, destination, message, created_at)
    join users on users.sub = asked.user_sub
    on conflict (uid) do nothing returning uid`.execute(db);
  return new Set(stored.rows.map(({ uid }) => uid));
}

/** What SQL knows of a link that was to be stored. */
export type LinkFate =
  /** Its row is there by this call. */
  | "stored"
  /** Its row was there before. */
  | "known"
  /** The row of its touch is not there yet. */
  | "no_touch"
  /** Another link has its code or its uid. */
  | "taken";

/** Stores links, each under the first row of its touch. */
export async function storeLinks(db: LinkSql, links: readonly Link[]): Promise<ReadonlyMap<string, LinkFate>> {
  if (links.length === 0) return new Map();
  const { rows: inserted } = await sql<{ code: string }>`
    insert into user_touch_links (uid, user_touch_id, code, page_identifier, page_extra, preview_identifier,
      preview_extra, created_at)
    select asked.uid, touch.id, asked.code, asked.page, asked.page_extra, asked.preview, asked.preview_extra,
      to_timestamp(asked.created_at)
    from unnest(
      ${column(links, ({ uid }) => uid)}::text[], ${column(links, (link) => link.touch_uid)}::text[],
      ${column(links, ({ code }) => code)}::text[], ${column(links, (link) => link.page_identifier)}::text[],
      ${column(links, (link) => JSON.stringify(link.page_extra))}::jsonb[],
      ${column(links, (link) => link.preview_identifier)}::text[],
      ${column(links, (link) => JSON.stringify(link.preview_extra))}::jsonb[],
      ${column(links, (link) => link.created_at)}::float8[]
    ) as asked (uid, touch_uid, code, page, page_extra, preview, preview_extra, created_at)
    cross join lateral (
      select id from user_touches where send_uid = asked.touch_uid order by id limit 1
    ) as touch
    on conflict do nothing returning code`.execute(db);
  const fates = new Map<string, LinkFate>(inserted.map(({ code }) => [code, "stored"]));
  const others = links.filter(({ code }) => !fates.has(code));
  if (others.length === 0) return fates;
  const { rows } = await sql<{ code: string; fate: LinkFate }>`
    select asked.code, case
      when exists (select 1 from user_touch_links as held where held.uid = asked.uid and held.code = asked.code)
        then 'known'
      when exists (select 1 from user_touch_links as held where held.uid = asked.uid or held.code = asked.code)
        then 'taken'
      else 'no_touch' end as fate
    from unnest(${column(others, ({ uid }) => uid)}::text[], ${column(others, ({ code }) => code)}::text[])
      as asked (uid, code)`.execute(db);
  for (const { code, fate } of rows) fates.set(code, fate);
  return fates;
}

export interface ClickRow extends BufferedClick {
  readonly link_code: string;
  /** A sign-in after it is stored with it, or was before. */
  readonly hasChild?: boolean;
}

/** Stores clicks of stored links, parents before children; answers the uids that are there now and were not before. */
export async function storeClicks(db: LinkSql, clicks: readonly ClickRow[], now: number): Promise<ReadonlySet<string>> {
  const stored = new Set<string>();
  for (const type of ["on_click", "post_login"] as const) {
    const rows = clicks.filter(({ track_type }) => track_type === type);
    if (rows.length > 0) for (const uid of await storeOfType(db, rows, now)) stored.add(uid);
  }
  return stored;
}

async function storeOfType(db: LinkSql, rows: readonly ClickRow[], now: number): Promise<readonly string[]> {
  const { rows: stored } = await sql<{ uid: string }>`
    insert into user_touch_link_clicks (uid, user_touch_link_id, track_type, parent_id, user_id, visitor_id,
      parent_known, user_known, visitor_known, child_known, visitor_uid, clicked_at, created_at)
    select asked.uid, link.id, asked.track_type, parent.id, users.id, null,
      parent.id is not null, users.id is not null, false, asked.has_child, asked.visitor_uid,
      to_timestamp(asked.clicked_at), to_timestamp(${now}::float8)
    from unnest(
      ${column(rows, ({ uid }) => uid)}::text[], ${column(rows, (row) => row.link_code)}::text[],
      ${column(rows, (row) => row.track_type)}::text[], ${column(rows, (row) => row.parent_uid ?? null)}::text[],
      ${column(rows, (row) => row.user_sub ?? null)}::text[], ${column(rows, (row) => row.visitor_uid ?? null)}::text[],
      ${column(rows, (row) => row.clicked_at)}::float8[], ${column(rows, (row) => row.hasChild ?? false)}::boolean[]
    ) as asked (uid, code, track_type, parent_uid, user_sub, visitor_uid, clicked_at, has_child)
    join user_touch_links as link on link.code = asked.code
    left join users on users.sub = asked.user_sub
    left join user_touch_link_clicks as parent on parent.uid = asked.parent_uid
      and parent.user_touch_link_id = link.id and parent.track_type = 'on_click'
    on conflict do nothing returning uid`.execute(db);
  const parents = rows.flatMap(({ parent_uid }) => parent_uid ?? []);
  if (parents.length > 0)
    await sql`
      update user_touch_link_clicks as parent set child_known = true
      where parent.uid = any(${parents}::text[]) and not parent.child_known
        and exists (select 1 from user_touch_link_clicks as child where child.parent_id = parent.id)`.execute(db);
  return stored.map(({ uid }) => uid);
}

/** Where stored links lead, by code. */
export async function findLinks(
  ctx: Pick<Context, "sql">,
  codes: readonly string[],
): Promise<ReadonlyMap<string, LinkTarget>> {
  if (codes.length === 0) return new Map();
  const { rows } = await sql<LinkTarget & { code: string }>`
    select code, page_identifier, page_extra, preview_identifier, preview_extra from user_touch_links
    where code = any(${[...codes]}::text[])`.execute(ctx.sql.tables<LinkTables>());
  return new Map(rows.map(({ code, ...target }) => [code, target]));
}

/** Which of these clicks SQL has. */
export async function knownClicks(db: LinkSql, uids: readonly string[]): Promise<ReadonlySet<string>> {
  if (uids.length === 0) return new Set();
  const { rows } = await sql<{ uid: string }>`
    select uid from user_touch_link_clicks where uid = any(${[...uids]}::text[])`.execute(db);
  return new Set(rows.map(({ uid }) => uid));
}

import { type RawBuilder, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { TouchChannel } from "./entries.ts";
import type { TouchTables } from "./tables.ts";

/** A page by key: rows older than `before`, the newest first. */
export interface PageWish {
  readonly before: number | undefined;
  readonly limit: number;
}

export interface Page<Row> {
  readonly items: readonly Row[];
  /** Pass it as `before` for the next page; null at the end. */
  readonly next: number | null;
}

async function pageOf<Row extends { readonly id?: number }>(
  ctx: Pick<Context, "sql">,
  { before, limit }: PageWish,
  select: (older: RawBuilder<unknown>) => RawBuilder<Row>,
): Promise<Page<Omit<Row, "id">>> {
  const older = before === undefined ? sql`true` : sql`row.id < ${before}`;
  const { rows } = await sql<Row & { id: number }>`
    ${select(older)} order by row.id desc limit ${limit}`.execute(ctx.sql.tables<TouchTables>());
  const next = rows.length === limit ? rows.at(-1)!.id : null;
  return { items: rows.map(({ id: _, ...row }) => row as unknown as Omit<Row, "id">), next };
}

export interface ListedTouch {
  readonly id: number;
  readonly uid: string;
  readonly touch_uid: string;
  readonly channel: TouchChannel;
  readonly event_slug: string | null;
  readonly destination: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly created_at: number;
}

export const touchesOf = (ctx: Pick<Context, "sql">, sub: string, page: PageWish) =>
  pageOf<ListedTouch>(
    ctx,
    page,
    (older) => sql`
    select row.id, row.uid, row.send_uid as touch_uid, row.channel, point.event_slug, row.destination, row.message,
      extract(epoch from row.created_at)::float8 as created_at
    from user_touches as row join users on users.id = row.user_id
    left join touch_points as point on point.id = row.touch_point_id
    where users.sub = ${sub} and ${older}`,
  );

export interface LatestTouch extends Pick<ListedTouch, "id" | "channel" | "event_slug" | "destination" | "created_at"> {
  /** Of the touch itself, whose timeline tells more. */
  readonly uid: string;
  readonly user_sub: string;
  readonly given_name: string | null;
  readonly family_name: string | null;
}

export const latestTouches = (ctx: Pick<Context, "sql">, page: PageWish) =>
  pageOf<LatestTouch>(
    ctx,
    page,
    (older) => sql`
    select row.id, row.send_uid as uid, users.sub as user_sub, users.given_name, users.family_name, row.channel,
      point.event_slug, row.destination,
      extract(epoch from row.created_at)::float8 as created_at
    from user_touches as row join users on users.id = row.user_id
    left join touch_points as point on point.id = row.touch_point_id where ${older}`,
  );

export interface ListedCampaign {
  readonly id: number;
  readonly uid: string;
  readonly channel: TouchChannel;
  readonly event_slug: string;
  readonly event_parameters: Readonly<Record<string, unknown>>;
  readonly state: "running" | "finished" | "stopped" | "failed";
  readonly reason: string | null;
  readonly told: number;
  readonly after_sub: string;
  /** Of a campaign that runs: how much of everybody it has gone through, from 0 to 1. */
  readonly share: number | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

export const campaignsPage = (ctx: Pick<Context, "sql">, page: PageWish) =>
  pageOf<ListedCampaign>(
    ctx,
    page,
    (older) => sql`
    select row.id, row.uid, row.channel, row.event_slug, row.event_parameters, row.state, row.reason, row.told,
      row.after_sub, case when row.state = 'running' then (
        select count(*) filter (where sub <= row.after_sub)::float8 / greatest(count(*), 1) from users) end as share,
      extract(epoch from row.created_at)::float8 as created_at,
      extract(epoch from row.ended_at)::float8 as ended_at
    from touch_campaigns as row where ${older}`,
  );

export interface ListedStep {
  readonly id: number;
  readonly uid: string;
  readonly event: Readonly<Record<string, unknown>>;
  readonly created_at: number;
}

export const trailPage = (ctx: Pick<Context, "sql">, sub: string, page: PageWish) =>
  pageOf<ListedStep>(
    ctx,
    page,
    (older) => sql`
    select row.id, row.uid, row.event, extract(epoch from row.created_at)::float8 as created_at
    from user_touch_debug_log as row join users on users.id = row.user_id
    where users.sub = ${sub} and ${older}`,
  );

export interface ListedState {
  readonly id: number;
  readonly uid: string;
  readonly event_slug: string;
  readonly channel: TouchChannel;
  readonly state: unknown;
  readonly version: number;
  readonly updated_at: number;
}

export const statesPage = (ctx: Pick<Context, "sql">, sub: string, page: PageWish) =>
  pageOf<ListedState>(
    ctx,
    page,
    (older) => sql`
    select row.id, row.uid, point.event_slug, row.channel, row.state, row.version,
      extract(epoch from row.updated_at)::float8 as updated_at
    from user_touch_point_states as row join users on users.id = row.user_id
    join touch_points as point on point.id = row.touch_point_id
    where users.sub = ${sub} and ${older}`,
  );

import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { TouchChannel } from "./entries.ts";
import { errors } from "./errors.ts";
import {
  checkMessages,
  checkSchema,
  type Messages,
  messagesEtag,
  type SelectionStrategy,
  sorted,
  type TouchPoint,
} from "./point.ts";
import type { TouchTables } from "./tables.ts";

type StoreContext = Pick<Context, "sql" | "clock">;

const COLUMNS = sql`id, uid, event_slug, event_schema, selection_strategy, messages,
  extract(epoch from created_at)::float8 as created_at`;

/** The touch points of these slugs, with one query. */
export async function pointsBySlug(
  ctx: Pick<Context, "sql">,
  slugs: readonly string[],
): Promise<ReadonlyMap<string, TouchPoint>> {
  if (slugs.length === 0) return new Map();
  const { rows } = await sql<TouchPoint>`
    select ${COLUMNS} from touch_points where event_slug = any(${[...slugs]}::text[])`.execute(
    ctx.sql.tables<TouchTables>(),
  );
  return new Map(rows.map((point) => [point.event_slug, point]));
}

export async function pointByUid(ctx: Pick<Context, "sql">, uid: string): Promise<TouchPoint> {
  const { rows } = await sql<TouchPoint>`select ${COLUMNS} from touch_points where uid = ${uid}`.execute(
    ctx.sql.tables<TouchTables>(),
  );
  if (!rows[0]) throw errors.touch_point_not_found();
  return rows[0];
}

/** A page of touch points in the order of their slugs. */
export async function listPoints(
  ctx: Pick<Context, "sql">,
  wish: { readonly after?: string | undefined; readonly contains?: string | undefined; readonly limit: number },
): Promise<readonly TouchPoint[]> {
  const { rows } = await sql<TouchPoint>`
    select ${COLUMNS} from touch_points
    where event_slug > ${wish.after ?? ""} and strpos(lower(event_slug), lower(${wish.contains ?? ""})) > 0
    order by event_slug limit ${wish.limit}`.execute(ctx.sql.tables<TouchTables>());
  return rows;
}

export interface PointFields {
  readonly event_slug: string;
  readonly event_schema: Readonly<Record<string, unknown>>;
  readonly selection_strategy: SelectionStrategy;
  readonly messages: Messages;
}

const UNIQUE_VIOLATION = "23505";

function slugTaken(error: unknown): never {
  if (error instanceof Error && (error as Error & { code?: string }).code === UNIQUE_VIOLATION)
    throw errors.event_slug_exists();
  throw error;
}

export async function createPoint(ctx: StoreContext, fields: PointFields): Promise<TouchPoint> {
  checkSchema(fields.event_schema);
  const messages = sorted(fields.messages);
  checkMessages(messages, fields.event_schema);
  const uid = newUid("tpo");
  await sql`
    insert into touch_points (uid, event_slug, event_schema, selection_strategy, messages, created_at)
    values (${uid}, ${fields.event_slug}, ${JSON.stringify(fields.event_schema)}::jsonb, ${fields.selection_strategy},
      ${JSON.stringify(messages)}::jsonb, to_timestamp(${ctx.clock.now()}::float8))`
    .execute(ctx.sql.tables<TouchTables>())
    .catch(slugTaken);
  return pointByUid(ctx, uid);
}

/** Changes a touch point. A new strategy begins anew with everybody: what the old one remembered means nothing to it. */
export async function changePoint(
  ctx: StoreContext,
  uid: string,
  changes: Partial<PointFields>,
  expectedEtag?: string,
): Promise<TouchPoint> {
  await ctx.sql
    .tables<TouchTables>()
    .transaction()
    .execute(async (tx) => {
      const { rows } = await sql<TouchPoint>`
        select ${COLUMNS} from touch_points where uid = ${uid} for update`.execute(tx);
      const [held] = rows;
      if (!held) throw errors.touch_point_not_found();
      if (expectedEtag !== undefined && expectedEtag !== messagesEtag(held.messages)) throw errors.messages_changed();
      const next: PointFields = { ...held, ...changes };
      checkSchema(next.event_schema);
      const messages = sorted(next.messages);
      checkMessages(messages, next.event_schema);
      await sql`
        update touch_points set event_slug = ${next.event_slug}, selection_strategy = ${next.selection_strategy},
          event_schema = ${JSON.stringify(next.event_schema)}::jsonb, messages = ${JSON.stringify(messages)}::jsonb
        where id = ${held.id}`
        .execute(tx)
        .catch(slugTaken);
      if (next.selection_strategy !== held.selection_strategy)
        await sql`delete from user_touch_point_states where touch_point_id = ${held.id}`.execute(tx);
    });
  return pointByUid(ctx, uid);
}

export async function deletePoint(ctx: StoreContext, uid: string): Promise<void> {
  const { rows } = await sql`delete from touch_points where uid = ${uid} returning id`.execute(
    ctx.sql.tables<TouchTables>(),
  );
  if (rows.length === 0) throw errors.touch_point_not_found();
}

export interface HeldState {
  readonly state: unknown;
  readonly version: number;
}

/** Whose state is asked for. */
export interface StateKey {
  readonly userSub: string;
  readonly pointUid: string;
  readonly channel: TouchChannel;
}

export const stateName = ({ userSub, pointUid, channel }: StateKey) => `${userSub}\n${pointUid}\n${channel}`;

/** What touch points remember of these people, with one query. */
export async function statesOf(
  ctx: Pick<Context, "sql">,
  asked: readonly StateKey[],
): Promise<ReadonlyMap<string, HeldState>> {
  if (asked.length === 0) return new Map();
  const { rows } = await sql<StateKey & HeldState>`
    select users.sub as "userSub", point.uid as "pointUid", held.channel, held.state, held.version
    from unnest(
      ${asked.map(({ userSub }) => userSub)}::text[], ${asked.map(({ pointUid }) => pointUid)}::text[],
      ${asked.map(({ channel }) => channel)}::text[]
    ) as asked (sub, point, channel)
    join users on users.sub = asked.sub
    join touch_points as point on point.uid = asked.point
    join user_touch_point_states as held on held.user_id = users.id and held.touch_point_id = point.id
      and held.channel = asked.channel`.execute(ctx.sql.tables<TouchTables>());
  return new Map(rows.map((row) => [stateName(row), { state: row.state, version: row.version }]));
}

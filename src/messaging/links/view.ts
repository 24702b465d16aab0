import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { BufferedClick, Link, TrackType } from "./entries.ts";
import { keys } from "./keys.ts";
import type { LinkTables } from "./tables.ts";
import { readWaiting } from "./waiting.ts";

/** Where a link is in its life. */
export type LinkState = "buffered" | "persistable" | "persisting" | "persisted" | "gone";

export interface Click {
  readonly uid: string;
  readonly track_type: TrackType;
  readonly clicked_at: number;
  readonly parent_uid: string | null;
  readonly user_sub: string | null;
  readonly visitor_uid: string | null;
  /** Where it is kept now. */
  readonly kept: "buffer" | "delayed" | "sql";
}

const clickOf = (click: BufferedClick, kept: Click["kept"]): Click => ({
  uid: click.uid,
  track_type: click.track_type,
  clicked_at: click.clicked_at,
  parent_uid: click.parent_uid ?? null,
  user_sub: click.user_sub ?? null,
  visitor_uid: click.visitor_uid ?? null,
  kept,
});

/** More clicks wait only when the job that stores them is far behind. */
const MOST_DELAYED = 2_000;

/** Clicks of these codes that wait for their link to be stored, by code. There are few, and they are known by uid alone. */
async function delayedClicks(
  { redis: { commands, topology } }: Pick<Context, "redis">,
  codes: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly Click[]>> {
  const places = [keys.delayed(), keys.delayedPurgatory()];
  const uids = await Promise.all(places.map((key) => commands.zrange(topology.key(key), 0, String(MOST_DELAYED - 1))));
  const hashes = await Promise.all(
    uids.flat().map((uid) => commands.hgetall(topology.key(keys.delayedClick({ uid })))),
  );
  const found = new Map<string, Click[]>();
  for (const { uid, link_code: code, track_type, clicked_at, parent_uid, user_sub, visitor_uid } of hashes) {
    if (uid === undefined || code === undefined || !codes.has(code)) continue;
    const click: Click = {
      uid,
      track_type: track_type as TrackType,
      clicked_at: Number(clicked_at),
      parent_uid: parent_uid || null,
      user_sub: user_sub || null,
      visitor_uid: visitor_uid || null,
      kept: "delayed",
    };
    found.set(code, [...(found.get(code) ?? []), click]);
  }
  return found;
}

interface StoredClick extends Omit<Click, "kept"> {
  readonly code: string;
}

async function storedClicks(ctx: Pick<Context, "sql">, codes: readonly string[]): Promise<readonly StoredClick[]> {
  const { rows } = await sql<StoredClick>`
    select link.code, click.uid, click.track_type, extract(epoch from click.clicked_at)::float8 as clicked_at,
      parent.uid as parent_uid, users.sub as user_sub, click.visitor_uid
    from user_touch_link_clicks as click
    join user_touch_links as link on link.id = click.user_touch_link_id
    left join user_touch_link_clicks as parent on parent.id = click.parent_id
    left join users on users.id = click.user_id
    where link.code = any(${[...codes]}::text[]) order by click.clicked_at, click.id limit 5000`.execute(
    ctx.sql.tables<LinkTables>(),
  );
  return rows;
}

/** Everything that is known of one link, wherever it is. */
export async function viewLink(ctx: Pick<Context, "redis" | "sql" | "alerts">, code: string) {
  const { commands, topology } = ctx.redis;
  const [[waiting], due, storing, robots, stored, clicks, delayed] = await Promise.all([
    readWaiting(ctx, [code]),
    commands.zscore(topology.key(keys.toPersist()), code),
    commands.zscore(topology.key(keys.persistPurgatory()), code),
    commands.hgetall(topology.key(keys.robots({ code }))),
    storedLink(ctx, code),
    storedClicks(ctx, [code]),
    delayedClicks(ctx, new Set([code])),
  ]);
  const link = waiting?.link ?? stored;
  const state = stateOf({ waiting: waiting?.link, due, storing, stored });
  return {
    state,
    link: link ?? null,
    persist_at: due === null ? null : Number(due),
    robots: Object.fromEntries(Object.entries(robots).map(([rule, uses]) => [rule, Number(uses)])),
    clicks: [
      ...clicks.map(({ code: _, ...click }): Click => ({ ...click, kept: "sql" })),
      ...(waiting?.clicks ?? []).map((click) => clickOf(click, "buffer")),
      ...(delayed.get(code) ?? []),
    ],
  };
}

function stateOf(found: {
  readonly waiting: Link | undefined;
  readonly due: string | null;
  readonly storing: string | null;
  readonly stored: Link | undefined;
}): LinkState {
  if (found.storing !== null) return "persisting";
  if (found.due !== null) return "persistable";
  if (found.waiting) return "buffered";
  return found.stored ? "persisted" : "gone";
}

async function storedLink(ctx: Pick<Context, "sql">, code: string): Promise<Link | undefined> {
  const { rows } = await sql<Link>`
    select link.uid, link.code, touch.send_uid as touch_uid, link.page_identifier, link.page_extra,
      link.preview_identifier, link.preview_extra, extract(epoch from link.created_at)::float8 as created_at
    from user_touch_links as link join user_touches as touch on touch.id = link.user_touch_id
    where link.code = ${code}`.execute(ctx.sql.tables<LinkTables>());
  return rows[0];
}

/** The clicks of touches, for their timelines: those that are stored, and those of links that still wait. */
export async function clicksOfTouches(
  ctx: Pick<Context, "redis" | "sql" | "alerts">,
  asked: readonly { readonly touchUid: string; readonly codes: readonly string[] }[],
): Promise<ReadonlyMap<string, readonly Click[]>> {
  const codes = asked.flatMap((each) => each.codes);
  const touchUids = asked.map(({ touchUid }) => touchUid);
  const { rows: links } = await sql<{ code: string; touch_uid: string }>`
    select link.code, touch.send_uid as touch_uid from user_touch_links as link
    join user_touches as touch on touch.id = link.user_touch_id
    where touch.send_uid = any(${touchUids}::text[])`.execute(ctx.sql.tables<LinkTables>());
  const touchOf = new Map(links.map(({ code, touch_uid }) => [code, touch_uid]));
  const [stored, waiting, delayed] = await Promise.all([
    storedClicks(ctx, [...touchOf.keys()]),
    readWaiting(ctx, codes),
    delayedClicks(ctx, new Set([...touchOf.keys(), ...codes])),
  ]);
  for (const { code, link } of waiting) if (link) touchOf.set(code, link.touch_uid);
  const found = new Map<string, Click[]>(touchUids.map((uid) => [uid, []]));
  for (const { code, ...click } of stored) found.get(touchOf.get(code)!)?.push({ ...click, kept: "sql" });
  for (const { link, clicks } of waiting)
    if (link) found.get(link.touch_uid)?.push(...clicks.map((click) => clickOf(click, "buffer")));
  for (const [code, clicks] of delayed) found.get(touchOf.get(code) ?? "")?.push(...clicks);
  return found;
}

import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import {
  countDeltas,
  drawDeltas,
  removalOf,
  type StagedDelta,
  type Stats,
  stageDeltas,
  stagingOf,
  statsOf,
} from "../../mechanisms/dated-counters/index.ts";
import type { LinkTarget } from "./entries.ts";
import type { LinkMemory } from "./memory.ts";
import { findLinks, knownClicks, type LinkSql, storeClicks } from "./rows.ts";
import { linkStats } from "./stats.ts";
import type { LinkTables } from "./tables.ts";
import type { Travelling, Use, UseResult } from "./uses.ts";

/** `on_click:home:vis=True:user=False`, as statistics name a use. */
export function wordOf(
  page: string,
  click: { readonly track_type: string; readonly visitor_uid?: string; readonly user_sub?: string },
) {
  const said = (known: boolean) => (known ? "True" : "False");
  const [visitor, user] = [click.visitor_uid !== undefined, click.user_sub !== undefined];
  return `${click.track_type}:${page}:vis=${said(visitor)}:user=${said(user)}`;
}

/**
 * Uses whose link is not in the buffer: it is stored, or there is none.
 *
 *   group ──links found──▶ rows and counts committed together ──▶ results ──▶ counts applied ──▶ removed with the next group
 *
 * A use has its result once its row is committed. Counts that a death left unapplied are found by the sweep.
 */
export class StoredUses {
  readonly #ctx: Context;
  readonly #memory: LinkMemory;
  /** Counts that are applied and whose rows are still there: the next group removes them on its way, or the sweep. */
  #applied: string[] = [];

  constructor(ctx: Context, memory: LinkMemory) {
    this.#ctx = ctx;
    this.#memory = memory;
  }

  async settle(group: readonly Travelling[]): Promise<void> {
    const links = await this.#linksOf(group);
    const stats = statsOf(this.#ctx);
    const fresh: Travelling[] = [];
    const others: Travelling[] = [];
    const refused: Travelling[] = [];
    for (const travelling of group) {
      const { use, outcome } = travelling;
      if (outcome !== "go_sql" || !links.has(use.code)) refused.push(travelling);
      // Its uid was made for this very request, so nobody has stored it before.
      else if (use.kind === "on_click" && use.limited) fresh.push(travelling);
      else others.push(travelling);
    }
    for (const travelling of refused)
      travelling.result = withoutRow(travelling.use, travelling.outcome!, links.get(travelling.use.code), stats);
    if (refused.length > 0) await stats.store();
    if (fresh.length > 0 && !(await this.#insertFresh(fresh, links))) others.push(...fresh);
    if (others.length > 0) await this.#insertOthers(others, links);
  }

  async #linksOf(group: readonly Travelling[]): Promise<ReadonlyMap<string, LinkTarget>> {
    const links = new Map<string, LinkTarget>();
    const asked: string[] = [];
    for (const { use } of group) {
      const held = this.#memory.fresh(use.code);
      if (held) links.set(use.code, held);
      else asked.push(use.code);
    }
    for (const [code, target] of await findLinks(this.#ctx, asked)) {
      this.#memory.note(code, target, true);
      links.set(code, target);
    }
    return links;
  }

  /**
   * Clicks that nothing can stand against, with one statement: rows and counts, and away with the counts before them.
   * Answers false, and has done nothing, if a link is gone since it was found.
   */
  async #insertFresh(group: readonly Travelling[], links: ReadonlyMap<string, LinkTarget>): Promise<boolean> {
    const words = new Map<string, number>();
    for (const { use } of group) {
      const word = wordOf(links.get(use.code)!.page_identifier, use.click);
      words.set(word, (words.get(word) ?? 0) + 1);
    }
    const counted = statsOf(this.#ctx).incr(linkStats, "click_attempts", { by: group.length });
    for (const [extra, by] of words) counted.incr(linkStats, "clicks_direct_to_db", { extra, by });
    const staged = drawDeltas(counted);
    const clicks = group.map(({ use }) => use.click);
    const all = sql`(select count(*) from asked) = ${group.length}::bigint`;
    const removed = this.#applied;
    const { rows } = await sql<{ stored: number }>`
      with asked as materialized (
        select asked.uid, asked.visitor_uid, asked.clicked_at, link.id as link_id,
          (select users.id from users where users.sub = asked.user_sub) as user_id
        from unnest(
          ${clicks.map(({ uid }) => uid)}::text[], ${group.map(({ use }) => use.code)}::text[],
          ${clicks.map((click) => click.user_sub ?? null)}::text[],
          ${clicks.map((click) => click.visitor_uid ?? null)}::text[],
          ${clicks.map((click) => click.clicked_at)}::float8[]
        ) as asked (uid, code, user_sub, visitor_uid, clicked_at)
        cross join lateral (select id from user_touch_links where code = asked.code limit 1) as link
      ), stored as (
        insert into user_touch_link_clicks (uid, user_touch_link_id, track_type, parent_known, user_id, user_known,
          visitor_known, child_known, visitor_uid, clicked_at, created_at)
        select uid, link_id, 'on_click', false, user_id, user_id is not null, false, false, visitor_uid,
          to_timestamp(clicked_at), to_timestamp(${this.#ctx.clock.now()}::float8)
        from asked where ${all} returning id
      ), staged as (${stagingOf(this.#ctx, staged, all)}), removed as (${removalOf(removed)})
      select count(*) as stored from stored`.execute(this.#ctx.sql.tables<LinkTables>());
    this.#applied = this.#applied.filter((uid) => !removed.includes(uid));
    if (rows[0]?.stored !== group.length) return false;
    for (const travelling of group)
      travelling.result = { outcome: "direct_to_db", target: links.get(travelling.use.code) };
    await this.#count(staged);
    return true;
  }

  /** Sign-ins, which need a parent, and uses that may have been stored before. */
  async #insertOthers(group: readonly Travelling[], links: ReadonlyMap<string, LinkTarget>): Promise<void> {
    const { outcomes, staged } = await this.#ctx.sql
      .tables<LinkTables>()
      .transaction()
      .execute(async (tx) => {
        const decided = await decide(tx, group);
        const kept = group.filter(({ use }) => decided.get(use.click.uid) === "direct_to_db");
        const rows = kept.map(({ use }) => ({ ...use.click, link_code: use.code }));
        const stored = await storeClicks(tx, rows, this.#ctx.clock.now());
        const counted = statsOf(this.#ctx);
        const outcomes = new Map<string, UseResult["outcome"]>();
        for (const { use } of group) {
          const { code, click, kind } = use;
          const page = links.get(code)!.page_identifier;
          const outcome = decided.get(click.uid)!;
          // Not inserted although nothing stood against it: this very use was stored before.
          const isRepeat = outcome === "direct_to_db" && !stored.has(click.uid);
          outcomes.set(click.uid, isRepeat ? "repeated" : outcome);
          if (isRepeat) continue;
          counted.incr(linkStats, "click_attempts");
          if (outcome === "direct_to_db")
            counted.incr(linkStats, "clicks_direct_to_db", { extra: wordOf(page, click) });
          else counted.incr(linkStats, "clicks_failed", { extra: `${kind}:${page}:db:${outcome}` });
        }
        return { outcomes, staged: await stageDeltas(tx as never, this.#ctx, counted) };
      });
    for (const travelling of group) {
      const { code, click } = travelling.use;
      travelling.result = { outcome: outcomes.get(click.uid)!, target: links.get(code) };
    }
    await this.#count(staged);
  }

  async #count(staged: readonly StagedDelta[]): Promise<void> {
    try {
      await countDeltas(this.#ctx, staged);
      this.#applied.push(...staged.map(({ uid }) => uid));
    } catch (error) {
      this.#ctx.log.warn({ reason: String(error) }, "counts of clicks are left to the sweep");
    }
  }
}

/** What is not kept in SQL: it was looked up, refused, or waits in Redis. */
function withoutRow(
  use: Use,
  outcome: NonNullable<Travelling["outcome"]>,
  target: LinkTarget | undefined,
  stats: Stats,
): UseResult {
  const refuse = (word: string) =>
    stats.incr(linkStats, "click_attempts").incr(linkStats, "clicks_failed", { extra: word });
  const isClick = use.kind === "on_click" || use.kind === "post_login";
  // What waits in Redis was counted there, and a repeat was counted when it came first.
  if (outcome === "delayed" || outcome === "repeated") return { outcome, target };
  if (!target) {
    if (isClick) refuse("dne");
    return { outcome: "dne", target };
  }
  if (isClick) refuse(`${use.kind}:${target.page_identifier}:db:${outcome}`);
  return { outcome: outcome as UseResult["outcome"], target };
}

type Decided = "direct_to_db" | "parent_has_child" | "parent_not_found";

/** A sign-in is kept under a stored click of the same link that has none yet; of several at once the first is. */
async function decide(tx: LinkSql, group: readonly Travelling[]): Promise<ReadonlyMap<string, Decided>> {
  const decided = new Map<string, Decided>();
  const children = group.filter(({ use }) => use.kind === "post_login");
  for (const { use } of group) decided.set(use.click.uid, "direct_to_db");
  if (children.length === 0) return decided;
  const { rows } = await sql<{ uid: string; code: string; has_child: boolean }>`
    select parent.uid, link.code, parent.child_known or exists (
      select 1 from user_touch_link_clicks as child where child.parent_id = parent.id) as has_child
    from user_touch_link_clicks as parent join user_touch_links as link on link.id = parent.user_touch_link_id
    where parent.uid = any(${children.map(({ use }) => use.click.parent_uid!)}::text[])
      and parent.track_type = 'on_click' order by parent.id for update of parent`.execute(tx);
  const parents = new Map(rows.map((row) => [row.uid, row]));
  const repeated = await knownClicks(
    tx,
    children.map(({ use }) => use.click.uid),
  );
  const claimed = new Set<string>();
  for (const { use } of children) {
    if (repeated.has(use.click.uid)) continue;
    const parent = parents.get(use.click.parent_uid!);
    if (!parent || parent.code !== use.code) decided.set(use.click.uid, "parent_not_found");
    else if (parent.has_child || claimed.has(parent.uid)) decided.set(use.click.uid, "parent_has_child");
    else claimed.add(parent.uid);
  }
  return decided;
}

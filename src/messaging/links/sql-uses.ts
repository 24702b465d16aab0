import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { applyDeltas, type Stats, stageDeltas, statsOf } from "../../mechanisms/dated-counters/index.ts";
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

/** Uses whose link is not in the buffer: it is stored, or there is none. One transaction for the group. */
export async function settleInSql(ctx: Context, memory: LinkMemory, group: readonly Travelling[]): Promise<void> {
  const links = await linksOf(ctx, memory, group);
  const stats = statsOf(ctx);
  const clicks: Travelling[] = [];
  for (const travelling of group) {
    const { use, taken } = travelling;
    const target = links.get(use.code);
    const outcome = taken!.outcome;
    if (outcome === "go_sql" && target) clicks.push(travelling);
    else travelling.result = withoutRow(use, outcome, target, stats);
  }
  if (clicks.length > 0) await insert(ctx, clicks, links, stats);
  else await stats.store();
}

async function linksOf(ctx: Context, memory: LinkMemory, group: readonly Travelling[]) {
  const links = new Map<string, LinkTarget>();
  const asked = new Set<string>();
  for (const { use } of group) {
    const held = memory.fresh(use.code);
    if (held) links.set(use.code, held);
    else asked.add(use.code);
  }
  for (const [code, target] of await findLinks(ctx, [...asked])) {
    memory.note(code, target, true);
    links.set(code, target);
  }
  return links;
}

/** What is not kept in SQL: it was looked up, refused, or waits in Redis. */
function withoutRow(
  use: Use,
  outcome: NonNullable<Travelling["taken"]>["outcome"],
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

async function insert(
  ctx: Context,
  group: readonly Travelling[],
  links: ReadonlyMap<string, LinkTarget>,
  stats: Stats,
): Promise<void> {
  const staged = await ctx.sql
    .tables<LinkTables>()
    .transaction()
    .execute(async (tx) => {
      const outcomes = await decide(tx, group);
      const kept = group.filter(({ use }) => outcomes.get(use.click.uid) === "direct_to_db");
      const rows = kept.map(({ use }) => ({ ...use.click, link_code: use.code }));
      const stored = await storeClicks(tx, rows, ctx.clock.now());
      for (const travelling of group) {
        const { code, click, kind } = travelling.use;
        const target = links.get(code)!;
        const decided = outcomes.get(click.uid)!;
        // Not inserted although nothing stood against it: this very use was stored before.
        const outcome = decided === "direct_to_db" && !stored.has(click.uid) ? "repeated" : decided;
        travelling.result = { outcome, target };
        if (outcome === "repeated") continue;
        stats.incr(linkStats, "click_attempts");
        if (outcome === "direct_to_db")
          stats.incr(linkStats, "clicks_direct_to_db", { extra: wordOf(target.page_identifier, click) });
        else stats.incr(linkStats, "clicks_failed", { extra: `${kind}:${target.page_identifier}:db:${outcome}` });
      }
      return stageDeltas(tx as never, ctx, stats);
    });
  await applyDeltas(ctx, staged).catch((error: unknown) =>
    ctx.log.warn({ reason: String(error) }, "counts of clicks are left to the sweep"),
  );
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

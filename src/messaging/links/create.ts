import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { CodeMaker, type CodeStyle } from "./codes.ts";
import { type Link, type LinkTarget, linkHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { openDays } from "./open-days.ts";
import { atRoot, checkTarget } from "./pages.ts";
import { create, release } from "./scripts.ts";
import { linkStats } from "./stats.ts";
import type { LinkTables } from "./tables.ts";

export interface NewLink {
  readonly touchUid: string;
  readonly page: { readonly identifier: string; readonly extra?: Readonly<Record<string, unknown>> };
  readonly preview?: { readonly identifier: string; readonly extra?: Readonly<Record<string, unknown>> };
  /** Default `normal`. */
  readonly codeStyle?: CodeStyle;
}

export interface CreatedLink {
  readonly uid: string;
  readonly code: string;
  readonly touchUid: string;
  readonly url: string;
  /** Without its scheme, for text messages. */
  readonly shortUrl: string;
}

type CreateContext = Pick<Context, "redis" | "sql" | "clock" | "config" | "alerts">;

const GROUP = 200;
const makers = new WeakMap<object, CodeMaker>();

function makerOf(ctx: CreateContext): CodeMaker {
  const maker = makers.get(ctx.redis) ?? new CodeMaker();
  makers.set(ctx.redis, maker);
  return maker;
}

interface Attempt {
  readonly link: Link;
  readonly style: CodeStyle;
  code: string;
}

/**
 * Makes links that work at once, in the buffer alone. They are stored when their message arrives, given up when it
 * fails, and cleared away when nobody says which.
 *
 * A short code is taken in the buffer first and then looked for in SQL. That is enough: whoever had it before is either
 * still in the buffer, and the buffer refuses it, or has been committed to SQL already.
 */
export async function createLinks(ctx: CreateContext, links: readonly NewLink[]): Promise<readonly CreatedLink[]> {
  const now = ctx.clock.now();
  const attempts = links.map(({ touchUid, page, preview, codeStyle: style = "normal" }): Attempt => {
    const target: LinkTarget = {
      page_identifier: page.identifier,
      page_extra: page.extra ?? {},
      preview_identifier: preview?.identifier ?? "default",
      preview_extra: preview?.extra ?? {},
    };
    checkTarget(target);
    const link = { uid: newUid("utl"), code: "", touch_uid: touchUid, ...target, created_at: now };
    return { link, style, code: "" };
  });
  for (let waiting: readonly Attempt[] = attempts; waiting.length > 0; ) {
    const refused: Attempt[] = [];
    for (let start = 0; start < waiting.length; start += GROUP)
      refused.push(...(await place(ctx, waiting.slice(start, start + GROUP))));
    waiting = refused;
  }
  return attempts.map(({ link: { uid, touch_uid }, code }) => ({
    uid,
    code,
    touchUid: touch_uid,
    ...addressesOf(ctx, code),
  }));
}

/** Where a link is found; the short form is for text messages. */
export function addressesOf(ctx: Pick<Context, "config">, code: string): Pick<CreatedLink, "url" | "shortUrl"> {
  const url = atRoot(ctx, `/l/${code}`);
  return { url, shortUrl: url.replace(/^https:\/\//, "") };
}

/** Tries each once; answers those whose code was taken. */
async function place(ctx: CreateContext, attempts: readonly Attempt[]): Promise<readonly Attempt[]> {
  const maker = makerOf(ctx);
  for (const attempt of attempts) attempt.code = codeFrom(ctx, maker, attempt.style);
  const days = openDays(ctx);
  const made = await ctx.redis.run(
    create,
    [keys.buffer(), linkStats.earliest(), ...days.keys],
    [
      ...days.args,
      ...attempts.flatMap(({ link, code }) => [
        code,
        String(link.created_at),
        ...linkHash.encode({ ...link, code } as never),
      ]),
    ],
  );
  const placed = attempts.filter((_, at) => made[at]);
  const short = placed.filter(({ style }) => style === "short");
  const owned = await ownedCodes(
    ctx,
    short.map(({ code }) => code),
  );
  const taken = short.filter(({ code }) => owned.has(code));
  if (taken.length > 0)
    await ctx.redis.run(
      release,
      [keys.buffer(), linkStats.earliest(), ...days.keys],
      [...days.args, ...taken.flatMap(({ code, link }) => [code, link.uid, String(link.created_at)])],
    );
  const refused = new Set([...attempts.filter((_, at) => !made[at]), ...taken]);
  for (const attempt of attempts) if (attempt.style === "short") maker.note(refused.has(attempt));
  return [...refused];
}

/** Codes that are all taken although they are long mean that something is badly wrong: somebody has to look. */
function codeFrom(ctx: CreateContext, maker: CodeMaker, style: CodeStyle): string {
  try {
    return maker.next(style);
  } catch (error) {
    ctx.alerts.warning("touch_links:codes_exhausted", "no free short code is found: links cannot be made", {
      urgent: true,
    });
    throw error;
  }
}

async function ownedCodes(ctx: CreateContext, codes: readonly string[]): Promise<ReadonlySet<string>> {
  if (codes.length === 0) return new Set();
  const { rows } = await sql<{ code: string }>`
    select code from user_touch_links where code = any(${[...codes]}::text[])`.execute(ctx.sql.tables<LinkTables>());
  return new Set(rows.map(({ code }) => code));
}

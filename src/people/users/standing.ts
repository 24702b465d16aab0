import type { Context } from "../../jobs/context.ts";
import type { Sql } from "../../kernel/sql/index.ts";
import type { Role, UserTables } from "./tables.ts";

/** What decides whether a token of this user is worth anything right now. */
export interface Standing {
  readonly id: number;
  readonly sub: string;
  readonly role: Role;
  readonly tokensValidAfter: number | null;
}

const TRUSTED_FOR = 60;
const MOST_REMEMBERED = 10_000;

interface Remembered {
  readonly standing: Standing | undefined;
  readonly until: number;
}

/**
 * The row in SQL is authoritative. Each process remembers what it read for at most a minute, so that reading requests
 * need no query of their own; changes made in this process are forgotten at once, those made elsewhere within that
 * minute, and callers that cannot wait for it ask for a fresh read.
 */
const memories = new WeakMap<Sql, Map<string, Remembered>>();

export async function readStanding(
  ctx: Pick<Context, "sql" | "clock">,
  sub: string,
  options: { fresh: boolean },
): Promise<Standing | undefined> {
  const memory = memoryOf(ctx.sql);
  const now = ctx.clock.now();
  const known = memory.get(sub);
  if (known && known.until > now && !options.fresh) return known.standing;
  const changesBefore = changesOf(ctx.sql);
  const row = await ctx.sql
    .tables<UserTables>()
    .selectFrom("users")
    .select(["id", "sub", "role", "tokens_valid_after"])
    .where("sub", "=", sub)
    .executeTakeFirst();
  const standing = row && { id: row.id, sub: row.sub, role: row.role, tokensValidAfter: row.tokens_valid_after };
  if (memory.size >= MOST_REMEMBERED) memory.clear();
  // A read that was overtaken by a change in this process must not be remembered.
  if (changesOf(ctx.sql) === changesBefore) memory.set(sub, { standing, until: now + TRUSTED_FOR });
  return standing;
}

export function forgetStanding(sql: Sql, sub: string): void {
  memoryOf(sql).delete(sub);
  changes.set(sql, changesOf(sql) + 1);
}

/** How often this process has changed anybody's standing. */
const changes = new WeakMap<Sql, number>();

function changesOf(sql: Sql): number {
  return changes.get(sql) ?? 0;
}

function memoryOf(sql: Sql): Map<string, Remembered> {
  const known = memories.get(sql);
  if (known) return known;
  const fresh = new Map<string, Remembered>();
  memories.set(sql, fresh);
  return fresh;
}

import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { type Sql, timestamp } from "../../kernel/sql/index.ts";
import { errors } from "./errors.ts";
import type { AccessTables } from "./tables.ts";

/**
 * Admin tokens live in SQL as hashes: `works` from creation until `revoked_at` is set, never back. A process remembers
 * for ten seconds that a token works, so a revocation takes effect at once in the process that made it and within ten
 * seconds in all others. That a token does not work is never remembered.
 */
export interface AdminToken {
  readonly uid: string;
  readonly label: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

const FORM = /^crl_admin_[A-Za-z0-9_-]{22}$/;
const TRUSTED_FOR = 10;
const USE_NOTED_EVERY = 60;
const MOST_REMEMBERED = 1_000;

interface Remembered {
  readonly uid: string;
  readonly until: number;
}

type AdminContext = Pick<Context, "sql" | "clock">;

const memories = new WeakMap<Sql, Map<string, Remembered>>();

/** The only moment at which the token itself is known. */
export async function createAdminToken(
  ctx: AdminContext,
  plan: { label: string },
): Promise<AdminToken & { readonly token: string }> {
  const token = newUid("admin");
  const created = await ctx.sql
    .tables<AccessTables>()
    .insertInto("admin_tokens")
    .values({
      uid: newUid("atk"),
      token_hash: hashOf(token),
      label: plan.label,
      created_at: timestamp(ctx.clock.now()),
    })
    .returning(["uid", "label", "created_at", "last_used_at", "revoked_at"])
    .executeTakeFirstOrThrow();
  return { ...created, token };
}

/** Newest first; revoked ones stay listed, because the audit log names them. */
export async function listAdminTokens(
  ctx: AdminContext,
  options: { before?: string; limit: number },
): Promise<{ readonly tokens: readonly AdminToken[]; readonly next: string | undefined }> {
  let query = ctx.sql
    .tables<AccessTables>()
    .selectFrom("admin_tokens")
    .select(["uid", "label", "created_at", "last_used_at", "revoked_at"])
    .orderBy("id", "desc")
    .limit(options.limit + 1);
  if (options.before)
    query = query.where("id", "<", (nested) =>
      nested.selectFrom("admin_tokens").select("id").where("uid", "=", options.before!),
    );
  const rows = await query.execute();
  const tokens = rows.slice(0, options.limit);
  return { tokens, next: rows.length > options.limit ? tokens.at(-1)?.uid : undefined };
}

export async function revokeAdminToken(ctx: AdminContext, uid: string): Promise<void> {
  const revoked = await ctx.sql
    .tables<AccessTables>()
    .updateTable("admin_tokens")
    .set({ revoked_at: timestamp(ctx.clock.now()) })
    .where("uid", "=", uid)
    .where("revoked_at", "is", null)
    .returning("token_hash")
    .executeTakeFirst();
  if (!revoked) throw errors.admin_token_not_found();
  // A check that read the row before it was revoked must not remember it as valid afterwards.
  memoryOf(ctx.sql).clear();
  revocations.set(ctx.sql, revocationsOf(ctx.sql) + 1);
}

export type AdminTokenCheck =
  | { readonly ok: true; readonly uid: string }
  | { readonly ok: false; readonly reason: "invalid" | "revoked" };

export async function verifyAdminToken(ctx: AdminContext, token: string): Promise<AdminTokenCheck> {
  if (!FORM.test(token)) return { ok: false, reason: "invalid" };
  const hash = hashOf(token);
  const memory = memoryOf(ctx.sql);
  const now = ctx.clock.now();
  const known = memory.get(hash);
  if (known && known.until > now) return { ok: true, uid: known.uid };
  const revocationsBefore = revocationsOf(ctx.sql);
  const row = await ctx.sql
    .tables<AccessTables>()
    .selectFrom("admin_tokens")
    .select(["id", "uid", "token_hash", "last_used_at", "revoked_at"])
    .where("token_hash", "=", hash)
    .executeTakeFirst();
  if (!row || !timingSafeEqual(Buffer.from(row.token_hash), Buffer.from(hash))) return { ok: false, reason: "invalid" };
  if (row.revoked_at !== null) {
    memory.delete(hash);
    return { ok: false, reason: "revoked" };
  }
  if (row.last_used_at === null || row.last_used_at <= now - USE_NOTED_EVERY)
    await ctx.sql
      .tables<AccessTables>()
      .updateTable("admin_tokens")
      .set({ last_used_at: timestamp(now) })
      .where("id", "=", row.id)
      .execute();
  if (memory.size >= MOST_REMEMBERED) memory.clear();
  if (revocationsOf(ctx.sql) === revocationsBefore) memory.set(hash, { uid: row.uid, until: now + TRUSTED_FOR });
  return { ok: true, uid: row.uid };
}

/** How many tokens this process has revoked. */
const revocations = new WeakMap<object, number>();

function revocationsOf(sql: object): number {
  return revocations.get(sql) ?? 0;
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function memoryOf(sql: Sql): Map<string, Remembered> {
  const known = memories.get(sql);
  if (known) return known;
  const fresh = new Map<string, Remembered>();
  memories.set(sql, fresh);
  return fresh;
}

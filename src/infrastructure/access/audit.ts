import type { Context } from "../../jobs/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import type { AccessTables } from "./tables.ts";

export interface AuditEntry {
  readonly admin: string;
  /** What was done, as `POST /api/1/admin/users`. */
  readonly action: string;
  /** To what, as `sub=crl_u_…`; empty where the path names nothing. */
  readonly target: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

const SECRET_NAME =
  /(pass(word|phrase)?|secret|token|jwt|code|credential|authorization|cookie|api_?key|private_?key)$/i;
const LONGEST_TEXT = 256;
const LONGEST_DETAIL = 8_192;
const DEEPEST = 6;
const MOST_ITEMS = 50;

/** The same value without what must not be kept: fields named like secrets are hidden, long texts and lists cut. */
export function withoutSecrets(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}…` : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEEPEST) return "…";
  if (Buffer.isBuffer(value)) return `(${value.length} bytes)`;
  if (Array.isArray(value)) return value.slice(0, MOST_ITEMS).map((item) => withoutSecrets(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      SECRET_NAME.test(name) ? "[redacted]" : withoutSecrets(item, depth + 1),
    ]),
  );
}

export async function writeAudit(ctx: Pick<Context, "sql" | "clock">, entry: AuditEntry): Promise<void> {
  const written = JSON.stringify(withoutSecrets(entry.detail));
  await ctx.sql
    .tables<AccessTables>()
    .insertInto("admin_audit_log")
    .values({
      admin_sub: entry.admin,
      action: entry.action,
      target: entry.target,
      detail: written.length > LONGEST_DETAIL ? JSON.stringify({ cut: true, bytes: written.length }) : written,
      created_at: timestamp(ctx.clock.now()),
    })
    .execute();
}

export interface AuditPage {
  readonly entries: readonly (AuditEntry & { readonly id: number; readonly created_at: number })[];
  readonly next: number | undefined;
}

/** Newest first, paged by id. */
export async function listAudit(
  ctx: Pick<Context, "sql">,
  options: { before?: number; limit: number; admin?: string; action?: string },
): Promise<AuditPage> {
  let query = ctx.sql
    .tables<AccessTables>()
    .selectFrom("admin_audit_log")
    .selectAll()
    .orderBy("id", "desc")
    .limit(options.limit + 1);
  if (options.before !== undefined) query = query.where("id", "<", options.before);
  if (options.admin !== undefined) query = query.where("admin_sub", "=", options.admin);
  if (options.action !== undefined) query = query.where("action", "=", options.action);
  const rows = await query.execute();
  const entries = rows.slice(0, options.limit).map(({ admin_sub, detail, ...row }) => ({
    ...row,
    admin: admin_sub,
    detail: detail as Record<string, unknown>,
  }));
  return { entries, next: rows.length > options.limit ? entries.at(-1)?.id : undefined };
}

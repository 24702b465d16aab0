import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

type Timestamp = ColumnType<number, unknown, unknown>;
type NullableTimestamp = ColumnType<number | null, unknown, unknown>;

export interface AdminTokenRow {
  id: Generated<number>;
  /** `crl_atk_…`: names the token everywhere without being the token. */
  uid: string;
  /** SHA-256 of the token in hex. The token itself is shown once and kept nowhere. */
  token_hash: string;
  label: string;
  created_at: Timestamp;
  last_used_at: NullableTimestamp;
  revoked_at: NullableTimestamp;
}

export interface AuditRow {
  id: Generated<number>;
  /** The user's sub, or the uid of the admin token. */
  admin_sub: string;
  action: string;
  target: string;
  detail: ColumnType<unknown, string, string>;
  created_at: Timestamp;
}

export interface AccessTables {
  admin_tokens: AdminTokenRow;
  admin_audit_log: AuditRow;
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create admin tokens and the audit log",
    up: `
create table admin_tokens (
  id bigint generated always as identity primary key,
  uid text not null unique,
  token_hash text not null unique,
  label text not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz
);
create table admin_audit_log (
  id bigint generated always as identity primary key,
  admin_sub text not null,
  action text not null,
  target text not null,
  detail jsonb not null,
  created_at timestamptz not null
);
create index admin_audit_log_created_at on admin_audit_log (created_at);
create index admin_audit_log_action on admin_audit_log (action, target);
`,
  },
];

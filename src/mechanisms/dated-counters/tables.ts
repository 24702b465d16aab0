import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

export interface StatTables {
  stat_rotations: {
    id: Generated<number>;
    uid: string;
    table_name: string;
    /** The day; for months the first day of it. */
    retrieved_for: string;
    snapshot: ColumnType<Record<string, unknown>, string, never>;
    /** `ok`; `mismatch`: stored although its sums disagree; `malformed`: not stored, because some of it is no count. */
    outcome: "ok" | "mismatch" | "malformed";
    /** What was counted under names that the family does not declare; of a malformed day what is no count. */
    leftover: ColumnType<Record<string, unknown> | null, string | null, never>;
    duration_ms: number | null;
    created_at: number;
    consumed_at: number | null;
  };
  stat_deltas: {
    uid: string;
    family: string;
    ops: ColumnType<unknown, string, never>;
    created_at: number;
  };
}

export const datedCounterMigrations: readonly Migration[] = [
  {
    number: 1,
    name: "create stat_rotations and stat_deltas",
    up: `
create table stat_rotations (
  id bigint generated always as identity primary key,
  uid text not null unique,
  table_name text not null,
  retrieved_for date not null,
  snapshot jsonb not null,
  outcome text not null,
  leftover jsonb,
  duration_ms integer,
  created_at timestamptz not null,
  consumed_at timestamptz
);
create unique index stat_rotations_unconsumed on stat_rotations (table_name, retrieved_for) where consumed_at is null;
create index stat_rotations_by_table on stat_rotations (table_name, id);
create table stat_deltas (
  uid text primary key,
  family text not null,
  ops jsonb not null,
  created_at timestamptz not null
);
create index stat_deltas_by_age on stat_deltas (created_at);
`,
  },
];

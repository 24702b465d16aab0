import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../../src/kernel/sql/index.ts";

/** Times are written with `timestamp(seconds)` and read as unix seconds. */
type Timestamp = ColumnType<number, unknown, unknown>;

export interface NoteRow {
  id: Generated<number>;
  /** `crl_note_…` */
  uid: string;
  user_id: number;
  text: string;
  created_at: Timestamp;
  expires_at: Timestamp;
}

export interface NoteTables {
  notes: NoteRow;
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create notes",
    up: `
create table notes (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id),
  text text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index notes_user_id on notes (user_id, id);
`,
  },
];

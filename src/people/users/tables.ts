import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

export const ROLES = ["user", "organizer", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** Times are written with `timestamp(seconds)` and read as unix seconds. */
type Timestamp = ColumnType<number, unknown, unknown>;
type NullableTimestamp = ColumnType<number | null, unknown, unknown>;

export interface UserRow {
  /** Target of every foreign key; it never leaves the server. */
  id: Generated<number>;
  /** How the outside and the keys of most families name a person. */
  sub: string;
  /** Version 7, so that its order is the order of arrival and lists can be paged by it. */
  uuid: string;
  role: ColumnType<Role, Role | undefined, Role>;
  timezone: string | null;
  given_name: string | null;
  family_name: string | null;
  created_at: Timestamp;
  /** Bearer tokens issued before this moment are refused. */
  tokens_valid_after: NullableTimestamp;
}

export interface UserTables {
  users: UserRow;
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create users",
    up: `
create table users (
  id bigint generated always as identity primary key,
  sub text not null unique check (sub ~ '^[A-Za-z0-9._|@+-]{1,128}$'),
  uuid uuid not null unique,
  role text not null default 'user' check (role in ('user', 'organizer', 'admin')),
  timezone text,
  given_name text,
  family_name text,
  created_at timestamptz not null,
  tokens_valid_after timestamptz
);
create index users_timezone on users (timezone);
create index users_staff on users (role, uuid) where role <> 'user';
`,
  },
  {
    number: 2,
    name: "log timezones and store changes of preferences",
    up: `
create table user_timezone_log (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  timezone text,
  source text not null,
  style text,
  guessed boolean not null,
  created_at timestamptz not null
);
create index user_timezone_log_user on user_timezone_log (user_id, id);

create table user_notification_setting_stats (
  id bigint generated always as identity primary key,
  retrieved_for date not null,
  old_preference text not null,
  new_preference text not null,
  retrieved_at timestamptz not null,
  total integer not null,
  unique (retrieved_for, old_preference, new_preference)
);
`,
  },
];

import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";
import type { TouchChannel } from "../touch/service.ts";
import type { TimeRange } from "./window.ts";

type Timestamp = ColumnType<number, unknown, unknown>;
type Json<T> = ColumnType<T, string, string>;

/** The zone of people who did not say one. */
export const DEFAULT_ZONE = "America/Los_Angeles";

export interface ReminderTables {
  users: { id: number; sub: string; timezone: string | null; given_name: string | null };
  /** Who gets reminders, on which channel, in which hours. */
  user_daily_reminders: {
    id: Generated<number>;
    uid: string;
    user_id: number;
    channel: TouchChannel;
    start_time: number;
    end_time: number;
    day_of_week_mask: number;
    /** Of the user, kept the same by the database. */
    timezone: string;
    /** The last local day that a reminder was sent for. */
    last_unix_date: number | null;
    created_at: Timestamp;
  };
  user_daily_reminder_settings: {
    id: Generated<number>;
    uid: string;
    user_id: number;
    channel: TouchChannel;
    day_of_week_mask: number;
    time_range: Json<TimeRange>;
    created_at: Timestamp;
    updated_at: Timestamp;
  };
  daily_reminder_settings_log: {
    id: Generated<number>;
    uid: string;
    user_id: number;
    channel: TouchChannel;
    day_of_week_mask: number;
    time_range: Json<TimeRange>;
    reason: Json<Record<string, unknown>>;
    created_at: Timestamp;
  };
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create reminders and their settings",
    up: `
create table user_daily_reminders (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  channel text not null check (channel in ('push', 'sms', 'email')),
  start_time integer not null check (start_time between 0 and 86399),
  end_time integer not null check (end_time < 172800),
  day_of_week_mask integer not null check (day_of_week_mask between 1 and 127),
  timezone text not null default '${DEFAULT_ZONE}',
  last_unix_date integer,
  created_at timestamptz not null,
  unique (user_id, channel),
  check (end_time >= start_time)
);
create index user_daily_reminders_iteration on user_daily_reminders (timezone, start_time, uid);

create table user_daily_reminder_settings (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  channel text not null check (channel in ('push', 'sms', 'email')),
  day_of_week_mask integer not null check (day_of_week_mask between 0 and 127),
  time_range jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (user_id, channel)
);

create table daily_reminder_settings_log (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  channel text not null check (channel in ('push', 'sms', 'email')),
  day_of_week_mask integer not null,
  time_range jsonb not null,
  reason jsonb not null,
  created_at timestamptz not null
);
create index daily_reminder_settings_log_user on daily_reminder_settings_log (user_id, id);

create function follow_timezone_of_user() returns trigger language plpgsql as $$ begin
  update user_daily_reminders set timezone = coalesce(new.timezone, '${DEFAULT_ZONE}') where user_id = new.id; return null; end $$;
create trigger reminders_follow_timezone after update of timezone on users
  for each row when (old.timezone is distinct from new.timezone) execute function follow_timezone_of_user();
`,
  },
];

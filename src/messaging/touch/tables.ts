import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";
import type { DebugEvent, TouchChannel } from "./entries.ts";
import { DAILY_REMINDER, dailyReminderMessages, dailyReminderSchema } from "./installed.ts";
import type { Messages, SelectionStrategy } from "./point.ts";

type Timestamp = ColumnType<number, unknown, unknown>;
type Json<T> = ColumnType<T, string, string>;

export interface TouchTables {
  users: { id: number; sub: string };
  touch_points: {
    id: Generated<number>;
    uid: string;
    event_slug: string;
    event_schema: Json<Record<string, unknown>>;
    selection_strategy: SelectionStrategy;
    messages: Json<Messages>;
    created_at: Timestamp;
  };
  user_touch_point_states: {
    id: Generated<number>;
    uid: string;
    user_id: number;
    touch_point_id: number;
    channel: TouchChannel;
    state: Json<unknown>;
    version: number;
    created_at: Timestamp;
    updated_at: Timestamp;
  };
  user_touch_debug_log: {
    id: Generated<number>;
    uid: string;
    user_id: number;
    event: Json<DebugEvent>;
    created_at: Timestamp;
  };
  /** Requests to send touches that carried an idempotency key. */
  touch_requests: {
    id: Generated<number>;
    key: string;
    request_hash: string;
    /** The answer that a repeat gets; prepared before anything is queued. */
    response: Json<unknown> | null;
    prepared_at: Timestamp | null;
    sent: boolean;
    created_at: Timestamp;
  };
  /** One event for everybody on one channel. */
  touch_campaigns: {
    id: Generated<number>;
    uid: string;
    channel: TouchChannel;
    event_slug: string;
    event_parameters: Json<Record<string, unknown>>;
    state: "running" | "finished" | "stopped" | "failed";
    reason: string | null;
    /** Everybody up to here has been gone through. */
    after_sub: string;
    /** Where the page ends that is gone through now. */
    until_sub: string | null;
    told: number;
    created_at: Timestamp;
    ended_at: Timestamp | null;
  };
}

const literal = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'`;

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create touch points, states and the debug trail",
    up: `
create table touch_points (
  id bigint generated always as identity primary key,
  uid text not null unique,
  event_slug text not null unique,
  event_schema jsonb not null,
  selection_strategy text not null
    check (selection_strategy in ('random_with_replacement', 'fixed', 'ordered_resettable')),
  messages jsonb not null,
  created_at timestamptz not null
);
alter table user_touches add foreign key (touch_point_id) references touch_points (id) on delete set null;

create table user_touch_point_states (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  touch_point_id bigint not null references touch_points (id) on delete cascade,
  channel text not null check (channel in ('push', 'sms', 'email')),
  state jsonb not null,
  version integer not null check (version >= 1),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (user_id, touch_point_id, channel)
);
create index user_touch_point_states_point on user_touch_point_states (touch_point_id);

create table user_touch_debug_log (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  event jsonb not null,
  created_at timestamptz not null
);
create index user_touch_debug_log_user on user_touch_debug_log (user_id, created_at);

create table touch_requests (
  id bigint generated always as identity primary key,
  key text not null unique,
  request_hash text not null,
  response jsonb,
  created_at timestamptz not null
);
create index touch_requests_age on touch_requests (created_at);
`,
  },
  {
    number: 2,
    name: "install the touch point of daily reminders",
    up: `
insert into touch_points (uid, event_slug, event_schema, selection_strategy, messages, created_at)
values ('crl_tpo_daily_reminder', '${DAILY_REMINDER}', ${literal(dailyReminderSchema)}::jsonb, 'fixed',
  ${literal(dailyReminderMessages)}::jsonb, now());
`,
  },
  {
    number: 3,
    name: "tell requests that are prepared from those that were sent",
    up: `
alter table touch_requests add column prepared_at timestamptz, add column sent boolean not null default false;
update touch_requests set sent = true, prepared_at = created_at where response is not null;
`,
  },
  {
    number: 4,
    name: "create campaigns",
    up: `
create table touch_campaigns (
  id bigint generated always as identity primary key,
  uid text not null unique,
  channel text not null check (channel in ('push', 'sms', 'email')),
  event_slug text not null,
  event_parameters jsonb not null,
  state text not null check (state in ('running', 'finished', 'stopped', 'failed')),
  reason text,
  after_sub text not null,
  until_sub text,
  told integer not null,
  created_at timestamptz not null,
  ended_at timestamptz
);
create index touch_campaigns_running on touch_campaigns (id) where state = 'running';
`,
  },
];

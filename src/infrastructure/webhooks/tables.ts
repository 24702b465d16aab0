import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

type Timestamp = ColumnType<number, unknown, unknown>;
type NullableTimestamp = ColumnType<number | null, unknown, unknown>;

export const DISABLED_REASONS = ["admin", "gone", "failing"] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export const MESSAGE_STATUSES = ["pending", "delivered", "failed"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

export interface WebhookTables {
  webhook_endpoints: {
    id: Generated<number>;
    uid: string;
    url: string;
    description: string;
    types: string[];
    /** Which of the endpoint's secrets is the present one; the secrets themselves are in no table. */
    secret_number: number;
    /** Until when the secret before it signs too. */
    previous_secret_until: NullableTimestamp;
    /** Since when nothing was delivered although it was tried. */
    failing_since: NullableTimestamp;
    disabled_at: NullableTimestamp;
    disabled_reason: DisabledReason | null;
    created_at: Timestamp;
  };
  webhook_messages: {
    id: Generated<number>;
    uid: string;
    endpoint_id: number;
    type: string;
    user_sub: string | null;
    body: string;
    status: MessageStatus;
    attempts: number;
    /** When it may be tried; while a worker tries it, when others may assume that the worker is gone. */
    due_at: NullableTimestamp;
    last_attempt_at: NullableTimestamp;
    last_status: number | null;
    last_error: string | null;
    delivered_at: NullableTimestamp;
    created_at: Timestamp;
  };
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create webhook endpoints and messages",
    up: `
create table webhook_endpoints (
  id bigint generated always as identity primary key,
  uid text not null unique,
  url text not null,
  description text not null,
  types text[] not null,
  secret_number integer not null,
  previous_secret_until timestamptz,
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text check (disabled_reason in ('admin', 'gone', 'failing')),
  created_at timestamptz not null,
  check ((disabled_at is null) = (disabled_reason is null))
);

create table webhook_messages (
  id bigint generated always as identity primary key,
  uid text not null unique,
  endpoint_id bigint not null references webhook_endpoints (id) on delete cascade,
  type text not null,
  user_sub text,
  body text not null,
  status text not null check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null,
  due_at timestamptz,
  last_attempt_at timestamptz,
  last_status integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null,
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'delivered') = (delivered_at is not null))
);
create index webhook_messages_endpoint on webhook_messages (endpoint_id, id);
create index webhook_messages_due on webhook_messages (due_at) where status = 'pending';
create index webhook_messages_old on webhook_messages (created_at) where status <> 'pending';
create index webhook_messages_user on webhook_messages (user_sub) where user_sub is not null;
`,
  },
];

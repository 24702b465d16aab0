import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

export const CHANNELS = ["email", "phone", "push"] as const;
/** What touches call `sms` is reached by the contact method `phone`. */
export type Channel = (typeof CHANNELS)[number];

export const PLATFORMS = ["ios", "android", "generic"] as const;
export type Platform = (typeof PLATFORMS)[number];

/** From the weakest to the strongest: a stronger reason replaces a weaker one. */
export const EMAIL_REASONS = ["User", "Bounce", "Complaint", "Admin"] as const;
export type EmailReason = (typeof EMAIL_REASONS)[number];
/** `lists` blocks mail that belongs to a list; `all` blocks every mail. */
export const EMAIL_SCOPES = ["lists", "all"] as const;
export type EmailScope = (typeof EMAIL_SCOPES)[number];

export const PHONE_REASONS = ["Stop", "Unreachable", "User"] as const;
export type PhoneReason = (typeof PHONE_REASONS)[number];

export const LOG_ACTIONS = [
  "create_verified",
  "create_unverified",
  "delete",
  "verify",
  "enable_notifs",
  "disable_notifs",
] as const;
export type LogAction = (typeof LOG_ACTIONS)[number];

type Timestamp = ColumnType<number, unknown, unknown>;
type NullableTimestamp = ColumnType<number | null, unknown, unknown>;
type Json<T> = ColumnType<T, string, string>;

/** The three tables of addresses share these columns. */
interface Association {
  id: Generated<number>;
  uid: string;
  user_id: number;
  /** Belongs to this user's association; suppression belongs to the address. */
  receives_notifications: boolean;
  created_at: Timestamp;
}

export interface ContactTables {
  users: { id: number; sub: string };
  user_email_addresses: Association & { email: string; verified: boolean };
  user_phone_numbers: Association & { phone_number: string; verified: boolean };
  user_push_tokens: Association & {
    platform: Platform;
    token: string;
    updated_at: Timestamp;
    last_seen_at: Timestamp;
    /** When a provider last confirmed an arrival; never moves back. */
    last_confirmed_at: NullableTimestamp;
  };
  suppressed_emails: {
    id: Generated<number>;
    uid: string;
    email_address: string;
    reason: EmailReason;
    scope: EmailScope;
    note: string | null;
    created_at: Timestamp;
  };
  email_list_optouts: {
    id: Generated<number>;
    uid: string;
    email_address: string;
    list: string;
    created_at: Timestamp;
  };
  suppressed_phone_numbers: {
    id: Generated<number>;
    uid: string;
    phone_number: string;
    reason: PhoneReason;
    reason_details: Json<Record<string, unknown>>;
    created_at: Timestamp;
  };
  email_failures: {
    id: Generated<number>;
    uid: string;
    email_address: string;
    failure_type: "Bounce" | "Complaint";
    /** `Permanent/General`: type and subtype of a bounce, or the kind of a complaint. */
    failure_extra: string | null;
    message_id: string | null;
    created_at: Timestamp;
  };
  contact_method_log: {
    id: Generated<number>;
    uid: string;
    user_id: number;
    channel: Channel;
    identifier: string;
    action: LogAction;
    reason: Json<Record<string, unknown>>;
    created_at: Timestamp;
  };
  unsubscribed_emails_log: {
    id: Generated<number>;
    uid: string;
    link_code: string | null;
    email_uid: string | null;
    visitor_id: number | null;
    visitor_known: boolean;
    email_address: string;
    suppressed: boolean;
    created_at: Timestamp;
  };
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create contact methods and suppression",
    up: `
create table user_email_addresses (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  email text not null check (length(email) between 3 and 511),
  verified boolean not null,
  receives_notifications boolean not null,
  created_at timestamptz not null
);
create unique index user_email_addresses_of_user on user_email_addresses (user_id, lower(email));
create index user_email_addresses_by_email on user_email_addresses (lower(email));
create table user_phone_numbers (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  phone_number text not null check (phone_number ~ '^[+][1-9][0-9]{4,14}$'),
  verified boolean not null,
  receives_notifications boolean not null,
  created_at timestamptz not null,
  unique (user_id, phone_number)
);
create index user_phone_numbers_by_number on user_phone_numbers (phone_number);
create table user_push_tokens (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  platform text not null check (platform in ('ios', 'android', 'generic')),
  token text not null unique,
  receives_notifications boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_seen_at timestamptz not null,
  last_confirmed_at timestamptz
);
create index user_push_tokens_of_user on user_push_tokens (user_id, last_seen_at, id);
create table suppressed_emails (
  id bigint generated always as identity primary key,
  uid text not null unique,
  email_address text not null,
  reason text not null check (reason in ('Bounce', 'Complaint', 'User', 'Admin')),
  scope text not null default 'all' check (scope in ('all', 'lists')),
  note text,
  created_at timestamptz not null
);
create unique index suppressed_emails_by_address on suppressed_emails (lower(email_address));
create table suppressed_phone_numbers (
  id bigint generated always as identity primary key,
  uid text not null unique,
  phone_number text not null unique,
  reason text not null check (reason in ('Stop', 'Unreachable', 'User')),
  reason_details jsonb not null,
  created_at timestamptz not null
);
create table email_failures (
  id bigint generated always as identity primary key,
  uid text not null unique,
  email_address text not null,
  failure_type text not null check (failure_type in ('Bounce', 'Complaint')),
  failure_extra text,
  message_id text,
  created_at timestamptz not null
);
create index email_failures_by_address on email_failures (lower(email_address), created_at);
create unique index email_failures_once on email_failures (message_id, failure_type, lower(email_address))
  where message_id is not null;
create table contact_method_log (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  channel text not null check (channel in ('email', 'phone', 'push')),
  identifier text not null,
  action text not null check (action in
    ('create_verified', 'create_unverified', 'delete', 'verify', 'enable_notifs', 'disable_notifs')),
  reason jsonb not null,
  created_at timestamptz not null
);
create index contact_method_log_of_user on contact_method_log (user_id, id);
create table unsubscribed_emails_log (
  id bigint generated always as identity primary key,
  uid text not null unique,
  link_code text,
  email_uid text,
  visitor_id bigint,
  visitor_known boolean not null,
  email_address text not null,
  suppressed boolean not null,
  created_at timestamptz not null,
  check (link_code is not null or email_uid is not null)
);
create index unsubscribed_emails_log_by_visitor on unsubscribed_emails_log (visitor_id);
create index unsubscribed_emails_log_by_link on unsubscribed_emails_log (link_code);
`,
  },
  {
    number: 2,
    name: "let people leave single lists",
    up: `
create table email_list_optouts (
  id bigint generated always as identity primary key,
  uid text not null unique,
  email_address text not null,
  list text not null,
  created_at timestamptz not null
);
create unique index email_list_optouts_of_address on email_list_optouts (lower(email_address), list);
`,
  },
];

import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";
import type { TrackType } from "./entries.ts";

type Timestamp = ColumnType<number, unknown, unknown>;
type Json = ColumnType<Record<string, unknown>, string, string>;

export type TouchChannel = "push" | "sms" | "email";

export interface LinkTables {
  users: { id: number; sub: string };
  /** One row for each address that a touch arrived at. */
  user_touches: {
    id: Generated<number>;
    uid: string;
    /** The touch; its rows share it. */
    send_uid: string;
    user_id: number;
    channel: TouchChannel;
    touch_point_id: number | null;
    destination: string;
    message: Json;
    created_at: Timestamp;
  };
  user_touch_links: {
    id: Generated<number>;
    uid: string;
    /** The first row of its touch. */
    user_touch_id: number;
    code: string;
    page_identifier: string;
    page_extra: Json;
    preview_identifier: string;
    preview_extra: Json;
    created_at: Timestamp;
  };
  user_touch_link_clicks: {
    id: Generated<number>;
    uid: string;
    user_touch_link_id: number;
    track_type: TrackType;
    parent_id: number | null;
    user_id: number | null;
    visitor_id: number | null;
    /** Whether the reference was found when the row was made; it stays true when what it refers to is deleted. */
    parent_known: boolean;
    user_known: boolean;
    visitor_known: boolean;
    child_known: boolean;
    /** As the client said it: visitors may be looked up by it later. */
    visitor_uid: string | null;
    clicked_at: Timestamp;
    created_at: Timestamp;
  };
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create touches, links and clicks",
    up: `
create table user_touches (
  id bigint generated always as identity primary key,
  uid text not null unique,
  send_uid text not null,
  user_id bigint not null references users (id) on delete cascade,
  channel text not null check (channel in ('push', 'sms', 'email')),
  touch_point_id bigint,
  destination text not null,
  message jsonb not null,
  created_at timestamptz not null
);
create index user_touches_user on user_touches (user_id, created_at);
create index user_touches_touch_point on user_touches (touch_point_id);
create index user_touches_send on user_touches (send_uid, id);

create table user_touch_links (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_touch_id bigint not null references user_touches (id) on delete cascade,
  code text not null unique,
  page_identifier text not null,
  page_extra jsonb not null,
  preview_identifier text not null,
  preview_extra jsonb not null,
  created_at timestamptz not null
);
create index user_touch_links_touch on user_touch_links (user_touch_id);

create table user_touch_link_clicks (
  id bigint generated always as identity primary key,
  uid text not null unique,
  user_touch_link_id bigint not null references user_touch_links (id) on delete cascade,
  track_type text not null check (track_type in ('on_click', 'post_login')),
  parent_id bigint unique references user_touch_link_clicks (id) on delete set null,
  user_id bigint references users (id) on delete set null,
  visitor_id bigint,
  parent_known boolean not null,
  user_known boolean not null,
  visitor_known boolean not null,
  child_known boolean not null,
  visitor_uid text,
  clicked_at timestamptz not null,
  created_at timestamptz not null,
  check (track_type = 'post_login' or (parent_id is null and not parent_known))
);
create index user_touch_link_clicks_link on user_touch_link_clicks (user_touch_link_id);
create index user_touch_link_clicks_user on user_touch_link_clicks (user_id);
create index user_touch_link_clicks_visitor on user_touch_link_clicks (visitor_id);
`,
  },
  {
    number: 2,
    name: "index only clicks that have what is indexed",
    // Most clicks have neither parent nor user nor visitor, and each index that names them costs every click.
    up: `
alter table user_touch_link_clicks drop constraint user_touch_link_clicks_parent_id_key;
create unique index user_touch_link_clicks_parent on user_touch_link_clicks (parent_id) where parent_id is not null;
drop index user_touch_link_clicks_user;
create index user_touch_link_clicks_user on user_touch_link_clicks (user_id) where user_id is not null;
drop index user_touch_link_clicks_visitor;
create index user_touch_link_clicks_visitor on user_touch_link_clicks (visitor_id) where visitor_id is not null;
`,
  },
];

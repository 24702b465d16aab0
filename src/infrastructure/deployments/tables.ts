import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

type Time = ColumnType<number, unknown, unknown>;
type NullableTime = ColumnType<number | null, unknown, unknown>;

export type BuildState = "requested" | "building" | "ready" | "failed";

export interface BuildRow {
  id: Generated<number>;
  uid: string;
  repo: string;
  sha: string;
  /** When the commit was made; decides which of two builds is newer. */
  committed_at: Time;
  state: BuildState;
  /** Null for a build that is bundled with the code and lies nowhere else. */
  s3_file_id: number | null;
  size: number | null;
  sha256: string | null;
  error: string | null;
  created_at: Time;
  finished_at: NullableTime;
}

export type DeploymentEvent = "requested" | "waiting" | "updating" | "ready" | "lock_expired" | "build_failed";

export interface DeploymentEventRow {
  id: Generated<number>;
  repo: string;
  instance: string;
  token: string | null;
  event: DeploymentEvent;
  sha: string | null;
  created_at: Time;
}

/** As far as this room reads the files' table. */
interface StoredFileRow {
  id: Generated<number>;
  bucket: string;
  key: string;
}

export interface DeploymentTables {
  builds: BuildRow;
  deployment_events: DeploymentEventRow;
  s3_files: StoredFileRow;
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create builds and deployment events",
    up: `
create table builds (
  id bigint generated always as identity primary key,
  uid text not null unique,
  repo text not null,
  sha text not null,
  committed_at timestamptz not null,
  state text not null check (state in ('requested', 'building', 'ready', 'failed')),
  s3_file_id bigint references s3_files (id) on delete restrict,
  size bigint,
  sha256 text,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz,
  unique (repo, sha)
);
create index builds_s3_file on builds (s3_file_id);
create table deployment_events (
  id bigint generated always as identity primary key,
  repo text not null,
  instance text not null,
  token text,
  event text not null check (event in ('requested', 'waiting', 'updating', 'ready', 'lock_expired', 'build_failed')),
  sha text,
  created_at timestamptz not null
);
create index deployment_events_repo on deployment_events (repo, created_at);
`,
  },
];

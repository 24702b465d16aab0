import type { ColumnType, Generated } from "kysely";
import type { Migration } from "../../kernel/sql/index.ts";

type Timestamp = ColumnType<number, unknown, unknown>;
type NullableTimestamp = ColumnType<number | null, unknown, unknown>;
type Kwargs = ColumnType<Record<string, unknown>, string, string>;

export type UploadOutcome = "completed" | "expired" | "aborted";

/** A row means: all of the object is in the store. */
export interface S3FileRow {
  id: Generated<number>;
  /** `crl_s3f_…` */
  uid: string;
  bucket: string;
  key: string;
  file_size: number;
  content_type: string;
  created_at: Timestamp;
}

export interface S3FileUploadRow {
  id: Generated<number>;
  /** `crl_s3fu_…` */
  uid: string;
  success_job_name: string;
  success_job_kwargs: Kwargs;
  failure_job_name: string;
  failure_job_kwargs: Kwargs;
  /** Where watchers see the upload's and its job's progress. */
  job_uid: string | null;
  /** Null while parts are still accepted. */
  outcome: UploadOutcome | null;
  /** The one object that the parts were put together to, once they were. */
  stored_file_id: number | null;
  created_at: Timestamp;
  completed_at: NullableTimestamp;
  /** Null with an outcome: the job for that outcome may not have been queued yet. */
  job_enqueued_at: NullableTimestamp;
  expires_at: Timestamp;
}

export interface S3FileUploadPartRow {
  id: Generated<number>;
  s3_file_upload_id: number;
  /** `crl_s3fup_…` */
  uid: string;
  part_number: number;
  start_byte: number;
  end_byte: number;
  s3_file_id: number | null;
}

export interface FileTables {
  s3_files: S3FileRow;
  s3_file_uploads: S3FileUploadRow;
  s3_file_upload_parts: S3FileUploadPartRow;
}

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "create files and uploads",
    up: `
create table s3_files (
  id bigint generated always as identity primary key,
  uid text not null unique,
  bucket text not null,
  key text not null,
  file_size bigint not null check (file_size >= 0),
  content_type text not null,
  created_at timestamptz not null,
  unique (bucket, key)
);
create table s3_file_uploads (
  id bigint generated always as identity primary key,
  uid text not null unique,
  success_job_name text not null,
  success_job_kwargs jsonb not null,
  failure_job_name text not null,
  failure_job_kwargs jsonb not null,
  job_uid text,
  outcome text check (outcome in ('completed', 'expired', 'aborted')),
  stored_file_id bigint references s3_files (id) on delete restrict,
  created_at timestamptz not null,
  completed_at timestamptz,
  job_enqueued_at timestamptz,
  expires_at timestamptz not null,
  check ((outcome is null) = (completed_at is null))
);
create index s3_file_uploads_open on s3_file_uploads (expires_at) where completed_at is null;
create index s3_file_uploads_completed_at on s3_file_uploads (completed_at);
create index s3_file_uploads_stored_file on s3_file_uploads (stored_file_id);
create table s3_file_upload_parts (
  id bigint generated always as identity primary key,
  s3_file_upload_id bigint not null references s3_file_uploads (id) on delete cascade,
  uid text not null unique,
  part_number integer not null check (part_number >= 1),
  start_byte bigint not null check (start_byte >= 0),
  end_byte bigint not null check (end_byte > start_byte),
  s3_file_id bigint references s3_files (id) on delete restrict,
  unique (s3_file_upload_id, part_number)
);
create index s3_file_upload_parts_file on s3_file_upload_parts (s3_file_id);
`,
  },
];

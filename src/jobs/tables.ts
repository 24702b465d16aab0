import type { Generated } from "kysely";
import type { Migration } from "../kernel/sql/index.ts";

export interface JobTables {
  job_outbox: {
    id: Generated<number>;
    uid: string;
    raw: string;
    due_at: number | null;
    created_at: Generated<number>;
  };
}

export const jobMigrations: readonly Migration[] = [
  {
    number: 1,
    name: "create job_outbox",
    up: `
      create table job_outbox (
        id bigint generated always as identity primary key,
        uid text not null unique,
        raw text not null,
        due_at timestamptz,
        created_at timestamptz not null default now()
      );
    `,
  },
];

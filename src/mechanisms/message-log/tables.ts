import type { Migration } from "../../kernel/sql/index.ts";

export interface MessageLogTables {
  message_steps: {
    uid: string;
    at: number;
    step: string;
    channel: string;
    provider: string | null;
    detail: string | null;
    /** A keyed digest of whom the message is for, on its first step only. */
    address_digest: string | null;
  };
}

export const messageLogMigrations: readonly Migration[] = [
  {
    number: 1,
    name: "create message_steps",
    // No key: a row that is stored twice is told once, and keeping it unique would double the cost of every row. The block
    // range index is for pruning and costs next to nothing, because rows arrive nearly in the order of their times.
    up: `
create table message_steps (
  uid text not null,
  at timestamptz not null,
  step text not null,
  channel text not null,
  provider text,
  detail text,
  address_digest text
);
create index message_steps_by_uid on message_steps (uid);
create index message_steps_by_age on message_steps using brin (at);
create index message_steps_by_address on message_steps (address_digest, at) where address_digest is not null;
`,
  },
];

import type { Migration } from "../../kernel/sql/index.ts";

export interface SettingTables {
  mirrored_settings: {
    /** The name of the Redis key. */
    name: string;
    value: string;
    /** False from a change until Redis holds it too. */
    mirrored: boolean;
    updated_at: number;
  };
}

export const settingMigrations: readonly Migration[] = [
  {
    number: 1,
    name: "create mirrored_settings",
    up: `
create table mirrored_settings (
  name text primary key,
  value text not null,
  mirrored boolean not null,
  updated_at timestamptz not null
);
create index mirrored_settings_behind on mirrored_settings (name) where not mirrored;
`,
  },
];

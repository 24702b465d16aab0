import { sql as raw } from "kysely";
import type { Sql } from "./connection.ts";

/** One forward step of a domain's tables. Numbers start at 1 and have no gaps. */
export interface Migration {
  readonly number: number;
  /** What it does, in a few words: `create users`. */
  readonly name: string;
  /** The statements, run in one transaction together with the record of this step. */
  readonly up: string;
}

export interface DomainMigrations {
  readonly domain: string;
  readonly migrations: readonly Migration[];
}

export interface AppliedMigration {
  readonly domain: string;
  readonly number: number;
  readonly name: string;
}

const LEDGER = `create table if not exists carillon_migrations (
  domain text not null,
  number integer not null,
  name text not null,
  applied_at timestamptz not null default now(),
  primary key (domain, number)
)`;

/** Two processes that start at once must not both create the tables. The number is arbitrary and ours. */
const MIGRATION_LOCK = 7_236_450_118;

/** Fails at start when a domain's steps have a gap, repeat a number or are out of order. */
export function checkMigrations(plans: readonly DomainMigrations[]): void {
  for (const { domain, migrations } of plans)
    for (const [index, migration] of migrations.entries())
      if (migration.number !== index + 1)
        throw new TypeError(
          `migrations of ${domain}: step ${index + 1} has number ${migration.number}; numbers go 1, 2, 3 without gaps`,
        );
}

/** Applies what is missing, in the order of the floor plan, and says what it did. */
export async function migrate(sql: Sql, plans: readonly DomainMigrations[]): Promise<AppliedMigration[]> {
  checkMigrations(plans);
  await sql.script(LEDGER);
  return sql
    .tables<never>()
    .transaction()
    .execute(async (tx) => {
      await raw`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(tx);
      const { rows } = await raw<{ domain: string; number: number }>`
      select domain, number from carillon_migrations`.execute(tx);
      const known = new Set(rows.map((row) => `${row.domain} ${row.number}`));
      const applied: AppliedMigration[] = [];
      for (const { domain, migrations } of plans)
        for (const { number, name, up } of migrations) {
          if (known.has(`${domain} ${number}`)) continue;
          for (const statement of splitStatements(up)) await raw.raw(statement).execute(tx);
          await raw`insert into carillon_migrations (domain, number, name) values (${domain}, ${number}, ${name})`.execute(
            tx,
          );
          applied.push({ domain, number, name });
        }
      return applied;
    });
}

/** What would be applied now. */
export async function pendingMigrations(sql: Sql, plans: readonly DomainMigrations[]): Promise<AppliedMigration[]> {
  await sql.script(LEDGER);
  const { rows } = await raw<{ domain: string; number: number }>`
    select domain, number from carillon_migrations`.execute(sql.tables());
  const known = new Set(rows.map((row) => `${row.domain} ${row.number}`));
  return plans.flatMap(({ domain, migrations }) =>
    migrations
      .filter(({ number }) => !known.has(`${domain} ${number}`))
      .map(({ number, name }) => ({ domain, number, name })),
  );
}

/** Prepared statements hold one command each. Migrations have no function bodies, so a semicolon at a line's end ends one. */
function splitStatements(text: string): string[] {
  return text
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter(Boolean);
}

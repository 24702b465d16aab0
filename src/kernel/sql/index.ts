export { openSql, pingSql, type Sql, type SqlAddress } from "./connection.ts";
export {
  type AppliedMigration,
  checkMigrations,
  type DomainMigrations,
  type Migration,
  migrate,
  pendingMigrations,
} from "./migrations.ts";
export { parseTimestamp, timestamp } from "./time.ts";

import { readFileSync } from "node:fs";
import { openSql, type Sql } from "../../src/kernel/sql/index.ts";

/** A real, empty SQL engine of this test file's own, in memory. */
export function openTestSql(): Promise<Sql> {
  const path = process.env.CARILLON_TEST_SQL_SNAPSHOT;
  return openSql({ kind: "memory", snapshot: path ? new Blob([readFileSync(path)]) : undefined });
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openSql, type Sql } from "../../src/kernel/sql/index.ts";

/** A real SQL engine of this test's own, in memory: empty, or with the tables of every room. */
export function openTestSql(content: "empty" | "house" = "empty"): Promise<Sql> {
  const snapshots = process.env.CARILLON_TEST_SQL;
  if (snapshots === undefined) return openSql({ kind: "memory" });
  return openSql({ kind: "memory", snapshot: new Blob([readFileSync(join(snapshots, `${content}.tar`))]) });
}

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrationsOf } from "../../src/domain.ts";
import { domains } from "../../src/domains.ts";
import { findRedisServer } from "../../src/kernel/redis/index.ts";
import { migrate, openSql } from "../../src/kernel/sql/index.ts";

/**
 * Before any test: what all of them need. The SQL engine's first set-up takes seconds and the tables of all rooms as long
 * again, so both are made once, and every test begins with a copy.
 */
export default async function setup(): Promise<() => void> {
  if (!findRedisServer())
    throw new Error("The tests need redis-server or valkey-server on PATH; `npm test` installs it.");
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-sql-"));
  const sql = await openSql({ kind: "memory" });
  const keep = async (name: string) => {
    const snapshot = await sql.embedded!.dumpDataDir("none");
    writeFileSync(join(directory, name), Buffer.from(await snapshot.arrayBuffer()));
  };
  await keep("empty.tar");
  await migrate(sql, domains.flatMap(migrationsOf));
  await keep("house.tar");
  await sql.close();
  process.env.CARILLON_TEST_SQL = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}

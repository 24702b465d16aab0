import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { findRedisServer } from "../../src/kernel/redis/index.ts";

/** Before any test: what all of them need. The SQL engine's first set-up takes seconds, so it is made once and copied. */
export default async function setup(): Promise<() => void> {
  if (!findRedisServer())
    throw new Error("The tests need redis-server or valkey-server on PATH; `npm test` installs it.");
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-sql-"));
  const engine = await PGlite.create();
  const snapshot = await engine.dumpDataDir("none");
  await engine.close();
  process.env.CARILLON_TEST_SQL_SNAPSHOT = join(directory, "empty.tar");
  writeFileSync(process.env.CARILLON_TEST_SQL_SNAPSHOT, Buffer.from(await snapshot.arrayBuffer()));
  return () => rmSync(directory, { recursive: true, force: true });
}

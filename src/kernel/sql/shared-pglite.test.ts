import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql as raw } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { openTestSql } from "../../../test/harness/sql.ts";
import { openSql, type Sql } from "./index.ts";
import { type SharedPglite, sharedPgliteUrl, sharePglite } from "./shared-pglite.ts";

let directory: string;
let owner: Sql;
let shared: SharedPglite;
let guest: Sql;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "carillon-sql-"));
  owner = await openTestSql();
  shared = await sharePglite(owner, directory);
  guest = await openSql({ kind: "postgres", url: sharedPgliteUrl(directory) });
  await owner.script("create table notes (id bigint generated always as identity, body text, at timestamptz)");
});

afterAll(async () => {
  await guest.close();
  await shared.close();
  await owner.close();
  rmSync(directory, { recursive: true });
});

interface Notes {
  notes: { id: number; body: string; at: number | null };
}

const bodies = async (sql: Sql) =>
  (await raw<{ body: string }>`select body from notes order by id`.execute(sql.tables())).rows.map((row) => row.body);
const add = (sql: Sql, body: string) => raw`insert into notes (body) values (${body})`.execute(sql.tables());

test("a guest of the embedded database reads what the owner wrote, and the owner what the guest wrote", async () => {
  await add(owner, "owner");
  await add(guest, "guest");
  expect(await bodies(guest)).toEqual(["owner", "guest"]);
  expect(await bodies(owner)).toEqual(["owner", "guest"]);
  const { rows } = await raw<{ at: number; n: number }>`
    select to_timestamp(12.5) as at, 7::bigint as n`.execute(guest.tables());
  expect(rows).toEqual([{ at: 12.5, n: 7 }]);
});

test("nothing of others comes between the statements of a guest's transaction", async () => {
  await raw`delete from notes`.execute(owner.tables());
  const outside: Promise<unknown>[] = [];
  await guest
    .tables<Notes>()
    .transaction()
    .execute(async (tx) => {
      await raw`insert into notes (body) values ('first')`.execute(tx);
      outside.push(add(owner, "owner outside"), add(guest, "guest outside"));
      await raw`select pg_sleep(0.02)`.execute(tx);
      await raw`insert into notes (body) values ('second')`.execute(tx);
    });
  await Promise.all(outside);
  expect((await bodies(owner)).slice(0, 2)).toEqual(["first", "second"]);
  expect(await bodies(owner)).toHaveLength(4);
});

test("many guests at once each get their own answers", async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, async (_, n) => {
      const { rows } = await raw<{ n: number }>`select ${n}::int as n`.execute((n % 3 ? guest : owner).tables());
      return rows[0]?.n;
    }),
  );
  expect(answers).toEqual(Array.from({ length: 60 }, (_, n) => n));
});

test("a guest's faulty statement is its own error and nobody else's", async () => {
  await expect(raw`select nope`.execute(guest.tables())).rejects.toThrow(/column "nope" does not exist/);
  await expect(
    guest
      .tables<Notes>()
      .transaction()
      .execute(async (tx) => {
        await raw`insert into notes (body) values ('rolled back')`.execute(tx);
        await raw`select nope`.execute(tx);
      }),
  ).rejects.toThrow(/nope/);
  expect(await bodies(owner)).not.toContain("rolled back");
});

test("the open transaction of a guest that dies is rolled back, and the others go on", async () => {
  const dying = new pg.Client({ connectionString: sharedPgliteUrl(directory) });
  dying.on("error", () => {});
  await dying.connect();
  await dying.query("begin");
  await dying.query("insert into notes (body) values ('never')");
  const waiting = bodies(owner);
  (dying as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  expect(await waiting).not.toContain("never");
  await eventually(async () => (await bodies(guest)).length > 0, "the session is free again");
});

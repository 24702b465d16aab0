import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgres, startPostgres } from "../../../test/harness/postgres.ts";
import { openTestSql } from "../../../test/harness/sql.ts";
import { openSql, pingSql, type Sql } from "./connection.ts";
import { type DomainMigrations, migrate, pendingMigrations } from "./migrations.ts";
import { parseTimestamp, timestamp } from "./time.ts";

interface Tables {
  things: { id: number; name: string; at: number | null; day: string | null; data: unknown };
}

const plan: readonly DomainMigrations[] = [
  {
    domain: "things",
    migrations: [
      {
        number: 1,
        name: "create things",
        up: `
          create table things (
            id bigint generated always as identity primary key,
            name text not null unique,
            at timestamptz,
            day date,
            data jsonb
          );
          create index things_at on things (at);
        `,
      },
      { number: 2, name: "forbid empty names", up: "alter table things add check (name <> '');" },
    ],
  },
];

/** Both engines must look the same to everything above: the same suite runs on each. */
const bin = findPostgres();
const engines: { name: string; open(): Promise<{ sql: Sql; close(): Promise<void> }> }[] = [
  {
    name: "PGlite",
    async open() {
      const engine = await openTestSql();
      return { sql: engine, close: () => engine.close() };
    },
  },
];
if (bin)
  engines.push({
    name: "Postgres",
    async open() {
      const server = await startPostgres(bin);
      const engine = await openSql({ kind: "postgres", url: server.url });
      return {
        sql: engine,
        close: async () => {
          await engine.close();
          await server.stop();
        },
      };
    },
  });

for (const engine of engines)
  describe(engine.name, () => {
    let opened: { sql: Sql; close(): Promise<void> };
    const db = () => opened.sql.tables<Tables>();
    beforeAll(async () => {
      opened = await engine.open();
    });
    afterAll(() => opened.close());

    test(`${engine.name}: migrations run once, in order, and say what they did`, async () => {
      await pingSql(opened.sql);
      expect(await pendingMigrations(opened.sql, plan)).toHaveLength(2);
      expect((await migrate(opened.sql, plan)).map(({ number }) => number)).toEqual([1, 2]);
      expect(await migrate(opened.sql, plan)).toEqual([]);
      expect(await pendingMigrations(opened.sql, plan)).toEqual([]);
    });

    test(`${engine.name}: a step that fails leaves nothing of itself or of the steps beside it`, async () => {
      const broken = { number: 2, name: "break", up: "create table half (id int);\nselect no_such_function();" };
      const first = { number: 1, name: "create other", up: "create table other (id int);" };
      await expect(migrate(opened.sql, [{ domain: "broken", migrations: [first, broken] }])).rejects.toThrow();
      const { rows } = await sql<{ found: string | null }>`select to_regclass('other')::text as found`.execute(db());
      expect(rows[0]?.found).toBeNull();
    });

    test(`${engine.name}: times are unix seconds with microseconds, ids numbers, days texts, json values`, async () => {
      const at = 1772964000.123456;
      const row = await db()
        .insertInto("things")
        .values({ name: "a", at: timestamp(at), day: "2026-03-08", data: JSON.stringify({ n: [1] }) } as never)
        .returningAll()
        .executeTakeFirstOrThrow();
      expect(row).toMatchObject({ name: "a", at, day: "2026-03-08", data: { n: [1] } });
      expect(typeof row.id).toBe("number");
      const count = await db()
        .selectFrom("things")
        .select(({ fn }) => fn.countAll().as("n"))
        .executeTakeFirst();
      expect(count?.n).toBe(1);
    });

    test(`${engine.name}: a bulk insert tells each row's fate`, async () => {
      const names = ["a", "b", "c"];
      const { rows } = await sql<{ name: string }>`
        insert into things (name) select unnest(${names}::text[]) on conflict (name) do nothing returning name`.execute(
        db(),
      );
      expect(rows.map(({ name }) => name)).toEqual(["b", "c"]);
    });

    test(`${engine.name}: a transaction that throws leaves nothing, and those beside it go on`, async () => {
      const add = (name: string, fails: boolean) =>
        db()
          .transaction()
          .execute(async (tx) => {
            await tx
              .insertInto("things")
              .values({ name } as never)
              .execute();
            if (fails) throw new Error("rolled back");
          });
      const results = await Promise.allSettled([add("x", true), add("y", false), add("z", true)]);
      expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
      const rows = await db().selectFrom("things").select("name").where("name", "in", ["x", "y", "z"]).execute();
      expect(rows).toEqual([{ name: "y" }]);
    });
  });

test("a gap or a repeated number in a domain's migrations stops the start", async () => {
  const step = (number: number) => ({ number, name: "step", up: "select 1" });
  const engine = await openTestSql();
  for (const numbers of [[2], [1, 3], [1, 1], [2, 1]])
    await expect(migrate(engine, [{ domain: "gap", migrations: numbers.map(step) }])).rejects.toThrow("without gaps");
  await engine.close();
});

test("timestamps are read in every form that Postgres writes", () => {
  expect(parseTimestamp("2026-03-08 10:00:00+00")).toBe(1772964000);
  expect(parseTimestamp("2026-03-08 10:00:00.5+00")).toBe(1772964000.5);
  expect(parseTimestamp("2026-03-08 15:30:00+05:30")).toBe(1772964000);
  expect(parseTimestamp("2026-03-08 06:30:00-03:30")).toBe(1772964000);
  expect(parseTimestamp("1969-12-31 23:59:59.999999+00")).toBeCloseTo(-0.000001, 7);
});

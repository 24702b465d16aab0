import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openSql, type Sql } from "../../src/kernel/sql/index.ts";

type Content = "empty" | "house";

const snapshotOf = (content: Content) => {
  const snapshots = process.env.CARILLON_TEST_SQL;
  return snapshots === undefined ? undefined : join(snapshots, `${content}.tar`);
};

/** A real SQL engine of this test's own, in memory: empty, or with the tables of every room as the migrations leave them. */
export async function openTestSql(content: Content = "empty"): Promise<Sql> {
  if (content === "empty") return openFresh("empty");
  const loan = idle.pop() ?? (await Loan.begin(await openFresh("house")));
  let isOver = false;
  const lent = () => {
    if (isOver) throw new Error("this test has given its SQL engine back");
    return loan.sql;
  };
  return {
    ...loan.sql,
    tables: () => lent().tables(),
    script: (text) => lent().script(text),
    close: async () => {
      if (isOver) return;
      isOver = true;
      await loan.end();
    },
  };
}

function openFresh(content: Content): Promise<Sql> {
  const snapshot = snapshotOf(content);
  if (snapshot === undefined) return openSql({ kind: "memory" });
  return openSql({ kind: "memory", snapshot: new Blob([readFileSync(snapshot)]) });
}

/** Puts a database with the tables of every room where an installation will look for its own. */
export function furnishDatabase(directory: string): void {
  const snapshot = snapshotOf("house");
  if (snapshot === undefined) return;
  mkdirSync(directory, { recursive: true });
  execFileSync("tar", ["-xf", snapshot, "-C", directory], { stdio: "ignore" });
}

/**
 * Beginning an engine takes longer than most tests. Test files of a process come one after the other, so one engine serves
 * them all: it is lent out, and given back with the rows that it had in the beginning.
 */
const idle: Loan[] = [];

interface Beginning {
  /** Tables, columns and all else that a test might change besides rows, in one fingerprint. */
  readonly shape: string;
  readonly rows: readonly { readonly table: string; readonly columns: string; readonly rows: string }[];
  readonly sequences: readonly { readonly name: string; readonly last: string | null }[];
}

class Loan {
  readonly sql: Sql;
  readonly #beginning: Beginning;

  private constructor(sql: Sql, beginning: Beginning) {
    this.sql = sql;
    this.#beginning = beginning;
  }

  static async begin(sql: Sql): Promise<Loan> {
    return new Loan(sql, { shape: await shapeOf(sql), rows: await rowsOf(sql), sequences: await sequencesOf(sql) });
  }

  async end(): Promise<void> {
    if (await this.#restore().catch(() => false)) idle.push(this);
    else await this.sql.close();
  }

  async #restore(): Promise<boolean> {
    const engine = this.sql.embedded!;
    const { shape, rows, sequences } = this.#beginning;
    await engine.exec("discard all");
    if ((await shapeOf(this.sql)) !== shape) return false;
    await engine.exec(EMPTY_ALL);
    await engine.exec("set session_replication_role = replica");
    for (const { table, columns, rows: kept } of rows)
      await engine.query(
        `insert into ${table} (${columns}) overriding system value
         select ${columns} from jsonb_populate_recordset(null::${table}, $1)`,
        [JSON.parse(kept)],
      );
    await engine.exec("set session_replication_role = default");
    for (const { name, last } of sequences)
      await engine.query(last === null ? "select setval($1, 1, false)" : "select setval($1, $2)", [
        name,
        ...(last === null ? [] : [last]),
      ]);
    return true;
  }
}

const EMPTY_ALL = `do $$
declare
  one text;
  filled text[] := '{}';
  is_filled boolean;
begin
  for one in select format('%I', tablename) from pg_tables where schemaname = 'public' loop
    execute 'select exists (select from ' || one || ')' into is_filled;
    if is_filled then filled := filled || one; end if;
  end loop;
  if cardinality(filled) > 0 then execute 'truncate ' || array_to_string(filled, ', ') || ' cascade'; end if;
end $$`;

async function shapeOf(sql: Sql): Promise<string> {
  const { rows } = await sql.embedded!.query<{ shape: string }>(`
    select md5(string_agg(what, ',' order by what)) as shape from (
      select 'column ' || attrelid::regclass || attnum || attname || atttypid as what
        from pg_attribute join pg_class on pg_class.oid = attrelid where relnamespace = 'public'::regnamespace
      union all select 'constraint ' || conname || pg_get_constraintdef(oid) from pg_constraint
        where connamespace = 'public'::regnamespace
      union all select 'trigger ' || tgname || tgrelid::regclass from pg_trigger where not tgisinternal
      union all select 'function ' || oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace
      union all select 'schema ' || nspname from pg_namespace where nspname !~ '^pg_'
    ) as parts`);
  return rows[0]!.shape;
}

async function rowsOf(sql: Sql): Promise<Beginning["rows"]> {
  const engine = sql.embedded!;
  const { rows: tables } = await engine.query<{ name: string; columns: string }>(`
    select format('%I', table_name) as name,
      string_agg(format('%I', column_name), ', ' order by ordinal_position) as columns
    from information_schema.columns join information_schema.tables using (table_schema, table_name)
    where table_schema = 'public' and table_type = 'BASE TABLE' and is_generated = 'NEVER' group by table_name`);
  const all = tables.map(
    ({ name, columns }) => `select '${name}' as name, '${columns.replaceAll("'", "''")}' as columns,
    jsonb_agg(to_jsonb(one))::text as rows from ${name} as one`,
  );
  const { rows } = await engine.query<{ name: string; columns: string; rows: string | null }>(all.join(" union all "));
  return rows.flatMap(({ name, columns, rows: kept }) => (kept === null ? [] : [{ table: name, columns, rows: kept }]));
}

async function sequencesOf(sql: Sql): Promise<Beginning["sequences"]> {
  const { rows } = await sql.embedded!.query<{ name: string; last: string | null }>(
    "select format('%I.%I', schemaname, sequencename) as name, last_value::text as last from pg_sequences",
  );
  return rows;
}

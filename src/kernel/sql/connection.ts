import { PGlite, types as pgliteTypes } from "@electric-sql/pglite";
import { Kysely, PostgresDialect, sql as raw } from "kysely";
import pg from "pg";
import { parseTimestamp } from "./time.ts";

export type SqlAddress =
  /** A server that speaks Postgres. */
  | { readonly kind: "postgres"; readonly url: string; readonly maxConnections?: number }
  /** The embedded engine with its data in a folder. */
  | { readonly kind: "pglite"; readonly directory: string }
  /** The embedded engine without a trace on disk, for tests; a snapshot of an empty one spares its first set-up. */
  | { readonly kind: "memory"; readonly snapshot?: Blob };

const TIMESTAMPTZ = pgliteTypes.TIMESTAMPTZ;
const DATE = pgliteTypes.DATE;
const INT8 = pgliteTypes.INT8;
const NUMERIC = pgliteTypes.NUMERIC;

/** Both engines give the same JavaScript values: times as unix seconds, dates as ISO text, 64-bit ids as numbers. */
const parsers: Record<number, (text: string) => unknown> = {
  [TIMESTAMPTZ]: parseTimestamp,
  [DATE]: (text) => text,
  [INT8]: Number,
  [NUMERIC]: Number,
};

export interface Sql {
  readonly engine: "postgres" | "pglite";
  /** The query builder, seeing the tables of the asking domain. */
  tables<Tables>(): Kysely<Tables>;
  /** Several statements without parameters at once, as migrations need them. */
  script(text: string): Promise<void>;
  /** The engine itself where it runs inside this process, for `sharePglite`. Use it only while holding a connection. */
  readonly embedded?: PGlite;
  close(): Promise<void>;
}

export async function openSql(address: SqlAddress): Promise<Sql> {
  return address.kind === "postgres" ? openPostgres(address) : openPglite(address);
}

function openPostgres(address: SqlAddress & { kind: "postgres" }): Sql {
  const pool = new pg.Pool({
    connectionString: address.url,
    max: address.maxConnections ?? 10,
    connectionTimeoutMillis: 10_000,
    types: {
      getTypeParser: (oid: number, format?: "text" | "binary") => parsers[oid] ?? pg.types.getTypeParser(oid, format),
    },
  } as pg.PoolConfig);
  // An idle connection that the server closes must not end the process; the next query opens another.
  pool.on("error", () => {});
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  return {
    engine: "postgres",
    tables: <Tables>() => kysely as Kysely<Tables>,
    script: async (text) => void (await pool.query(text)),
    close: () => kysely.destroy(),
  };
}

async function openPglite(address: SqlAddress & { kind: "pglite" | "memory" }): Promise<Sql> {
  const engine = await PGlite.create({
    dataDir: address.kind === "pglite" ? address.directory : undefined,
    loadDataDir: address.kind === "memory" ? address.snapshot : undefined,
    parsers,
  });
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: singleConnectionPool(engine) }) });
  return {
    engine: "pglite",
    embedded: engine,
    tables: <Tables>() => kysely as Kysely<Tables>,
    script: async (text) => void (await engine.exec(text)),
    close: async () => {
      await kysely.destroy();
      await engine.close();
    },
  };
}

/**
 * The embedded engine has one session. It is lent out like a pool of one connection, so that a transaction has it alone
 * and others wait their turn in order.
 */
function singleConnectionPool(engine: PGlite) {
  let turn: Promise<void> = Promise.resolve();
  return {
    async connect() {
      const previous = turn;
      let release!: () => void;
      turn = new Promise((resolve) => {
        release = resolve;
      });
      await previous;
      return {
        async query(text: string, parameters: readonly unknown[]) {
          const result = await engine.query(text, [...parameters]);
          const command = /^\s*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? "";
          const rowCount = command === "SELECT" ? result.rows.length : (result.affectedRows ?? 0);
          return { command, rowCount, rows: result.rows };
        },
        release,
      };
    },
    async end() {},
  } as unknown as ConstructorParameters<typeof PostgresDialect>[0]["pool"];
}

export async function pingSql(sql: Sql): Promise<void> {
  await raw`select 1`.execute(sql.tables());
}

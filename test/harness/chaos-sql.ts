import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from "kysely";
import type { Sql } from "../../src/kernel/sql/index.ts";
import type { Death } from "./chaos.ts";

class ConnectionTerminated extends Error {
  override readonly name = "ConnectionTerminated";
}

/**
 * The database as a process sees it that dies at its Nth statement, transaction boundaries included: the server never
 * gets the statement, or does it and the answer is lost. From then on nothing gets through, and a transaction that was
 * open is rolled back, as a server does when its client is gone.
 */
export class MortalSql implements Sql {
  readonly engine: Sql["engine"];
  sent = 0;
  dead = false;
  /** The beginning of the statement it died at. */
  diedAt: string | undefined;
  readonly #inner: Sql;
  readonly #kysely: Kysely<unknown>;
  readonly #options: { dieAt?: number; death?: Death };

  constructor(inner: Sql, options: { dieAt?: number; death?: Death } = {}) {
    this.engine = inner.engine;
    this.#inner = inner;
    this.#options = options;
    this.#kysely = new Kysely<unknown>({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => new MortalDriver(inner.tables<unknown>(), this),
        createIntrospector: (database) => new PostgresIntrospector(database),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    });
  }

  tables<Tables>(): Kysely<Tables> {
    return this.#kysely as unknown as Kysely<Tables>;
  }

  async script(text: string): Promise<void> {
    await this.pass(text, () => this.#inner.script(text));
  }

  async close(): Promise<void> {}

  /** Lets one statement through, unless this is where the process dies. */
  async pass<T>(statement: string, run: () => Promise<T>): Promise<T> {
    if (this.dead) throw new ConnectionTerminated("the connection is gone");
    this.sent += 1;
    if (this.#options.dieAt !== this.sent) return run();
    this.dead = true;
    this.diedAt = statement.trim().slice(0, 60);
    if (this.#options.death === "after") await run();
    throw new ConnectionTerminated("the connection is gone");
  }
}

interface Lent extends DatabaseConnection {
  readonly inner: DatabaseConnection;
  inTransaction: boolean;
  release(): void;
}

class MortalDriver implements Driver {
  readonly #database: Kysely<unknown>;
  readonly #life: MortalSql;

  constructor(database: Kysely<unknown>, life: MortalSql) {
    this.#database = database;
    this.#life = life;
  }

  async init(): Promise<void> {}
  async destroy(): Promise<void> {}

  acquireConnection(): Promise<Lent> {
    return new Promise((resolve, reject) => {
      this.#database
        .getExecutor()
        .provideConnection(
          (inner) =>
            new Promise<void>((release) => {
              const life = this.#life;
              resolve({
                inner,
                inTransaction: false,
                release,
                executeQuery: <R>(query: CompiledQuery): Promise<QueryResult<R>> =>
                  life.pass(query.sql, () => inner.executeQuery<R>(query)),
                // biome-ignore lint/correctness/useYield: nothing in the house streams rows
                async *streamQuery() {
                  throw new Error("streaming is not part of this harness");
                },
              });
            }),
        )
        .catch(reject);
    });
  }

  async beginTransaction(connection: Lent): Promise<void> {
    connection.inTransaction = true;
    await this.#boundary(connection, "begin");
  }

  async commitTransaction(connection: Lent): Promise<void> {
    await this.#boundary(connection, "commit");
    connection.inTransaction = false;
  }

  async rollbackTransaction(connection: Lent): Promise<void> {
    if (this.#life.dead) return;
    await connection.inner.executeQuery(CompiledQuery.raw("rollback"));
    connection.inTransaction = false;
  }

  async releaseConnection(connection: Lent): Promise<void> {
    if (connection.inTransaction) await connection.inner.executeQuery(CompiledQuery.raw("rollback"));
    connection.release();
  }

  async #boundary(connection: Lent, statement: "begin" | "commit"): Promise<void> {
    await this.#life.pass(statement, () => connection.inner.executeQuery(CompiledQuery.raw(statement)));
  }
}

/**
 * Runs `life` once to count its statements, then once per statement and kind of death; after each death `afterlife`
 * checks that a fresh process recovers. Returns how many deaths were tried.
 */
export async function dieAtEveryStatement(
  sql: Sql,
  plan: {
    prepare(): Promise<void>;
    life(sql: MortalSql): Promise<void>;
    afterlife(death: { at: number; kind: Death; statement: string }): Promise<void>;
  },
): Promise<number> {
  await plan.prepare();
  const whole = new MortalSql(sql);
  await plan.life(whole);
  let deaths = 0;
  for (let at = 1; at <= whole.sent; at++)
    for (const kind of ["before", "after"] as const) {
      await plan.prepare();
      const mortal = new MortalSql(sql, { dieAt: at, death: kind });
      await plan.life(mortal).catch(() => {});
      if (!mortal.dead) continue;
      deaths += 1;
      await plan.afterlife({ at, kind, statement: mortal.diedAt ?? "" });
    }
  if (deaths === 0) throw new Error("the life sent no statement at which it could die");
  return deaths;
}

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { settings as accessSettings } from "../infrastructure/access/settings.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Config, withoutSecrets } from "../kernel/config.ts";
import { defineErrors } from "../kernel/errors.ts";
import { type Log, openLog } from "../kernel/log.ts";
import { claimPidFile, liveInstances, pidFileHolder } from "../kernel/process/index.ts";
import {
  findRedisServer,
  openRedis,
  type RedisAddress,
  type RedisConnection,
  startRedisServer,
} from "../kernel/redis/index.ts";
import { openSql, pingSql, type Sql } from "../kernel/sql/index.ts";
import { sharedPgliteUrl, sharePglite } from "../kernel/sql/shared-pglite.ts";
import { houseSettings, redisAddress } from "./settings.ts";

/** What a process stands on: the data folder, Redis and SQL, each with how to give it back. */
export const foundationErrors = defineErrors({
  redis_missing: {
    status: 503,
    doc: "There is no redis-server or valkey-server on PATH to run.",
    hint: "Install Redis 7 or Valkey, or set REDIS_URL to a Redis that runs elsewhere.",
  },
  redis_unreachable: {
    status: 503,
    doc: "Redis does not answer.",
    hint: "Start it, or correct REDIS_URL. Without REDIS_URL Carillon runs a Redis of its own.",
  },
  redis_too_old: {
    status: 503,
    doc: "This Redis is older than 7.0.",
    hint: "Upgrade it, or point REDIS_URL to a newer one.",
  },
  sql_unreachable: {
    status: 503,
    doc: "The database does not answer.",
    hint: "Start it, or correct DATABASE_URL. Without DATABASE_URL Carillon runs an embedded database.",
  },
  data_folder_unusable: {
    status: 503,
    doc: "The data folder cannot be used.",
    hint: "Give this user write access to it, or set CARILLON_DATA_DIR to another folder.",
  },
});

/** A Redis that starts together with this process gets this long, in seconds. */
const REDIS_PATIENCE = 8;
const SQL_PATIENCE = 10;
/** The system's limit for the path of a unix socket is 107 bytes, and the longest name below the folder needs 20. */
const LONGEST_DATA_DIR = 85;

/** The folders below the data folder. */
export function dataFolders(config: Config) {
  const root = resolve(config.get(houseSettings.dataDir));
  return {
    root,
    redis: join(root, "redis"),
    sql: join(root, "sql"),
    /** Where the owner of the embedded database listens, and says who it is. */
    sqlSocket: root,
    sqlOwner: join(root, "sql-owner.pid"),
    instances: join(root, "instances"),
    cache: join(root, "cache"),
  };
}

export function prepareDataFolder(config: Config): void {
  const { root, instances } = dataFolders(config);
  if (Buffer.byteLength(root) > LONGEST_DATA_DIR)
    throw foundationErrors.data_folder_unusable({
      message: `The path of the data folder is too long for the sockets in it (more than ${LONGEST_DATA_DIR} bytes): ${root}`,
    });
  try {
    mkdirSync(instances, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw foundationErrors.data_folder_unusable({
      message: `The data folder ${root} cannot be made: ${(error as Error).message}`,
      cause: error,
    });
  }
}

export interface OpenedRedis {
  readonly connection: RedisConnection;
  readonly address: RedisAddress;
  readonly version: string;
  /** For people: `managed by Carillon under …`, or the address without its password. */
  readonly description: string;
  /** Ends the connection, and the managed server when no other process of this machine uses it. */
  close(): Promise<void>;
}

/** Redis as the settings say: the one at REDIS_URL, or a server of our own below the data folder. */
export async function openStateRedis(config: Config, clock: Clock, patience = REDIS_PATIENCE): Promise<OpenedRedis> {
  const url = config.get(houseSettings.redisUrl);
  if (url !== undefined) {
    const address = redisAddress(url);
    const { connection, version } = await connectRedis(address, withoutSecrets(url), clock, patience);
    return { connection, address, version, description: withoutSecrets(url), close: () => connection.close() };
  }
  const folders = dataFolders(config);
  if (!findRedisServer()) throw foundationErrors.redis_missing();
  const server = await startRedisServer({
    directory: folders.redis,
    persistence: config.get(houseSettings.redisFsync),
  });
  const address: RedisAddress = { kind: "socket", path: server.socketPath };
  const { connection, version } = await connectRedis(address, server.socketPath, clock, patience);
  return {
    connection,
    address,
    version,
    description: `managed by Carillon, ${server.socketPath}`,
    async close() {
      await connection.close();
      // Whoever leaves last turns off the light, also when another process had turned it on.
      if (liveInstances(folders.instances) === 0) await server.stop();
    },
  };
}

export function openCacheRedis(
  config: Config,
  state: OpenedRedis,
  clock: Clock,
): Promise<RedisConnection> | RedisConnection {
  const url = config.get(houseSettings.cacheRedisUrl);
  if (url === undefined) return state.connection;
  return connectRedis(redisAddress(url), withoutSecrets(url), clock, REDIS_PATIENCE).then(
    ({ connection }) => connection,
  );
}

async function connectRedis(address: RedisAddress, shown: string, clock: Clock, patience: number) {
  const connection = openRedis(address, { clock, connectionName: "carillon" });
  let reason = "";
  connection.commands.on("error", (error: Error) => {
    reason = error.message || String((error as NodeJS.ErrnoException).code ?? error.name);
  });
  const answered = await firstOf(clock, patience, connection.commands.info("server"));
  if (!answered.ok) {
    await connection.close();
    const why = reason || answered.reason;
    throw foundationErrors.redis_unreachable({ message: `Redis at ${shown} does not answer: ${why}` });
  }
  const version = /^redis_version:(\S+)/m.exec(answered.value)?.[1] ?? "unknown";
  if (Number(version.split(".")[0]) < 7) {
    await connection.close();
    throw foundationErrors.redis_too_old({ message: `Redis at ${shown} is version ${version}; Carillon needs 7.0.` });
  }
  return { connection, version };
}

export interface OpenedSql {
  readonly sql: Sql;
  readonly description: string;
  /** The process that has the embedded database open, when it is not this one. */
  readonly owner?: number;
  close(): Promise<void>;
}

/**
 * SQL as the settings say: Postgres at DATABASE_URL, or the embedded database below the data folder. The first process
 * that comes owns the embedded database and lends it to those that come later.
 */
export async function openDatabase(config: Config, clock: Clock): Promise<OpenedSql> {
  const url = config.get(houseSettings.databaseUrl);
  const maxConnections = config.get(houseSettings.databaseConnections);
  if (url !== undefined) {
    const sql = await openSql({ kind: "postgres", url, maxConnections });
    await reachable(sql, withoutSecrets(url), clock, 0);
    return { sql, description: withoutSecrets(url), close: () => sql.close() };
  }
  const folders = dataFolders(config);
  const ownership = claimPidFile(folders.sqlOwner);
  if (!ownership) {
    const owner = pidFileHolder(folders.sqlOwner);
    const sql = await openSql({ kind: "postgres", url: sharedPgliteUrl(folders.sqlSocket), maxConnections: 2 });
    await reachable(sql, `the embedded database of process ${owner}`, clock, SQL_PATIENCE);
    return { sql, owner, description: `embedded, opened by process ${owner}`, close: () => sql.close() };
  }
  try {
    mkdirSync(folders.sql, { recursive: true, mode: 0o700 });
    const sql = await openSql({ kind: "pglite", directory: folders.sql });
    const shared = await sharePglite(sql, folders.sqlSocket);
    return {
      sql,
      description: `embedded, ${folders.sql}`,
      async close() {
        await shared.close();
        await sql.close();
        ownership.release();
      },
    };
  } catch (error) {
    ownership.release();
    throw error;
  }
}

/** The owner of the embedded database may have only just begun: `patience` says how long to knock. */
async function reachable(sql: Sql, shown: string, clock: Clock, patience: number): Promise<void> {
  const deadline = clock.monotonic() + patience;
  for (;;)
    try {
      return await pingSql(sql);
    } catch (error) {
      if (clock.monotonic() < deadline) {
        await clock.sleep(0.1);
        continue;
      }
      await sql.close();
      const why = (error as Error).message || String((error as NodeJS.ErrnoException).code);
      throw foundationErrors.sql_unreachable({
        message: `The database at ${shown} does not answer: ${why}`,
        cause: error,
      });
    }
}

export function openHouseLog(config: Config, options: { terminal: boolean }): Log {
  const format = config.get(houseSettings.logFormat);
  const development = config.get(accessSettings.environment) === "development";
  const pretty = format === "pretty" || (format === "auto" && options.terminal && development && prettyIsInstalled());
  return openLog({ level: config.get(houseSettings.logLevel), pretty });
}

/** The pretty form needs a package that an installation for production leaves out. */
function prettyIsInstalled(): boolean {
  try {
    import.meta.resolve("pino-pretty");
    return true;
  } catch {
    return false;
  }
}

type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

async function firstOf<T>(clock: Clock, seconds: number, work: Promise<T>): Promise<Answer<T>> {
  const done = new AbortController();
  const answer = work.then(
    (value): Answer<T> => ({ ok: true, value }),
    (error: Error): Answer<T> => ({ ok: false, reason: error.message }),
  );
  const late = clock.sleep(seconds, done.signal).then(
    (): Answer<T> => ({
      ok: false,
      reason: `no answer within ${seconds} seconds`,
    }),
  );
  try {
    return await Promise.race([answer, late]);
  } finally {
    done.abort();
  }
}

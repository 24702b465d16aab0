import { accessSync, constants, existsSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { Command } from "commander";
import { type Clock, systemClock } from "../../kernel/clock.ts";
import type { Config } from "../../kernel/config.ts";
import { CarillonError } from "../../kernel/errors.ts";
import { liveInstances, reserveInstance } from "../../kernel/process/index.ts";
import { pendingMigrations } from "../../kernel/sql/index.ts";
import { statisticsSettings } from "../../mechanisms/dated-counters/index.ts";
import { dataFolders, type OpenedRedis, openDatabase, openStateRedis, prepareDataFolder } from "../foundation.ts";
import { migrationPlan } from "../house.ts";
import { settings as httpSettings } from "../http/settings.ts";
import { houseSettings, loadSettings } from "../settings.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";

export interface Finding {
  readonly state: "ok" | "warn" | "fail";
  readonly what: string;
  readonly text: string;
  /** What to do; for everything that is not ok. */
  readonly fix?: string;
}

const LEAST_NODE = [20, 19] as const;
/** Whoever asks the doctor wants the answer soon. */
const PATIENCE = 2;
const SKEW_WARNING = 2;
const SKEW_FAULT = 30;
const LITTLE_SPACE = 1024 ** 3;
const NO_SPACE = 64 * 1024 ** 2;

export function doctorCommand(io: Io): Command {
  return new Command("doctor")
    .summary("look for what is wrong with this machine's installation, and say how to fix it")
    .description(
      `Checks Node, the settings, the data folder, Redis, the database, the clock and the port, one line each. Changes
nothing of yours. Exit code 1 when something must be fixed before Carillon can run.`,
    )
    .action(async () => {
      let failed = 0;
      const report = ({ state, what, text, fix }: Finding) => {
        if (state === "fail") failed++;
        io.out(`${state.padEnd(4)}  ${what.padEnd(9)}  ${text}`);
        if (state !== "ok" && fix) io.out(`${" ".repeat(17)}→ ${fix}`);
      };
      for await (const finding of examine(io)) report(finding);
      io.out();
      io.out(failed === 0 ? "Nothing stands in the way." : `${failed} to fix.`);
      if (failed > 0) throw new CommandFailed();
    });
}

export async function* examine(io: Io, clock: Clock = systemClock): AsyncGenerator<Finding> {
  yield examineNode(process.versions.node);
  let config: Config;
  try {
    config = loadSettings(io.environment, io.workingDirectory);
  } catch (error) {
    yield fault("settings", error, "correct the variable named above; `carillon config` lists all of them");
    return;
  }
  const changed = config.effective.filter(({ source }) => source !== "default").length;
  yield {
    state: "ok",
    what: "settings",
    text: `${config.effective.length} settings are valid, ${changed} differ from their default`,
  };
  yield {
    state: "ok",
    what: "timezone",
    text: `days begin and end in ${config.get(statisticsSettings.timezone)}`,
  };
  const folder = examineFolder(config);
  yield folder;
  if (folder.state !== "fail") {
    const { instances } = dataFolders(config);
    const others = liveInstances(instances);
    const instance = reserveInstance({ directory: instances, role: "cli" });
    try {
      yield* examineRedis(config, clock, () => instance.release());
      yield* examineSql(config, clock);
      yield await examinePort(config, others > 0);
    } finally {
      instance.release();
    }
  }
}

export function examineNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const recent = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  return recent
    ? { state: "ok", what: "node", text: `version ${version}` }
    : { state: "fail", what: "node", text: `version ${version}`, fix: `install Node ${LEAST_NODE.join(".")} or newer` };
}

function examineFolder(config: Config): Finding {
  const { root } = dataFolders(config);
  try {
    prepareDataFolder(config);
    accessSync(root, constants.W_OK);
  } catch (error) {
    return fault("data", error, `give this user write access to ${dirname(root)}, or set CARILLON_DATA_DIR`);
  }
  const { bavail, bsize } = statfsSync(existsSync(root) ? root : dirname(root));
  const free = bavail * bsize;
  const text = `${root}, ${(free / 1024 ** 3).toFixed(1)} GiB free`;
  if (free < NO_SPACE)
    return { state: "fail", what: "data", text, fix: "free some disk space: Redis and SQL stop without" };
  if (free < LITTLE_SPACE) return { state: "warn", what: "data", text, fix: "free some disk space soon" };
  return { state: "ok", what: "data", text };
}

async function* examineRedis(config: Config, clock: Clock, leave: () => void): AsyncGenerator<Finding> {
  let redis: OpenedRedis;
  try {
    redis = await openStateRedis(config, clock, PATIENCE);
  } catch (error) {
    yield fault("redis", error, "start Redis, or correct or remove REDIS_URL");
    return;
  }
  try {
    const info = await redis.connection.commands.info();
    const fact = (name: string) => new RegExp(`^${name}:(\\S*)`, "m").exec(info)?.[1] ?? "";
    yield { state: "ok", what: "redis", text: `version ${redis.version}, ${redis.description}` };
    yield examinePolicy(fact("maxmemory_policy"), Number(fact("maxmemory")));
    yield examinePersistence(
      fact("aof_enabled") === "1",
      fact("aof_last_write_status"),
      fact("rdb_last_bgsave_status"),
    );
    const before = clock.now();
    const [seconds, micros] = (await redis.connection.commands.time()).map(Number) as [number, number];
    yield examineClock((before + clock.now()) / 2 - (seconds + micros / 1e6));
  } catch (error) {
    yield fault("redis", error, "see the message above");
  } finally {
    leave();
    await redis.close();
  }
}

export function examinePolicy(policy: string, maxmemory: number): Finding {
  if (policy.startsWith("allkeys-"))
    return {
      state: maxmemory > 0 ? "fail" : "warn",
      what: "policy",
      text: `maxmemory-policy is ${policy}: queues and locks may be evicted`,
      fix: "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
    };
  return { state: "ok", what: "policy", text: `maxmemory-policy is ${policy || "unknown"}` };
}

export function examinePersistence(appendOnly: boolean, appendStatus: string, saveStatus: string): Finding {
  if (appendStatus === "err" || saveStatus === "err")
    return {
      state: "fail",
      what: "disk",
      text: "Redis could not write its data",
      fix: "look into Redis's log and at its disk",
    };
  if (!appendOnly)
    return {
      state: "warn",
      what: "disk",
      text: "Redis keeps no append-only file: a crash loses what was queued since the last snapshot",
      fix: "redis-cli CONFIG SET appendonly yes, and the same in redis.conf",
    };
  return { state: "ok", what: "disk", text: "Redis writes an append-only file" };
}

export function examineClock(skew: number): Finding {
  const text = `this machine and Redis differ by ${Math.abs(skew).toFixed(3)} s`;
  const fix = "let both machines keep time with NTP";
  if (Math.abs(skew) > SKEW_FAULT) return { state: "fail", what: "clock", text, fix };
  if (Math.abs(skew) > SKEW_WARNING) return { state: "warn", what: "clock", text, fix };
  return { state: "ok", what: "clock", text };
}

async function* examineSql(config: Config, clock: Clock): AsyncGenerator<Finding> {
  const { sql: folder } = dataFolders(config);
  if (config.get(houseSettings.databaseUrl) === undefined && !existsSync(folder)) {
    yield { state: "ok", what: "sql", text: `embedded, made by the first start in ${folder}` };
    return;
  }
  try {
    const database = await openDatabase(config, clock);
    try {
      yield { state: "ok", what: "sql", text: database.description };
      const pending = await pendingMigrations(database.sql, migrationPlan());
      yield pending.length === 0
        ? { state: "ok", what: "tables", text: "up to date" }
        : {
            state: "warn",
            what: "tables",
            text: `${pending.length} steps are not applied yet`,
            fix: "the next start applies them, or: carillon migrate",
          };
    } finally {
      await database.close();
    }
  } catch (error) {
    yield fault("sql", error, "start the database, or correct or remove DATABASE_URL");
  }
}

function examinePort(config: Config, others: boolean): Promise<Finding> {
  const host = config.get(httpSettings.host);
  const port = config.get(httpSettings.port);
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const text = `${host}:${port} cannot be used: ${error.code}`;
      if (error.code === "EADDRINUSE" && others)
        resolve({ state: "ok", what: "port", text: `${host}:${port} is in use, and Carillon runs here` });
      else
        resolve({ state: "fail", what: "port", text, fix: "stop what uses it, or set CARILLON_HTTP_PORT to another" });
    });
    server.listen({ host, port }, () =>
      server.close(() => resolve({ state: "ok", what: "port", text: `${host}:${port} is free` })),
    );
  });
}

function fault(what: string, error: unknown, fix: string): Finding {
  const hint = error instanceof CarillonError ? error.hint : undefined;
  return { state: "fail", what, text: error instanceof Error ? error.message : String(error), fix: hint ?? fix };
}

import { readdirSync, readFileSync } from "node:fs";
import type { Domain } from "../src/domain.ts";
import { migrationsOf } from "../src/domain.ts";
import { domains } from "../src/domains.ts";
import { settings as accessSettings } from "../src/infrastructure/access/settings.ts";
import type { JobContext } from "../src/jobs/context.ts";
import { type AnyRunner, type Context, JobQueue, RecurringSet } from "../src/jobs/index.ts";
import { AlertRecorder } from "../src/kernel/alerts.ts";
import { type Clock, systemClock } from "../src/kernel/clock.ts";
import { Config, type Setting } from "../src/kernel/config.ts";
import { Catalogue } from "../src/kernel/keyspace/index.ts";
import { silentLog } from "../src/kernel/log.ts";
import { Metrics } from "../src/kernel/metrics.ts";
import { type RedisConnection, Subscriber } from "../src/kernel/redis/index.ts";
import { migrate, openSql, type Sql } from "../src/kernel/sql/index.ts";
import { Locks } from "../src/mechanisms/lock/index.ts";
import type { Providers } from "../src/providers/index.ts";
import { findPostgres, startPostgres } from "../test/harness/postgres.ts";

export type Settings = readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];

export interface Engine {
  readonly name: "PGlite" | "Postgres";
  readonly sql: Sql;
  /** Where a server answers, for another process. */
  readonly url?: string;
  /** Statements that were sent since the engine was opened. */
  statements(): number;
  /** Seconds of processor time that the engine has used; the embedded one is part of this process. */
  processor(): number;
  close(): Promise<void>;
}

/** The SQL engines at hand: the embedded one always, a server of our own where one is installed. */
const AT_HAND: readonly Engine["name"][] = findPostgres() ? ["PGlite", "Postgres"] : ["PGlite"];

/** The engines to measure: those at hand, or the one that was asked for. Says so when Postgres is not among those at hand. */
export function enginesFor(wanted: string | undefined): readonly Engine["name"][] {
  if (!AT_HAND.includes("Postgres"))
    console.log(
      "\nPostgres is not measured: there is none below /usr/lib/postgresql. Install it (Debian: apt-get install postgresql) and run this again.",
    );
  const engines = AT_HAND.filter((name) => wanted === undefined || wanted === name);
  if (engines.length === 0) throw new Error(`--engine is ${wanted}; at hand: ${AT_HAND.join(", ")}`);
  return engines;
}

/** The engine that a busy installation would have: a server where one is installed. */
export const BUSY_ENGINE: Engine["name"] = AT_HAND.at(-1)!;

/** An engine of this benchmark's own with every table of the house. */
export async function openEngine(name: Engine["name"], rooms: readonly Domain[] = domains): Promise<Engine> {
  const server = name === "Postgres" ? await startPostgres(findPostgres()!) : undefined;
  const sql = await openSql(server ? { kind: "postgres", url: server.url } : { kind: "memory" });
  await migrate(sql, rooms.flatMap(migrationsOf));
  const statements = countStatements(sql);
  return {
    name,
    sql,
    ...(server ? { url: server.url } : {}),
    statements,
    processor: () => (server ? familyTime(server.pid) : processorTime()),
    async close() {
      await sql.close();
      await server?.stop();
    },
  };
}

/** Counts what the query builder sends; both engines are asked through it. */
export function countStatements(sql: Sql): () => number {
  let count = 0;
  const executor = sql.tables<never>().getExecutor();
  const prototype = Object.getPrototypeOf(Object.getPrototypeOf(executor)) as {
    executeQuery(...args: unknown[]): unknown;
  };
  const execute = prototype.executeQuery;
  prototype.executeQuery = function (this: unknown, ...args: unknown[]) {
    count += 1;
    return execute.apply(this, args);
  };
  return () => count;
}

export interface Surroundings {
  readonly redis: RedisConnection;
  readonly sql: Sql;
  readonly rooms?: readonly Domain[];
  /** The rooms whose schedule is kept, where it is not that of all rooms. */
  readonly scheduled?: readonly Domain[];
  readonly clock?: Clock;
  readonly settings?: Settings;
  readonly hostname?: string;
  /** Every runner, as the worker is to have it. */
  runner?(runner: AnyRunner): AnyRunner;
}

export type BenchContext = Context & { readonly alerts: AlertRecorder };

/** What services and jobs see, without workers and providers: whoever measures a job runs it itself. */
export function furnish({
  redis,
  sql,
  rooms = domains,
  scheduled = rooms,
  clock = systemClock,
  settings = [],
  hostname = "jobs-bench-1",
  runner: as = (runner) => runner,
}: Surroundings): BenchContext & { readonly jobs: JobQueue } {
  const base = {
    clock,
    config: new Config([]).with(
      [accessSettings.rootSecret, "a root secret for measuring, long enough"],
      ...(settings as []),
    ),
    log: silentLog,
    alerts: new AlertRecorder(),
    metrics: new Metrics(),
    redis,
    cacheRedis: redis,
    subscriber: new Subscriber(redis, clock),
    sql,
    hostname,
  };
  const runners = rooms.flatMap((room) => room.runners ?? []).map(as);
  const recurring = new RecurringSet(
    scheduled.flatMap((room) => room.recurring ?? []),
    "UTC",
  );
  const jobs = new JobQueue(base, { runners, recurring });
  return { ...base, jobs, locks: new Locks(base), catalogue: new Catalogue(rooms), providers: {} as Providers };
}

/** Runs a job to its end as a worker would; nobody stops it. */
export async function runJob(ctx: Context, runner: AnyRunner): Promise<void> {
  const job: JobContext = {
    ...ctx,
    job: { name: runner.name, uid: undefined, jobUid: undefined, queuedAt: 0, attempt: 0, deliveries: 0, bounces: 0 },
    signal: new AbortController().signal,
    shuttingDown: () => false,
    sleep: (seconds) => ctx.clock.sleep(seconds),
    budget: { exhausted: () => false },
    progress: async () => {},
    bounce: () => new Error("bounce"),
  };
  await runner.run!(job, {} as never);
}

/** Counts the commands and scripts that a connection sends. */
export function countCommands({ commands }: RedisConnection): () => number {
  let count = 0;
  const send = commands.sendCommand.bind(commands);
  commands.sendCommand = ((command: Parameters<typeof send>[0], stream?: never) => {
    count += 1;
    return send(command, stream);
  }) as typeof commands.sendCommand;
  return () => count;
}

/** Seconds of processor time that this process has used. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Seconds of processor time of a process and its children, those that have ended included. */
function familyTime(parent: number): number {
  const ticks = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        // The name of the program stands in parentheses and may hold anything; what follows is numbers.
        const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
        const [ownParent, ...used] = [1, 11, 12, 13, 14].map((at) => Number(fields[at]));
        if (Number(pid) === parent) return used.reduce((sum, time) => sum + time, 0);
        return ownParent === parent ? used[0]! + used[1]! : 0;
      } catch {
        // It has ended meanwhile.
        return 0;
      }
    });
  return ticks.reduce((sum, time) => sum + time, 0) / TICKS_A_SECOND;
}

const TICKS_A_SECOND = 100;

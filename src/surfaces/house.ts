import { join } from "node:path";
import { migrationsOf, type ProcessRoles } from "../domain.ts";
import { domains } from "../domains.ts";
import { rememberServerUrl, withRootSecret } from "../infrastructure/access/service.ts";
import { settings as accessSettings } from "../infrastructure/access/settings.ts";
import { startDeployments } from "../infrastructure/deployments/service.ts";
import { houseAnswersAt, sandboxAddress, standsIn } from "../infrastructure/sandbox/service.ts";
import { type Context, JobQueue, jobSettings, RecurringSet, Worker } from "../jobs/index.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import type { Config } from "../kernel/config.ts";
import type { KernelContext } from "../kernel/context.ts";
import { defineErrors } from "../kernel/errors.ts";
import { Catalogue } from "../kernel/keyspace/index.ts";
import type { Log } from "../kernel/log.ts";
import { Metrics } from "../kernel/metrics.ts";
import { type Instance, type InstanceRole, reserveInstance } from "../kernel/process/index.ts";
import { Subscriber } from "../kernel/redis/index.ts";
import { type AppliedMigration, type DomainMigrations, migrate } from "../kernel/sql/index.ts";
import { AlertReporter, alertSettings } from "../mechanisms/alerts/index.ts";
import { statisticsSettings } from "../mechanisms/dated-counters/index.ts";
import { cacheSettings } from "../mechanisms/layered-cache/index.ts";
import { Locks } from "../mechanisms/lock/index.ts";
import { openProviders } from "../providers/open-providers.ts";
import { sandboxClients } from "../sandbox/clients.ts";
import {
  dataFolders,
  type OpenedRedis,
  type OpenedSql,
  openCacheRedis,
  openDatabase,
  openStateRedis,
  prepareDataFolder,
} from "./foundation.ts";
import { settings as httpSettings } from "./http/settings.ts";
import { pagesFolder } from "./pages-folder.ts";
import { houseSettings } from "./settings.ts";
import { version } from "./version.ts";

/**
 * The assembly of a process.
 *
 * Life: founded (data folder, slot, Redis, SQL) -> furnished (the context that services and routes get) -> opened (tables
 * migrated, rooms, worker and server started) -> closing -> closed. Every step pushes how to undo it, so that closing is
 * the same list read backwards, wherever opening stopped. A process that dies without closing leaves: its pid files, which
 * count no more; the managed Redis, which the next process adopts; its jobs and locks, which others take over in time.
 */
export interface House {
  readonly ctx: Context;
  readonly roles: ProcessRoles;
  readonly redis: OpenedRedis;
  readonly database: OpenedSql;
  readonly migrated: readonly AppliedMigration[];
  /** Where the server answers, when this process has one. */
  readonly url: string | undefined;
  /** Resolves when a part asks for the end of the process. */
  readonly ending: Promise<Ending>;
  close(options?: CloseOptions): Promise<void>;
}

export interface Ending {
  readonly why: string;
  readonly exitCode: number;
}

export interface CloseOptions {
  /** Aborted by a second signal: nothing is waited for any more. */
  readonly hurry?: AbortSignal;
}

export interface FurnishOptions {
  readonly config: Config;
  readonly role: InstanceRole;
  readonly log: Log;
  readonly clock?: Clock;
}

/** The context without anything running in it: what a command of the command line needs. */
export interface Furnished {
  readonly ctx: Context;
  readonly jobs: JobQueue;
  readonly instance: Instance;
  readonly redis: OpenedRedis;
  readonly database: OpenedSql;
  close(): Promise<void>;
}

export const houseErrors = defineErrors({
  port_unusable: {
    status: 503,
    doc: "The server cannot listen where it should.",
    hint: "Stop what uses the port, or set CARILLON_HTTP_PORT or CARILLON_HTTP_HOST.",
  },
});

type Undo = (hurry?: AbortSignal) => Promise<void> | void;

export async function furnish(options: FurnishOptions): Promise<Furnished> {
  const clock = options.clock ?? systemClock;
  const undo: Undo[] = [];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    prepareDataFolder(options.config);
    const folders = dataFolders(options.config);
    const instance = reserveInstance({
      directory: folders.instances,
      role: options.role,
      slot: options.role === "cli" ? undefined : options.config.get(houseSettings.instance),
    });
    undo.push(() => instance.release());
    const config = withCacheFolder(
      withRootSecret(options.config, folders.root),
      join(folders.cache, `${options.role}-${instance.slot}`),
    );
    const redis = await openStateRedis(config, clock);
    undo.push(() => redis.close());
    // Before Redis is closed: the last process to leave must see no other, itself included.
    undo.push(() => instance.release());
    const cacheRedis = await openCacheRedis(config, redis, clock);
    if (cacheRedis !== redis.connection) undo.push(() => cacheRedis.close());
    const database = await openDatabase(config, clock);
    undo.push(() => database.close());
    const subscriber = new Subscriber(redis.connection, clock);
    undo.push(() => subscriber.close());

    const { hostname } = instance;
    const surrounding = { config, clock, log: options.log, redis: redis.connection, cacheRedis, sql: database.sql };
    const { ctx, jobs, close: leave } = await surround({ ...surrounding, subscriber, hostname });
    undo.push(leave);
    return { ctx, jobs, instance, redis, database, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export type Surroundings = Omit<KernelContext, "alerts" | "metrics">;

/** The context over engines that are open: what services, routes and jobs get. */
export async function surround(engines: Surroundings) {
  const { config, clock, log, redis } = engines;
  const alerts = new AlertReporter({
    log,
    clock,
    redis,
    hostname: engines.hostname,
    alertWebhookUrl: config.get(alertSettings.alertWebhookUrl),
    opsWebhookUrl: config.get(alertSettings.opsWebhookUrl),
  });
  const client = { clock, log, userAgent: `carillon/${version()}` };
  const standIns = standsIn(config) ? sandboxClients(() => sandboxAddress(config), client) : {};
  const metrics = new Metrics().withProcessMetrics();
  const dataDirectory = dataFolders(config).root;
  const providers = await openProviders(config, { ...client, alerts, metrics, redis, dataDirectory }, standIns);
  const surroundings = { ...engines, alerts, metrics, providers };
  const jobs = new JobQueue(surroundings, {
    runners: domains.flatMap((room) => room.runners ?? []),
    recurring: new RecurringSet(
      domains.flatMap((room) => room.recurring ?? []),
      config.get(statisticsSettings.timezone),
    ),
  });
  const declared = catalogue();
  const ctx: Context = { ...surroundings, jobs, locks: new Locks(surroundings, declared), catalogue: declared };
  const close = async () => {
    await providers.close();
    // What was reported at the end should still arrive.
    await alerts.settled();
  };
  return { ctx, jobs, close };
}

export interface OpenOptions {
  readonly config: Config;
  readonly roles: ProcessRoles;
  readonly log: Log;
  readonly clock?: Clock;
}

export async function openHouse(options: OpenOptions): Promise<House> {
  const { roles } = options;
  const furnished = await furnish({ ...options, role: roles.worker ? "jobs" : "web" });
  const { ctx, redis, database } = furnished;
  const undo: Undo[] = [];
  let closing: Promise<void> | undefined;
  const close = ({ hurry }: CloseOptions = {}) => {
    closing ??= (async () => {
      for (const step of undo.splice(0).reverse())
        await inTime(ctx, hurry, step).catch((error: unknown) => ctx.alerts.error(error, "while closing"));
      await furnished.close();
    })();
    return closing;
  };
  try {
    await warnOfEviction(ctx);
    if (database.owner !== undefined)
      ctx.log.warn(
        { owner: database.owner },
        "the embedded database belongs to another process and ends with it; set DATABASE_URL to run several",
      );
    const migrated = await migrate(ctx.sql, migrationPlan());
    await ctx.redis.ready();
    for (const room of domains) {
      const stop = await room.start?.(ctx, roles);
      if (stop) undo.push(() => stop());
    }
    const ending = signalOnce<Ending>();
    const worker = roles.worker ? employ(furnished, ending.resolve) : undefined;
    const server = roles.web ? await furnishServer(ctx, roles) : undefined;
    let atRest: Promise<unknown> | undefined;
    const rest = (hurry?: AbortSignal) => {
      atRest ??= Promise.all([worker?.stop(hurry), server?.leave(hurry)]);
      return atRest.then(() => {});
    };
    undo.push(rest);
    await worker?.start();
    const url = await server?.answer();
    if (url !== undefined) {
      houseAnswersAt(ctx, url);
      await rememberServerUrl(ctx, url);
    }
    const deployments = await startDeployments(ctx, {
      repos: [...(roles.web ? ["backend"] : []), ...(roles.worker ? ["jobs"] : [])],
      directory: dataFolders(ctx.config).root,
      shutdown: () => rest(),
      // Whether somebody starts it again is the supervisor's business; to Carillon both are a clean end.
      exit: () => ending.resolve({ why: "an update", exitCode: 0 }),
      onUpdateRequested: (repo) => {
        if (repo === "jobs") void worker?.scheduler.pauseForUpdate();
      },
    });
    undo.push(() => deployments.close());
    await deployments.announceReady();
    return { ctx, roles, redis, database, migrated, url, ending: ending.promise, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A promise and its end, for Node versions without Promise.withResolvers. */
function signalOnce<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function employ({ ctx, jobs, instance }: Furnished, end: (ending: Ending) => void): Worker {
  return new Worker(ctx, jobs, {
    version: version(),
    instance: instance.slot,
    heartbeat: "thread",
    onStuck: () => end({ why: "a job that ignores its timeout", exitCode: RESTART_ME }),
  });
}

/** The server's packages are loaded only here, because most commands need none of them. */
async function furnishServer(ctx: Context, roles: ProcessRoles) {
  const { buildServer, closeServer, listen } = await import("./http/index.ts");
  const { openLiveGateway } = await import("./live.ts");
  const live = openLiveGateway(ctx);
  const app = await buildServer(ctx, domains, { version: version(), live, pages: pagesFolder() });
  return {
    async answer(): Promise<string> {
      const host = ctx.config.get(httpSettings.host);
      const port = ctx.config.get(httpSettings.port);
      // In development a port that is taken is no reason not to start; elsewhere somebody counts on that port.
      const flexible = roles.worker && ctx.config.get(accessSettings.environment) === "development";
      try {
        return (await listen(app, { host, port, alternatives: flexible ? 20 : 0 })).url;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        throw houseErrors.port_unusable({
          message: `The server cannot listen on ${host}:${port}: ${code}`,
          cause: error,
        });
      }
    },
    async leave(hurry?: AbortSignal): Promise<void> {
      const drop = () => app.server.closeAllConnections();
      hurry?.addEventListener("abort", drop, { once: true });
      await Promise.all([live.close(), closeServer(app, ctx.clock, ctx.config.get(jobSettings.shutdownGrace))]);
      hurry?.removeEventListener("abort", drop);
    },
  };
}

/** Every key pattern of every room. */
export function catalogue(): Catalogue {
  return new Catalogue(domains);
}

/** The tables of every room, in the order of the floor plan. */
export function migrationPlan(): readonly DomainMigrations[] {
  return domains.flatMap(migrationsOf);
}

/** Every instance keeps its cached copies apart, below the data folder unless a setting says where. */
function withCacheFolder(config: Config, folder: string): Config {
  return config.get(cacheSettings.folder) === undefined ? config.with([cacheSettings.folder, folder]) : config;
}

/** A server that throws away keys to make room would throw away queues. */
async function warnOfEviction(ctx: Context): Promise<void> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await ctx.redis.commands.info("memory"))?.[1];
  if (policy?.startsWith("allkeys-"))
    ctx.alerts.warning(
      "redis:policy",
      `Redis has the policy ${policy} and may evict queues and locks when memory is short; set maxmemory-policy to noeviction or volatile-lru`,
      { urgent: true },
    );
}

/** Waits for a step of closing as long as the grace lasts, and not at all in a hurry. */
async function inTime(ctx: Context, hurry: AbortSignal | undefined, step: Undo): Promise<void> {
  const done = new AbortController();
  const limit = AbortSignal.any([done.signal, ...(hurry ? [hurry] : [])]);
  const patience = ctx.clock.sleep(ctx.config.get(jobSettings.shutdownGrace) + SLACK, limit);
  await Promise.race([Promise.resolve(step(hurry)).finally(() => done.abort()), patience]);
}

/** The supervisor should start the process again: a job ignored its timeout. */
const RESTART_ME = 75;

/** Parts keep the grace themselves; this much later they are left behind. */
const SLACK = 5;

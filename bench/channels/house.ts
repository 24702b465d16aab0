import { setTimeout as pause } from "node:timers/promises";
import { migrationsOf } from "../../src/domain.ts";
import { domains } from "../../src/domains.ts";
import { settings as accessSettings } from "../../src/infrastructure/access/settings.ts";
import { type AnyRunner, type Context, JobQueue, jobKeys, RecurringSet, Worker } from "../../src/jobs/index.ts";
import { AlertRecorder } from "../../src/kernel/alerts.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { Config, type Setting } from "../../src/kernel/config.ts";
import { Catalogue } from "../../src/kernel/keyspace/index.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { Metrics } from "../../src/kernel/metrics.ts";
import { type RedisConnection, Subscriber } from "../../src/kernel/redis/index.ts";
import { migrate, openSql, type Sql } from "../../src/kernel/sql/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import { EmailChannel, PushChannel, SmsChannel } from "../../src/providers/channels.ts";
import type { EmailProvider } from "../../src/providers/email.ts";
import type { Providers } from "../../src/providers/index.ts";
import type { PushProvider } from "../../src/providers/push.ts";
import type { SmsProvider } from "../../src/providers/sms.ts";
import { type TemporaryRedis, temporaryRedis } from "../kit.ts";

/**
 * A house whose providers answer at once, in process: what is measured is Carillon alone. Its worker, queues, scripts, tables
 * and callbacks are the real ones, on a Redis and an SQL engine of its own.
 */
export interface BenchHouse {
  /** What producers use: its calls are not counted as those of the jobs. */
  readonly outside: Context;
  readonly redisVersion: string;
  /** The callbacks that ran since the last `clear`, by the name of their job, as they were called. */
  readonly heard: ReadonlyMap<string, readonly { readonly data_raw: string }[]>;
  /** Starts a worker; answers how to stop it. Nothing of what it held is left behind. */
  work(): Promise<() => Promise<void>>;
  /** What the worker's side has asked of the two servers so far. */
  spent(): Spent;
  length(key: string): Promise<number>;
  /** Fails unless nothing went wrong: no job failed, nothing was set aside, nobody was alerted. */
  expectPeace(): Promise<void>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

export interface Spent {
  /** Commands and scripts that were sent to Redis, pipelined or not. */
  readonly redis: number;
  /** Of these, scripts: the server counts them too, and must come to the same number. */
  readonly scripts: number;
  readonly sql: number;
}

type Settings = readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];

export interface BenchPlan {
  readonly settings?: Settings;
  readonly push?: PushProvider;
  readonly sms?: SmsProvider;
  readonly email?: EmailProvider;
}

/** Rooms whose jobs have to do with messages; the schedule of the others would only add noise. */
const ROOMS = new Set(["users", "operations", "contacts", "push", "sms", "email_templates", "email", "messages"]);

export async function openBenchHouse(plan: BenchPlan): Promise<BenchHouse> {
  const server = await temporaryRedis();
  const sql = await openSql({ kind: "memory" });
  await migrate(sql, domains.flatMap(migrationsOf));
  const spent = { redis: 0, scripts: 0, sql: 0 };
  const engine = sql.embedded!;
  const query = engine.query.bind(engine);
  engine.query = ((...args: Parameters<typeof query>) => {
    spent.sql += 1;
    return query(...args);
  }) as typeof engine.query;

  const inside = await server.connect();
  const outer = await server.connect();
  const count = () => countCommands(inside, spent);
  count();
  const rooms = domains.filter(({ name }) => ROOMS.has(name));
  const heard = new Map<string, { data_raw: string }[]>();
  const runners = domains.flatMap((room) => room.runners ?? []).map((runner) => listeningTo(runner, heard));
  const alerts = new AlertRecorder();
  const config = new Config([]).with(
    [accessSettings.rootSecret, "a root secret for measuring, long enough"],
    ...((plan.settings ?? []) as []),
  );
  const furnish = (redis: RedisConnection): Context & { readonly jobs: JobQueue } => {
    const base = {
      clock: systemClock,
      config,
      log: silentLog,
      alerts,
      metrics: new Metrics(),
      redis,
      cacheRedis: redis,
      subscriber: new Subscriber(redis, systemClock),
      sql: sql as Sql,
      hostname: "jobs-bench-1",
    };
    const providers = {
      push: new PushChannel(base, plan.push ? [plan.push] : []),
      sms: new SmsChannel(base, plan.sms ? [plan.sms] : []),
      email: new EmailChannel(base, plan.email ? [plan.email] : []),
    } as Partial<Providers> as Providers;
    const recurring = new RecurringSet(
      rooms.flatMap((room) => room.recurring ?? []),
      "UTC",
    );
    const jobs = new JobQueue(base, { runners, recurring });
    return { ...base, jobs, locks: new Locks(base), catalogue: new Catalogue(domains), providers };
  };
  const [ctx, outside] = [furnish(inside), furnish(outer)];
  const { commands, topology } = outer;
  const length = async (key: string) => {
    const name = topology.key(key as never);
    return (await commands.type(name)) === "zset" ? commands.zcard(name) : commands.llen(name);
  };
  return {
    outside,
    redisVersion: server.version,
    heard,
    async work() {
      const worker = new Worker({ ...ctx, metrics: new Metrics() }, ctx.jobs, {
        version: "bench",
        instance: "1",
        heartbeat: "thread",
      });
      await worker.start();
      return () => worker.stop();
    },
    spent: () => ({ ...spent }),
    length,
    async expectPeace() {
      const failed = await length(jobKeys.failed());
      const aside = await commands.keys("quarantine:*");
      const told = alerts.recorded.map(({ text }) => text);
      if (failed > 0 || aside.length > 0 || told.length > 0)
        throw new Error(`not all went well: ${failed} failed jobs, set aside ${aside.join(", ")}, told ${told[0]}`);
    },
    async clear() {
      heard.clear();
      await commands.flushall();
    },
    async close() {
      await closeAll(server, sql, [ctx, outside]);
    },
  };
}

async function closeAll(server: TemporaryRedis, sql: Sql, contexts: readonly Context[]): Promise<void> {
  for (const { subscriber } of contexts) subscriber.close();
  await sql.close();
  await server.close();
}

function countCommands({ commands }: RedisConnection, spent: { redis: number; scripts: number }): void {
  const send = commands.sendCommand.bind(commands);
  commands.sendCommand = ((command: Parameters<typeof send>[0], stream?: never) => {
    spent.redis += 1;
    if (command.name === "evalsha") spent.scripts += 1;
    return send(command, stream);
  }) as typeof commands.sendCommand;
}

/** The runner as it is, and what it was called with is kept, to be checked when the time has been taken. */
function listeningTo(runner: AnyRunner, heard: Map<string, { data_raw: string }[]>): AnyRunner {
  const { runMany } = runner;
  if (!runMany) return runner;
  return {
    ...runner,
    runMany: (ctx, items) => {
      const known = heard.get(runner.name);
      const called = items as unknown as { data_raw: string }[];
      if (known) known.push(...called);
      else heard.set(runner.name, [...called]);
      return runMany(ctx, items);
    },
  };
}

/** Looks again and again until it is so. */
export async function until(fact: () => boolean | Promise<boolean>, what: string, seconds = 300): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await fact())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come about within ${seconds} s`);
    await pause(2);
  }
}

/** Fails unless each of `count` messages was given to the provider once. */
export class Once {
  #seen = new Uint8Array(0);
  total = 0;

  expect(count: number): void {
    this.#seen = new Uint8Array(count);
    this.total = 0;
  }

  note(index: number): void {
    this.#seen[index]! += 1;
    this.total += 1;
  }

  check(what: string): void {
    const wrong = this.#seen.findIndex((times) => times !== 1);
    if (wrong >= 0) throw new Error(`${what} ${wrong} was given to the provider ${this.#seen[wrong]} times`);
    if (this.total !== this.#seen.length) throw new Error(`${this.total} of ${this.#seen.length} ${what}s were sent`);
  }
}

/** Fails unless every one of these callbacks tells of another message, and they are as many as there were messages. */
export function expectEachOnce(uids: readonly string[], wanted: readonly string[], what: string): void {
  const told = new Set(uids);
  if (uids.length !== wanted.length || told.size !== uids.length || wanted.some((uid) => !told.has(uid)))
    throw new Error(`${uids.length} callbacks of ${told.size} ${what} ran, not one for each of ${wanted.length}`);
}

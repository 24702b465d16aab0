import type { FastifyInstance, LightMyRequestResponse } from "fastify";
import { sql } from "kysely";
import { type Domain, migrationsOf } from "../../src/domain.ts";
import { access } from "../../src/infrastructure/access/index.ts";
import { createAdminToken } from "../../src/infrastructure/access/service.ts";
import { settings as accessSettings } from "../../src/infrastructure/access/settings.ts";
import { operations } from "../../src/infrastructure/operations/index.ts";
import type { JobContext } from "../../src/jobs/context.ts";
import { type Context, JobQueue, RecurringSet } from "../../src/jobs/index.ts";
import { jobKeys } from "../../src/jobs/keys.ts";
import type { AnyRunner } from "../../src/jobs/runner.ts";
import type { AlertRecorder } from "../../src/kernel/alerts.ts";
import { Config, type Setting } from "../../src/kernel/config.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { Catalogue, type KeyName } from "../../src/kernel/keyspace/index.ts";
import { migrate } from "../../src/kernel/sql/index.ts";
import { calendarOf, readDayAsIs, type StatsFamily } from "../../src/mechanisms/dated-counters/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import { usersDomain } from "../../src/people/users/index.ts";
import type { Providers } from "../../src/providers/index.ts";
import { buildServer } from "../../src/surfaces/http/index.ts";
import { openTestContext, type TestContext } from "./context.ts";

type Settings = readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];

export interface RoomsPlan {
  /** Rooms beside users, access and operations, in the order of the floor plan. */
  readonly rooms: readonly Domain[];
  readonly settings?: Settings;
  readonly providers?: (ctx: KernelContext) => Partial<Providers>;
  /** Unix time at which the virtual clock starts. */
  readonly start?: number;
  /** Virtual seconds after which keys notice that time passed; more is faster for long stories. */
  readonly ttlGrain?: number;
  /** Redis keeps what it has through a crash; by default it forgets, which is faster. */
  readonly persistence?: "always";
  /** A port of this machine, for houses that are called over the wire too. */
  readonly port?: number;
}

export interface ProcessPlan extends Partial<Pick<KernelContext, "redis" | "sql" | "clock">> {
  readonly settings?: Settings;
}

export interface Counts {
  readonly events: Readonly<Record<string, number>>;
  readonly words: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** Rooms over real engines and a virtual clock, called as workers and the server call them. */
export interface RoomsHouse {
  readonly base: TestContext;
  /** The server itself, for tests that go through a socket. */
  readonly app: FastifyInstance;
  /** An admin token that works. */
  readonly admin: string;
  readonly ctx: Context & { readonly alerts: AlertRecorder };
  /** The same house as another process has it: perhaps a mortal one, or with other settings. */
  process(plan?: ProcessPlan): RoomsHouse["ctx"];
  /** Runs a job as a worker would, to its end. */
  run(runner: AnyRunner, around?: RoomsHouse["ctx"], kwargs?: object): Promise<void>;
  /** Runs the jobs that wait, and those that they queue, until none does; answers their names in order. */
  work(around?: RoomsHouse["ctx"], without?: readonly string[]): Promise<readonly string[]>;
  /** The same, and these are thrown away. */
  workWithout(...names: string[]): Promise<readonly string[]>;
  call(method: string, path: string, call?: CallOptions): Promise<LightMyRequestResponse>;
  /** Makes a user; answers their access token. */
  person(sub: string, fields?: object): Promise<string>;
  /** What the open days counted together, or one day. */
  counts(family: StatsFamily, date?: number): Promise<Counts>;
  length(key: KeyName): Promise<number>;
  query<T>(text: string): Promise<readonly T[]>;
  /** Fails when an invariant of the rooms does not hold. */
  audit(): Promise<void>;
  clear(...tables: string[]): Promise<void>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function openRooms(plan: RoomsPlan): Promise<RoomsHouse> {
  const base = await openTestContext({
    sql: true,
    ...(plan.start === undefined ? {} : { start: plan.start }),
    ...(plan.ttlGrain === undefined ? {} : { ttlGrain: plan.ttlGrain }),
    ...(plan.persistence === undefined ? {} : { persistence: plan.persistence }),
  });
  const rooms: Domain[] = [usersDomain(() => rooms), access, operations, ...plan.rooms];
  await migrate(base.sql, rooms.flatMap(migrationsOf));
  const runners = rooms.flatMap((room) => room.runners ?? []);
  const named = new Map(runners.map((runner) => [runner.name as string, runner]));
  const config = new Config([]).with(
    [accessSettings.rootSecret, "a root secret for tests, long enough"],
    ...((plan.settings ?? []) as []),
  );

  const process: RoomsHouse["process"] = ({ settings = [], redis, ...rest } = {}) => {
    const kernel = base.process({
      ...rest,
      ...(redis ? { redis, cacheRedis: redis } : {}),
      config: config.with(...(settings as [])),
    });
    const recurring = new RecurringSet(
      rooms.flatMap((room) => room.recurring ?? []),
      "America/Los_Angeles",
    );
    const jobs = new JobQueue(kernel, { runners, recurring });
    return Object.defineProperties(
      { jobs, locks: new Locks(kernel), catalogue: new Catalogue(rooms), providers: plan.providers?.(kernel) ?? {} },
      Object.getOwnPropertyDescriptors(kernel),
    ) as unknown as RoomsHouse["ctx"];
  };

  const ctx = process();
  const app = await buildServer(ctx, rooms);
  if (plan.port !== undefined) await app.listen({ host: "127.0.0.1", port: plan.port });
  const { token: admin } = await createAdminToken(ctx, { label: "test" });
  const { commands, topology } = base.redis;
  const query = async <T>(text: string) => (await sql.raw<T>(text).execute(base.sql.tables())).rows;
  const call: RoomsHouse["call"] = (method, path, { token = admin, body, headers } = {}) =>
    app.inject({
      method: method as "GET",
      url: path,
      headers: { ...(token === "" ? {} : { authorization: `Bearer ${token}` }), ...headers },
      ...(body === undefined ? {} : { payload: body as object }),
    });

  /** Takes what waits, again and again, until nothing does. */
  const workOff = async (around: RoomsHouse["ctx"], skipped: ReadonlySet<string>): Promise<readonly string[]> => {
    const done: string[] = [];
    for (;;) {
      const raws = await commands.lpop(topology.key(jobKeys.hot()), 500);
      if (!raws) return done;
      const entries = raws.map((raw) => JSON.parse(raw) as { name: string; rjob?: string; kwargs: object });
      if (entries.some(({ rjob }) => rjob !== undefined)) await commands.del(topology.key(jobKeys.recurringQueued()));
      const left = new Set(entries.map((entry) => entry.name));
      for (const name of [...left]) {
        if (skipped.has(name)) {
          left.delete(name);
          continue;
        }
        const runner = named.get(name);
        if (!runner) throw new Error(`nobody runs ${name}`);
        const items = entries.filter((entry) => entry.name === name);
        done.push(...items.map(() => name));
        const job = jobContext(around, name);
        const kwargs = items.map((item) => runner.kwargs.parse(item.kwargs));
        try {
          if (runner.run) for (const each of kwargs) await runner.run(job, each as never);
          else
            for (const outcome of (await runner.runMany!(job, kwargs as never)) ?? [])
              if (!outcome.ok) throw outcome.error;
        } catch (error) {
          // What a dead worker had taken is found and queued again.
          const again = raws.filter((_, at) => left.has(entries[at]!.name));
          await commands.lpush(topology.key(jobKeys.hot()), ...again.reverse());
          throw error;
        }
        left.delete(name);
      }
    }
  };

  return {
    base,
    app,
    admin,
    ctx,
    process,
    call,
    query,
    work: (around = ctx, without = []) => workOff(around, new Set(without)),
    workWithout: (...names) => workOff(ctx, new Set(names)),
    async run(runner, around = ctx, kwargs = {}) {
      const job = jobContext(around, runner.name);
      if (runner.run) return runner.run(job, kwargs as never);
      for (const outcome of (await runner.runMany!(job, [kwargs as never])) ?? []) if (!outcome.ok) throw outcome.error;
    },
    async person(sub, fields = {}) {
      const made = await call("POST", "/api/1/admin/users", { body: { sub, ...fields } });
      if (made.statusCode !== 201) throw new Error(made.body);
      return (await call("POST", `/api/1/admin/users/${sub}/access_token`, { body: {} })).json().access_token;
    },
    async counts(family, date) {
      const today = calendarOf(ctx).unixDate(base.clock.now());
      const dates = date === undefined ? [today - 3, today - 2, today - 1, today, today + 1] : [date];
      const events: Record<string, number> = {};
      const words: Record<string, Record<string, number>> = {};
      const add = (into: Record<string, number>, from: Readonly<Record<string, string | number>>) => {
        for (const [name, value] of Object.entries(from)) into[name] = (into[name] ?? 0) + Number(value);
      };
      for (const each of dates) {
        const day = await readDayAsIs(ctx, family, each);
        add(events, day.events);
        for (const [event, held] of Object.entries(day.breakdowns)) {
          if (Object.keys(held).length === 0) continue;
          words[event] ??= {};
          add(words[event], held);
        }
      }
      return { events, words };
    },
    async length(key) {
      const name = topology.key(key);
      switch (await commands.type(name)) {
        case "zset":
          return commands.zcard(name);
        case "set":
          return commands.scard(name);
        case "hash":
          return commands.hlen(name);
        default:
          return commands.llen(name);
      }
    },
    async audit() {
      for (const { name, check } of rooms.flatMap((room) => room.invariants ?? [])) {
        const violations = await check(ctx);
        if (violations.length > 0) throw new Error(`${name}: ${violations.join("; ")}`);
      }
    },
    async clear(...tables) {
      await base.flush();
      for (const table of [...tables, "stat_deltas", "users"]) await query(`delete from ${table}`);
    },
    async close() {
      await app.close();
      await base.close();
    },
  };
}

/** A run as its runner sees it: nobody stops it, and its budget is over after 50 seconds of the clock. */
function jobContext(around: Context, name: string): JobContext {
  const deadline = around.clock.monotonic() + 50;
  return Object.defineProperties(
    {},
    {
      ...Object.getOwnPropertyDescriptors(around),
      ...Object.getOwnPropertyDescriptors({
        job: { name, uid: undefined, jobUid: undefined, queuedAt: 0, attempt: 0, deliveries: 0, bounces: 0 },
        signal: new AbortController().signal,
        shuttingDown: () => false,
        sleep: (seconds: number) => around.clock.sleep(seconds),
        budget: { exhausted: () => around.clock.monotonic() >= deadline },
        progress: async () => {},
        bounce: () => new Error("bounce"),
      }),
    },
  ) as unknown as JobContext;
}

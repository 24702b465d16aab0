import { AlertRecorder } from "../../src/kernel/alerts.ts";
import { type Clock, VirtualClock } from "../../src/kernel/clock.ts";
import { Config } from "../../src/kernel/config.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { Metrics } from "../../src/kernel/metrics.ts";
import { type RedisConnection, Subscriber } from "../../src/kernel/redis/index.ts";
import type { Sql } from "../../src/kernel/sql/index.ts";
import { startTestRedis, type TestRedis } from "./redis.ts";
import { openTestSql } from "./sql.ts";

export interface TestContext extends KernelContext {
  readonly clock: VirtualClock;
  readonly alerts: AlertRecorder;
  readonly server: TestRedis;
  /** The same surroundings as another process would have them: its own connection, hostname and alerts. */
  process(overrides?: Partial<KernelContext>): KernelContext & { readonly alerts: AlertRecorder };
  /** Forgets all keys, for the next test of the file. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A context on a real Redis with a virtual clock that TTLs obey; `sql: true` adds a real SQL engine with
 * the tables of every room, `sql: "empty"` one without any. `staged: true` says that the test itself writes what rooms
 * should, so that no key counts as written by it.
 */
export async function openTestContext(
  options: {
    sql?: boolean | "empty";
    start?: number;
    ttlGrain?: number;
    persistence?: "always" | "off";
    staged?: boolean;
  } = {},
): Promise<TestContext> {
  const server = await startTestRedis({ persistence: options.persistence, staged: options.staged });
  const clock = new VirtualClock(options.start);
  server.obey(clock, options.ttlGrain);
  const sql: Sql = options.sql ? await openTestSql(options.sql === "empty" ? "empty" : "house") : noSql;
  const closing: (() => Promise<void> | void)[] = [];
  let processes = 0;

  const build = (overrides: Partial<KernelContext> & { clock?: Clock } = {}) => {
    const redis: RedisConnection = overrides.redis ?? server.connect(clock);
    const subscriber = lazySubscriber(redis, clock, closing);
    return {
      clock,
      config: new Config([]),
      log: silentLog,
      alerts: new AlertRecorder(),
      metrics: new Metrics(),
      redis,
      cacheRedis: redis,
      sql,
      hostname: `jobs-test-${++processes}`,
      get subscriber() {
        return subscriber();
      },
      ...overrides,
    } as KernelContext & { readonly alerts: AlertRecorder };
  };

  const own = build();
  return Object.defineProperties(
    {
      server,
      process: build,
      flush: async () => {
        await own.redis.commands.flushall();
      },
      close: async () => {
        for (const close of closing) await close();
        if (options.sql) await sql.close();
        await server.close();
      },
    },
    Object.getOwnPropertyDescriptors(own),
  ) as unknown as TestContext;
}

function lazySubscriber(redis: RedisConnection, clock: Clock, closing: (() => void)[]): () => Subscriber {
  let subscriber: Subscriber | undefined;
  return () => {
    if (!subscriber) {
      subscriber = new Subscriber(redis, clock);
      closing.push(() => subscriber?.close());
    }
    return subscriber;
  };
}

const noSql: Sql = {
  engine: "pglite",
  tables: () => {
    throw new Error("this test has no SQL engine: open its context with { sql: true }");
  },
  script: () => Promise.reject(new Error("this test has no SQL engine")),
  close: async () => {},
};

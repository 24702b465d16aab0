import type { Alerts } from "./alerts.ts";
import type { Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { RedisConnection, Subscriber } from "./redis/index.ts";
import type { Sql } from "./sql/index.ts";

/** What the kernel and the mechanisms need of their surroundings. Higher floors extend it; nothing else is passed around. */
export interface KernelContext {
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly alerts: Alerts;
  readonly metrics: Metrics;
  readonly redis: RedisConnection;
  /** Where pure caches live: the same server as `redis`, unless a second one is configured. */
  readonly cacheRedis: RedisConnection;
  readonly subscriber: Subscriber;
  readonly sql: Sql;
  /** `{role}-{os host}-{instance}`: who this process is to locks and operators. */
  readonly hostname: string;
}

import { z } from "zod";
import { domains } from "../domains.ts";
import { settings as accessSettings } from "../infrastructure/access/settings.ts";
import { jobSettings } from "../jobs/settings.ts";
import { type Config, loadConfig, readDotenv, type Setting, settings } from "../kernel/config.ts";
import type { RedisAddress } from "../kernel/redis/index.ts";
import { alertSettings } from "../mechanisms/alerts/index.ts";
import { statisticsSettings } from "../mechanisms/dated-counters/index.ts";
import { cacheSettings } from "../mechanisms/layered-cache/index.ts";
import { publicUrl } from "../messaging/email_templates/service.ts";
import { linkSettings } from "../messaging/links/service.ts";
import { objectStoreSettings } from "../providers/open-object-store.ts";
import { providerSettings } from "../providers/settings.ts";
import { settings as demoSettings } from "./demo/settings.ts";
import { settings as httpSettings } from "./http/settings.ts";

const SLOT = /^[A-Za-z0-9_.]{1,40}$/;

/** What the process itself needs to know, before any room is opened. */
export const houseSettings = {
  redisUrl: checked(
    settings.optionalText("redis.url", {
      env: "REDIS_URL",
      secret: true,
      doc: "where Redis is: redis://[user:password@]host:6379[/db], rediss:// with TLS, unix:///path/to/redis.sock, or sentinel://[user:password@]host:26379,host2:26379/master-name[/db]. Without it Carillon runs a redis-server of its own under the data folder",
    }),
    redisUrl,
  ),
  cacheRedisUrl: checked(
    settings.optionalText("cache.redisUrl", {
      env: "CARILLON_CACHE_REDIS_URL",
      secret: true,
      doc: "a second Redis for pure caches, in the same forms as REDIS_URL; only there an allkeys-lru policy fits. Without it caches live beside the state",
    }),
    redisUrl,
  ),
  databaseUrl: checked(
    settings.optionalText("database.url", {
      env: "DATABASE_URL",
      secret: true,
      doc: "where Postgres is: postgres://user:password@host:5432/database. Without it Carillon runs an embedded database under the data folder",
    }),
    (text) => (/^postgres(ql)?:\/\/./.test(text) ? undefined : "must begin with postgres://"),
  ),
  databaseConnections: settings.integer("database.connections", {
    default: 10,
    min: 1,
    max: 1000,
    doc: "connections to Postgres that one process keeps at most",
  }),
  dataDir: settings.text("data.dir", {
    default: ".carillon",
    doc: "the folder for what this machine keeps: the managed Redis, the embedded database, local files, pid files, secrets",
  }),
  instance: checked(
    settings.optionalText("instance", {
      doc: "the slot name of this process on its machine, kept over restarts; without it the first free number",
    }),
    (text) => (SLOT.test(text) ? undefined : "must be 1 to 40 letters, digits, dots or underscores"),
  ),
  redisFsync: settings.oneOf("redis.fsync", ["always", "everysec"], {
    default: "always",
    doc: "when the managed Redis writes to disk: always keeps every acknowledged write through a power cut, everysec may lose the last second and is faster",
  }),
  logLevel: settings.oneOf("log.level", ["trace", "debug", "info", "warn", "error", "fatal", "silent"], {
    default: "info",
    doc: "the least important lines that are logged",
  }),
  logFormat: settings.oneOf("log.format", ["auto", "pretty", "json"], {
    default: "auto",
    doc: "how log lines look: json for machines, pretty for people; auto is pretty in a terminal",
  }),
};

/** Every setting there is, in the order in which a reader wants them: the house's, the jobs', then room by room. */
export function allSettings(): readonly Setting<unknown>[] {
  const groups = [
    houseSettings,
    httpSettings,
    demoSettings,
    accessSettings,
    jobSettings,
    objectStoreSettings,
    ...providerSettings,
    cacheSettings,
    statisticsSettings,
    alertSettings,
    ...domains.map((room) => room.settings ?? {}),
  ];
  return [...new Set(groups.flatMap((group) => Object.values(group) as Setting<unknown>[]))];
}

/** Reads the environment and the `.env` file of the working directory. Raises `invalid_settings` with every fault at once. */
export function loadSettings(
  environment: Readonly<Record<string, string | undefined>>,
  workingDirectory: string,
): Config {
  const config = loadConfig(allSettings(), { environment, dotenv: readDotenv(`${workingDirectory}/.env`) });
  return withLinksToThisServer(config);
}

/** Links that nobody gave an address lead to this machine, and there to the port that the server listens on. */
function withLinksToThisServer(config: Config): Config {
  const port = config.get(httpSettings.port);
  if (port === 0 || port === httpSettings.port.default) return config;
  const left = [linkSettings.webRoot, publicUrl].filter(({ name }) =>
    config.effective.some(({ setting, source }) => setting.name === name && source === "default"),
  );
  return config.with(...left.map((setting) => [setting, `http://127.0.0.1:${port}`] as const));
}

/** What a REDIS_URL means. Raises a sentence about what is wrong with it. */
export function redisAddress(text: string): RedisAddress {
  const url = new URL(text.startsWith("sentinel://") ? text.replace(/,[^/]*/, "") : text);
  if (url.protocol === "redis:" || url.protocol === "rediss:") return { kind: "url", url: text };
  if (url.protocol === "unix:") return { kind: "socket", path: decodeURIComponent(url.pathname) };
  if (url.protocol !== "sentinel:") throw new TypeError("must begin with redis://, rediss://, unix:// or sentinel://");
  const [, hosts = "", path = ""] = /^sentinel:\/\/(?:[^@/]*@)?([^/]*)\/?(.*)$/.exec(text) ?? [];
  const [master, db] = path.split("/");
  if (!master) throw new TypeError("needs the master's name: sentinel://host:26379,host2:26379/master-name");
  return {
    kind: "sentinel",
    sentinels: hosts.split(",").map((each) => {
      const [host = "", port = "26379"] = each.split(":");
      return { host, port: Number(port) };
    }),
    master,
    username: decodeURIComponent(url.username) || undefined,
    password: decodeURIComponent(url.password) || undefined,
    db: db ? Number(db) : undefined,
  };
}

function redisUrl(text: string): string | undefined {
  try {
    redisAddress(text);
    return undefined;
  } catch (error) {
    return error instanceof TypeError && !("code" in error) ? error.message : "is not a URL";
  }
}

/** The same setting, refusing values for which `fault` has a reason. */
function checked(
  declared: Setting<string | undefined>,
  fault: (text: string) => string | undefined,
): Setting<string | undefined> {
  const schema = z.string().superRefine((text, context) => {
    const message = fault(text);
    if (message) context.addIssue({ code: "custom", message });
  });
  return { ...declared, schema: schema.optional() };
}

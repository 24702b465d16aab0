import { Redis, type RedisOptions } from "ioredis";
import type { Clock } from "../clock.ts";
import { systemClock } from "../clock.ts";
import { CarillonError, kernelErrors } from "../errors.ts";
import { standaloneTopology, type Topology } from "../keyspace/topology.ts";
import { limitPatience } from "./patience.ts";
import { declaredScripts, type Script, type ScriptArgument, type ScriptArguments, type ScriptKeys } from "./script.ts";
import { ScriptCommand } from "./script-command.ts";

/** Where Redis is. */
export type RedisAddress =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "socket"; readonly path: string; readonly db?: number }
  | {
      readonly kind: "sentinel";
      readonly sentinels: readonly { host: string; port: number }[];
      readonly master: string;
      readonly password?: string;
      readonly username?: string;
      readonly db?: number;
    };

const CONNECT_TIMEOUT_MS = 30_000;
const COMMAND_PATIENCE_SECONDS = 10;
const KEEP_ALIVE_MS = 300_000;
const IDEMPOTENT_REPEATS = 3;
const MOST_FORGOTTEN = 3;
/** A call with more arguments than these is worth a packet of its own. */
const MOST_PIPELINED = 64;

/**
 * One connection to the state server: commands by ioredis with auto-pipelining, scripts by `run`.
 *
 * A command that was sent and whose reply never came is not sent again by itself: only the caller knows whether a repeat
 * is harmless. `run` repeats scripts that are declared idempotent and raises `outcome_unknown` for all others.
 */
export class RedisConnection {
  readonly commands: Redis;
  readonly topology: Topology;
  readonly #clock: Clock;
  #scriptsLoaded: Promise<void> | undefined;
  #underWay = 0;

  constructor(commands: Redis, options: { topology?: Topology; clock?: Clock } = {}) {
    this.commands = commands;
    this.topology = options.topology ?? standaloneTopology;
    this.#clock = options.clock ?? systemClock;
    rejectWhenBroken(commands);
    commands.on("ready", () => {
      this.#scriptsLoaded = this.#loadScripts();
      this.#scriptsLoaded.catch(() => {});
    });
  }

  /** Resolves once every declared script is known to the server. */
  async ready(): Promise<void> {
    await this.commands.ping();
    await (this.#scriptsLoaded ?? this.#loadScripts());
  }

  /** Runs one script. Names of keys are documented names; the topology renders them. */
  async run<K extends readonly string[], A extends readonly string[], Reply>(
    script: Script<K, A, Reply>,
    keys: ScriptKeys<K>,
    args: ScriptArguments<A>,
  ): Promise<Reply> {
    const rendered = this.topology.scriptKeys(keys as readonly string[]);
    for (let attempt = 1; ; attempt++) {
      try {
        return script.reply((await this.#evaluate(script, rendered, args as ScriptArgument[])) as never);
      } catch (error) {
        if (!isConnectionLoss(error)) throw translate(error, script.name);
        if (!script.idempotent)
          throw kernelErrors.outcome_unknown({ message: `the reply to ${script.name} was lost`, cause: error });
        if (attempt > IDEMPOTENT_REPEATS) throw kernelErrors.redis_unavailable({ cause: error });
        await this.#clock.sleep(0.1 * attempt * 2 ** attempt + Math.random() * 0.3);
      }
    }
  }

  /** A connection of its own with the same address: for blocking commands and subscriptions. */
  duplicate(options: Partial<RedisOptions> = {}): Redis {
    const client = this.commands.duplicate({
      enableAutoPipelining: false,
      autoResubscribe: true,
      ...options,
    });
    rejectWhenBroken(client);
    return client;
  }

  async close(): Promise<void> {
    this.commands.disconnect();
  }

  async #evaluate(
    script: Script<readonly string[], readonly string[], unknown>,
    keys: readonly string[],
    args: ScriptArgument[],
  ) {
    this.#underWay++;
    try {
      for (let forgotten = 0; ; forgotten++)
        try {
          return await this.#send(script.sha, keys, args);
        } catch (error) {
          if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
          // It may be forgotten again before the repeat arrives; one that is never kept is no accident.
          if (forgotten === MOST_FORGOTTEN) throw error;
          await this.commands.script("LOAD", script.lua);
        }
    } finally {
      this.#underWay--;
    }
  }

  /** A call that finds the line idle goes out at once; small ones that come while it is under way are pipelined together. */
  #send(sha: string, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    if (this.#underWay > 1 && args.length <= MOST_PIPELINED)
      return this.commands.evalsha(sha, keys.length, ...keys, ...args);
    return this.commands.sendCommand(new ScriptCommand(sha, keys, args)) as Promise<unknown>;
  }

  async #loadScripts(): Promise<void> {
    await Promise.all(declaredScripts().map((script) => this.commands.script("LOAD", script.lua)));
  }
}

export function openRedis(
  address: RedisAddress,
  options: { topology?: Topology; clock?: Clock; connectionName?: string; patience?: number } = {},
): RedisConnection {
  const common: RedisOptions = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    enableAutoPipelining: true,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    connectionName: options.connectionName,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 6), 2000),
  };
  const client =
    address.kind === "url"
      ? new Redis(address.url, common)
      : address.kind === "socket"
        ? new Redis({ ...common, path: address.path, db: address.db })
        : new Redis({
            ...common,
            sentinels: [...address.sentinels],
            name: address.master,
            password: address.password,
            username: address.username,
            db: address.db,
          });
  // Without a listener an unreachable server would end the process; every command's own error says the same.
  client.on("error", () => {});
  limitPatience(client, options.patience ?? COMMAND_PATIENCE_SECONDS);
  return new RedisConnection(client, options);
}

/**
 * A client that does not resend leaves commands that were under way when the connection broke without any answer: a
 * blocking one, which has no timeout, for good. They are rejected here; those not sent yet still wait for the reconnect.
 */
function rejectWhenBroken(client: Redis): void {
  const { flushQueue } = client as unknown as {
    flushQueue(this: Redis, error: Error, options: { offlineQueue: boolean }): void;
  };
  client.on("close", () => flushQueue.call(client, new Error("Connection is closed."), { offlineQueue: false }));
}

/** True for errors that leave open whether the server did what it was asked. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    /Connection is closed|Command timed out|Stream isn't writeable|ECONNRESET|EPIPE|ECONNREFUSED|ENOENT.*sock/.test(
      error.message,
    ) ||
    error.name === "AbortError" ||
    error.name === "MaxRetriesPerRequestError" ||
    error.name === "ConnectionLost"
  );
}

function translate(error: unknown, what: string): unknown {
  if (error instanceof CarillonError || !(error instanceof Error)) return error;
  if (error.message.includes("WRONGTYPE"))
    return kernelErrors.wrong_type({ message: `${what}: a key has the wrong Redis type`, cause: error });
  if (error.message.startsWith("OOM")) return kernelErrors.redis_full({ cause: error });
  return error;
}

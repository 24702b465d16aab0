import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { Redis } from "ioredis";

/**
 * A Redis server as a child process, listening on a unix socket only, with its data beside it.
 *
 * Life: `startRedisServer` -> running -> `stop` (clean, data saved) or `kill` (as a crash would). A server that a dead
 * parent left behind still answers on the socket; the next start adopts it instead of starting a second one on its data.
 */
export interface RedisServer {
  readonly socketPath: string;
  readonly pid: number | undefined;
  /** True when the server was already running and this process only joined it. */
  readonly adopted: boolean;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

export interface RedisServerOptions {
  readonly directory: string;
  /** `always` keeps every acknowledged write through a crash; `off` keeps nothing. */
  readonly persistence: "always" | "everysec" | "off";
  /** Further `redis-server` arguments. */
  readonly extra?: readonly string[];
}

const BINARIES = ["redis-server", "valkey-server"];
const START_TIMEOUT_MS = 15_000;

/** The full path of a Redis or Valkey server on PATH. */
export function findRedisServer(path = process.env.PATH ?? ""): string | undefined {
  const folders = [...path.split(delimiter), "/usr/sbin", "/usr/local/sbin"].filter(Boolean);
  for (const folder of folders)
    for (const binary of BINARIES)
      try {
        accessSync(join(folder, binary), constants.X_OK);
        return join(folder, binary);
      } catch {}
  return undefined;
}

export async function startRedisServer(options: RedisServerOptions): Promise<RedisServer> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const socketPath = join(options.directory, "redis.sock");
  if (await answers(socketPath)) return adopt(socketPath);

  const binary = findRedisServer();
  if (!binary) throw new Error("no redis-server or valkey-server on PATH");
  const persistence =
    options.persistence === "off"
      ? ["--appendonly", "no", "--save", ""]
      : ["--appendonly", "yes", "--appendfsync", options.persistence, "--save", ""];
  const child = spawn(
    binary,
    [
      ...["--port", "0", "--unixsocket", socketPath, "--unixsocketperm", "700", "--dir", options.directory],
      ...["--daemonize", "no", "--maxmemory-policy", "noeviction", "--databases", "16", "--loglevel", "warning"],
      ...persistence,
      ...(options.extra ?? []),
    ],
    // A group of its own: Ctrl-C in the terminal stops Carillon first, and Carillon stops Redis last.
    { stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(socketPath))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill("SIGKILL");
      throw new Error(`${binary} did not start:\n${Buffer.concat(output).toString("utf8").slice(-2000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  child.stdout.removeAllListeners("data").resume();
  child.stderr.removeAllListeners("data").resume();
  for (const stream of [child.stdout, child.stderr]) (stream as unknown as { unref(): void }).unref();
  child.unref();
  return {
    socketPath,
    pid: child.pid,
    adopted: false,
    stop: () => stopped(child, "SIGTERM"),
    kill: () => stopped(child, "SIGKILL"),
  };
}

function adopt(socketPath: string): RedisServer {
  const shutdown = async (mode: "SAVE" | "NOSAVE") => {
    const client = new Redis({ path: socketPath, maxRetriesPerRequest: 0, retryStrategy: () => null });
    client.on("error", () => {});
    // A successful SHUTDOWN answers by closing the connection, which the client reports as an error.
    await client.call("SHUTDOWN", mode).catch(() => {});
    client.disconnect();
  };
  return { socketPath, pid: undefined, adopted: true, stop: () => shutdown("SAVE"), kill: () => shutdown("NOSAVE") };
}

function stopped(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.ref();
    child.once("exit", () => resolve());
    child.kill(signal);
  });
}

async function answers(socketPath: string): Promise<boolean> {
  const client = new Redis({ path: socketPath, lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on("error", () => {});
  try {
    await client.connect();
    // PING answers LOADING while the append-only file is still being read.
    return (await client.ping()) === "PONG";
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}

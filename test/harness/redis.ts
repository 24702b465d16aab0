import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, VirtualClock } from "../../src/kernel/clock.ts";
import { openRedis, type RedisConnection, type RedisServer, startRedisServer } from "../../src/kernel/redis/index.ts";
import { watchNames, writeNamesSeen } from "./names-seen.ts";
import { Unanswered } from "./unanswered.ts";

/** A real Redis of this test file's own, in a temporary folder; gone when the file is done. */
export interface TestRedis {
  readonly server: RedisServer;
  readonly directory: string;
  connect(clock?: Clock): RedisConnection;
  /** Waits until every command of these connections is answered, and nobody had more to say to that. */
  settled(): Promise<void>;
  /** Every key's TTL follows this virtual clock, in steps of at least `grain` seconds. */
  obey(clock: VirtualClock, grain?: number): void;
  /** Stops as a crash would and starts again on the same data. */
  crashAndRestart(): Promise<void>;
  close(): Promise<void>;
}

/** Shortens every TTL by the given milliseconds and deletes what reaches zero. Only tests may walk all keys at once. */
const SHORTEN_TTLS = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then
    if left <= tonumber(ARGV[1]) then redis.call('DEL', key) else redis.call('PEXPIRE', key, left - ARGV[1]) end
  end
end`;

export async function startTestRedis(
  options: { persistence?: "always" | "everysec" | "off"; extra?: readonly string[]; staged?: boolean } = {},
): Promise<TestRedis> {
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-redis-"));
  const start = () =>
    startRedisServer({ directory, persistence: options.persistence ?? "off", extra: options.extra ?? [] });
  let server = await start();
  let watch = await watchNames(server.socketPath, options);
  // A test process that dies must not leave its server behind.
  const onExit = () => void (server.pid && process.kill(server.pid, "SIGKILL"));
  process.once("exit", onExit);
  const connections: RedisConnection[] = [];
  const unanswered = new Unanswered();
  let looking: RedisConnection | undefined;
  const open = (clock?: Clock) => {
    const connection = openRedis({ kind: "socket", path: server.socketPath }, { clock });
    connections.push(connection);
    return connection;
  };
  const connect = (clock?: Clock) => {
    const connection = open(clock);
    unanswered.watch(connection.commands);
    return connection;
  };
  return {
    get server() {
      return server;
    },
    directory,
    connect,
    settled() {
      looking ??= open();
      return unanswered.settled(looking.commands);
    },
    obey(clock, grain = 0) {
      const connection = connect();
      let owed = 0;
      clock.onAdvance(async (seconds) => {
        owed += seconds;
        if (owed < grain) return;
        const shortened = owed;
        owed = 0;
        await connection.commands.eval(SHORTEN_TTLS, 0, Math.round(shortened * 1000));
      });
    },
    async crashAndRestart() {
      await watch?.settled();
      await server.kill();
      server = await start();
      watch = await watchNames(server.socketPath, options);
    },
    async close() {
      await watch?.settled();
      watch?.close();
      writeNamesSeen();
      for (const connection of connections) await connection.close();
      process.off("exit", onExit);
      await server.kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

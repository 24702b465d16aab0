import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, type VirtualClock } from "../../kernel/clock.ts";
import { findRedisServer, openRedis, type RedisConnection, startRedisServer } from "../../kernel/redis/index.ts";
import { foundationErrors } from "../foundation.ts";

/** Seconds of virtual time after which keys notice that time has passed. */
const GRAIN = 3600;
const PAGE = 1000;

/**
 * A Redis of its own for a past that is lived again: the house's Redis holds the present, and two times in one keyspace
 * would be one too many. Its keys age with the virtual clock. It is thrown away in the end.
 */
export interface ScratchRedis {
  readonly connection: RedisConnection;
  /** Lets every key age up to the present of the virtual clock. */
  age(): Promise<void>;
  close(): Promise<void>;
}

export async function openScratchRedis(clock: VirtualClock): Promise<ScratchRedis> {
  if (!findRedisServer()) throw foundationErrors.redis_missing();
  const directory = mkdtempSync(join(tmpdir(), "carillon-demo-"));
  const server = await startRedisServer({ directory, persistence: "off" });
  // Real time, since connections are lost and made in real time.
  const connection = openRedis({ kind: "socket", path: server.socketPath }, { clock: systemClock });
  // A process that ends in a hurry must not leave its server behind.
  const onExit = () => void (server.pid && process.kill(server.pid, "SIGKILL"));
  process.once("exit", onExit);
  let owed = 0;
  const age = async () => {
    const passed = Math.round(owed * 1000);
    owed = 0;
    if (passed > 0) await shorten(connection, passed);
  };
  const stop = clock.onAdvance(async (seconds) => {
    owed += seconds;
    if (owed >= GRAIN) await age();
  });
  return {
    connection,
    age,
    async close() {
      stop();
      await connection.close();
      process.off("exit", onExit);
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Takes milliseconds off every lifetime; whatever has none left goes. */
async function shorten({ commands }: RedisConnection, milliseconds: number): Promise<void> {
  for await (const keys of pagesOf(commands)) {
    const left = await Promise.all(keys.map((key) => commands.pttl(key)));
    await Promise.all(
      keys.flatMap((key, at) => {
        if (left[at]! < 0) return [];
        return left[at]! <= milliseconds ? [commands.del(key)] : [commands.pexpire(key, left[at]! - milliseconds)];
      }),
    );
  }
}

/** All keys, a page at a time. */
export async function* pagesOf(commands: RedisConnection["commands"]): AsyncGenerator<readonly string[]> {
  let cursor = "0";
  do {
    const [next, keys] = await commands.scan(cursor, "COUNT", PAGE);
    cursor = next;
    if (keys.length > 0) yield keys;
  } while (cursor !== "0");
}

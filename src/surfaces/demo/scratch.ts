import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock, type VirtualClock } from "../../kernel/clock.ts";
import { findRedisServer, openRedis, type RedisConnection, startRedisServer } from "../../kernel/redis/index.ts";
import { foundationErrors } from "../foundation.ts";
import { age } from "./scripts.ts";

/** Seconds of virtual time after which keys notice that time has passed. */
const GRAIN = 3600;
const PAGE = 1000;
/** Digits of a time in its file, so that the next overwrites it whole. */
const WIDTH = 20;

/**
 * A Redis of its own for a past that is lived again: the house's Redis holds the present, and two times in one keyspace
 * would be one too many. Its keys age with the virtual clock, whose time stands in a file beside it.
 *
 *   nothing ──opened──▶ in use ──closed──▶ left behind ──opened again──▶ in use        (goes on at the time in the file)
 *                         │                     └──thrown away──▶ nothing
 *                         └──its process dies──▶ left behind, its server perhaps still running
 *
 * One process at a time uses the folder. So whatever answers on the folder's socket when it is opened is its own server
 * that a dead process left behind, and no other.
 */
export interface ScratchRedis {
  readonly connection: RedisConnection;
  /** Lets every key age up to the present of the virtual clock. */
  age(): Promise<void>;
  /** Stops the server. What it holds stays, for a run that goes on. */
  close(): Promise<void>;
}

/** Where the clock stood when a run died; nothing where none did. */
export function timeLeftBehind(folder: string): number | undefined {
  try {
    const time = Number(readFileSync(timeFile(folder), "utf8"));
    return time > 0 ? time : undefined;
  } catch {
    return undefined;
  }
}

/** Ends a server that may have been left behind in the folder, and removes the folder. */
export async function throwAway(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  // Joins the server that still runs there, if one does.
  const server = await startRedisServer({ directory: folder, persistence: "everysec" });
  await server.kill();
  rmSync(folder, { recursive: true, force: true });
}

export async function openScratchRedis(folder: string, clock: VirtualClock): Promise<ScratchRedis> {
  if (!findRedisServer()) throw foundationErrors.redis_missing();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const server = await startRedisServer({ directory: folder, persistence: "everysec" });
  // Real time, since connections are lost and made in real time.
  const connection = openRedis({ kind: "socket", path: server.socketPath }, { clock: systemClock });
  await connection.ready();
  // A process that ends in a hurry must not leave its server behind.
  const onExit = () => void (server.pid && process.kill(server.pid, "SIGKILL"));
  process.once("exit", onExit);
  const file = openSync(timeFile(folder), "w", 0o600);
  const noteTime = () => void writeSync(file, clock.now().toFixed(3).padStart(WIDTH), 0);
  noteTime();
  let owed = 0;
  const ageNow = async () => {
    const passed = Math.round(owed * 1000);
    owed = 0;
    if (passed > 0) await connection.run(age, [], [passed]);
  };
  const stop = clock.onAdvance(async (seconds) => {
    noteTime();
    owed += seconds;
    if (owed >= GRAIN) await ageNow();
  });
  return {
    connection,
    age: ageNow,
    async close() {
      stop();
      closeSync(file);
      await connection.close();
      process.off("exit", onExit);
      await server.stop();
    },
  };
}

const timeFile = (folder: string) => join(folder, "time");

/** All keys, a page at a time. */
export async function* pagesOf(commands: RedisConnection["commands"]): AsyncGenerator<readonly string[]> {
  let cursor = "0";
  do {
    const [next, keys] = await commands.scan(cursor, "COUNT", PAGE);
    cursor = next;
    if (keys.length > 0) yield keys;
  } while (cursor !== "0");
}

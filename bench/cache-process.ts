import { BentoCache, bentostore } from "bentocache";
import { memoryDriver } from "bentocache/drivers/memory";
import { redisBusDriver, redisDriver } from "bentocache/drivers/redis";
import { Redis } from "ioredis";
import { z } from "zod";
import { AlertRecorder } from "../src/kernel/alerts.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { headerFrame } from "../src/kernel/keyspace/frames.ts";
import { channel, expires, family, json, literal, string, text } from "../src/kernel/keyspace/index.ts";
import { silentLog } from "../src/kernel/log.ts";
import { Metrics } from "../src/kernel/metrics.ts";
import { openRedis, Subscriber } from "../src/kernel/redis/index.ts";
import { type LayeredCache, LayeredCaches, messages } from "../src/mechanisms/layered-cache/index.ts";

/**
 * The two caches that are compared, each as its documentation would set it up: memory, then Redis, with news of changes
 * over pub/sub. Run as a program of its own, this file is one of the processes that miss at the same time.
 */
export const TTL_SECONDS = 600;
export const MEMORY_ENTRIES = 100_000;

const Profile = z.object({ id: z.string(), name: z.string(), tags: z.array(z.string()), visits: z.number() });
export type Profile = z.infer<typeof Profile>;

export function profile(id: string): Profile {
  return { id, name: `Person number ${id}`, tags: ["early", "weekly", "quiet"], visits: 42 };
}

const profiles = json(Profile);
const header = headerFrame(z.object({ uid: z.string(), min_checked_at: z.number(), have_updated: z.boolean() }));
const keys = family("bench_cache", {
  value: string("bench_cache:{uid}", profiles, { doc: "a cached profile", ttl: expires(TTL_SECONDS) }),
  lock: string("bench_cache:lock:{uid}", literal("1"), { doc: "who fills it", ttl: expires(3) }),
  owner: string("bench_cache:lock:{uid}:owner", text, { doc: "the filler's token", ttl: expires(3) }),
  frames: channel("ps:bench_cache", header, { doc: "fills and purges" }),
});

export type Source = (ids: readonly string[]) => Promise<ReadonlyMap<string, Profile>>;

export interface Ours {
  readonly cache: LayeredCache<Profile>;
  readonly caches: LayeredCaches;
  /** Calls back after a purge has been applied here. */
  onPurged(listener: () => void): Promise<void>;
  close(): Promise<void>;
}

export async function openOurs(socketPath: string, source: Source): Promise<Ours> {
  const redis = openRedis({ kind: "socket", path: socketPath });
  await redis.ready();
  const subscriber = new Subscriber(redis, systemClock);
  const caches = new LayeredCaches({
    clock: systemClock,
    redis,
    cacheRedis: redis,
    subscriber,
    alerts: new AlertRecorder(),
    metrics: new Metrics(),
    log: silentLog,
  });
  const cache = await caches.open<Profile>({
    name: "bench",
    codec: profiles,
    ttl: TTL_SECONDS,
    maxEntries: MEMORY_ENTRIES,
    redis: { key: (uid) => keys.value({ uid }), ttl: TTL_SECONDS },
    lock: { key: (uid) => keys.lock({ uid }), owner: (uid) => keys.owner({ uid }) },
    channel: {
      name: keys.frames(),
      frames: messages(header, {
        write: (message) =>
          message.kind === "fill"
            ? {
                header: { uid: message.id, min_checked_at: message.checkedAt ?? 0, have_updated: true },
                value: message.encoded,
              }
            : {
                header: { uid: message.ids[0] ?? "", min_checked_at: message.minCheckedAt ?? 0, have_updated: false },
                value: Buffer.alloc(0),
              },
        read: ({ header: { uid, min_checked_at, have_updated }, value }) =>
          have_updated
            ? { kind: "fill", id: uid, encoded: value, checkedAt: min_checked_at }
            : { kind: "purge", ids: [uid], minCheckedAt: min_checked_at },
      }),
    },
    source,
  });
  return {
    cache,
    caches,
    onPurged: async (listener) => {
      // Handlers run in the order they were added, so this one runs after the cache has dropped its entry.
      await subscriber.subscribe(keys.frames(), (raw) => {
        if (raw.includes('"have_updated":false')) listener();
      });
    },
    close: async () => {
      await caches.close();
      subscriber.close();
      await redis.close();
    },
  };
}

export interface Peer {
  readonly bento: ReturnType<typeof makeBento>;
  close(): Promise<void>;
}

function makeBento(connection: Redis, serialize: boolean) {
  return new BentoCache({
    default: "profiles",
    stores: {
      profiles: bentostore()
        .useL1Layer(memoryDriver({ maxItems: MEMORY_ENTRIES, serialize }))
        .useL2Layer(redisDriver({ connection }))
        .useBus(redisBusDriver({ connection })),
    },
  });
}

/**
 * `pipelined` suits many calls in flight; one after another it only costs time. Memory without serialising is its faster
 * way, but with it a process fails on news of a key that another one has set, so several processes need `serialize`.
 */
export async function openPeer(
  socketPath: string,
  options: { pipelined: boolean; serialize?: boolean },
): Promise<Peer> {
  const connection = new Redis({ path: socketPath, enableAutoPipelining: options.pipelined });
  const bento = makeBento(connection, options.serialize ?? false);
  await bento.get({ key: "nobody" });
  // It subscribes in the background and says nowhere when that is done.
  await systemClock.sleep(0.2);
  return {
    bento,
    close: async () => {
      await bento.disconnectAll().catch(() => {});
      connection.disconnect();
    },
  };
}

export type Request =
  /** Ask for this id many times at once. */
  | { readonly ask: string }
  /** Hold copies of these ids, and say when each is dropped. */
  | { readonly hold: readonly string[] };

export type Answer =
  | { readonly kind: "ready" | "asked" | "held" }
  /** On the clock that all processes of a machine share, in nanoseconds. */
  | { readonly kind: "dropped"; readonly at: string };

/** One of the processes: does what its parent asks for, with the cache of its side. */
async function serveParent(): Promise<void> {
  const { SIDE, SOCKET, ASKS } = process.env as { SIDE: string; SOCKET: string; ASKS: string };
  const counting = openRedis({ kind: "socket", path: SOCKET });
  const answer = (message: Answer) => void process.send?.(message);
  const dropped = () => answer({ kind: "dropped", at: String(process.hrtime.bigint()) });
  const read = async (id: string) => {
    await counting.commands.hincrby("source_reads", id, 1);
    await systemClock.sleep(0.02);
    return profile(id);
  };
  let get: (id: string) => Promise<unknown>;
  if (SIDE === "ours") {
    const ours = await openOurs(
      SOCKET,
      async (ids) => new Map(await Promise.all(ids.map(async (id) => [id, await read(id)] as const))),
    );
    await ours.onPurged(dropped);
    get = (id) => ours.cache.get(id);
  } else {
    const { bento } = await openPeer(SOCKET, { pipelined: true, serialize: true });
    bento.on("bus:message:received", ({ message }) => {
      // The news is told just before the copy is dropped, in the same turn.
      if (message.type === "delete") queueMicrotask(dropped);
    });
    get = (id) => bento.getOrSet({ key: id, ttl: TTL_SECONDS * 1000, factory: () => read(id) });
  }
  process.on("message", async (request: Request) => {
    if ("hold" in request) await Promise.all(request.hold.map(get));
    else await Promise.all(Array.from({ length: Number(ASKS) }, () => get(request.ask)));
    answer({ kind: "hold" in request ? "held" : "asked" });
  });
  answer({ kind: "ready" });
}

if (process.env.SIDE && process.send) await serveParent();

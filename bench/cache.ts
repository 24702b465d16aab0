import { type ChildProcess, fork } from "node:child_process";
import { openRedis } from "../src/kernel/redis/index.ts";
import {
  type Answer,
  type Ours,
  openOurs,
  openPeer,
  type Peer,
  profile,
  type Request,
  TTL_SECONDS,
} from "./cache-process.ts";
import { measure, median, peerVersion, perSecond, type Row, runBench, temporaryRedis } from "./kit.ts";

/**
 * Our layered cache beside BentoCache, both with memory and Redis layers and a pub/sub bus on one server. The peer runs
 * with the settings that suit it best in each row: objects unserialised in memory, auto-pipelining only when many calls
 * are in flight. Ours runs with its fill locks and fencing on throughout, which the peer has no equivalent of.
 */
const ROUNDS = 7;
/** One in flight waits for the machine more than for the code: many short rounds, side by side, meet the same machine. */
const SHORT_ROUNDS = 61;
const SHORT_ROUND = 300;
const PROCESSES = 4;
const CONCURRENT_MISSES = 1000;
const IN_FLIGHT = 100;
const BATCH = 200;
const INVALIDATIONS = 1000;
const PEER = "bentocache";

let serial = 0;
const freshIds = (count: number) => Array.from({ length: count }, () => `u${++serial}`);

/** `count` calls with `inFlight` of them on their way at any time. */
function rate(ids: readonly string[], inFlight: number, call: (id: string) => Promise<unknown>): Promise<number> {
  return perSecond(ids.length, async () => {
    let next = 0;
    const lane = async () => {
      while (next < ids.length) await call(ids[next++]!);
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
  });
}

const source = async (ids: readonly string[]) => new Map(ids.map((id) => [id, profile(id)]));
const read = (bento: Peer["bento"]) => (id: string) =>
  bento.getOrSet({ key: id, ttl: TTL_SECONDS * 1000, factory: async () => profile(id) });

export async function run(): Promise<readonly Row[]> {
  const server = await temporaryRedis();
  // The rows with several instances come first, so that the others' subscriptions do not take part in them.
  const rows: Row[] = [await propagation(server.socketPath), await sourceReads(server.socketPath)];
  const ours = await openOurs(server.socketPath, source);
  const peer = await openPeer(server.socketPath, { pipelined: false });
  const pipelinedPeer = await openPeer(server.socketPath, { pipelined: true });
  try {
    rows.push(await memoryHits(ours, peer));
    for (const inFlight of [1, IN_FLIGHT]) {
      const suited = inFlight === 1 ? peer : pipelinedPeer;
      rows.push(await redisHits(ours, server.socketPath, inFlight));
      rows.push(await missesAndFills(ours, suited, inFlight));
    }
    rows.push(await batches(ours, pipelinedPeer));
  } finally {
    await ours.close();
    await peer.close();
    await pipelinedPeer.close();
    await server.close();
  }
  return runBench("cache", "Layered cache", rows, {
    redis: server.version,
    peer: `${PEER} ${peerVersion(PEER)}`,
    command: "npm run bench -- cache",
  });
}

async function memoryHits(ours: Ours, peer: Peer): Promise<Row> {
  const ids = freshIds(1000);
  await ours.cache.getMany(ids);
  const get = read(peer.bento);
  await Promise.all(ids.map(get));
  const many = Array.from({ length: 100 }, () => ids).flat();
  return await measure(ROUNDS, {
    metric: "hit in memory",
    unit: "gets/s",
    peerName: PEER,
    ours: () => rate(many, 1, (id) => ours.cache.get(id)),
    peer: () => rate(many, 1, get),
  });
}

async function redisHits(ours: Ours, socketPath: string, inFlight: number): Promise<Row> {
  const ids = freshIds(inFlight === 1 ? SHORT_ROUND : 10_000);
  await ours.cache.getMany(ids);
  await ours.caches.caughtUp();
  const pipelined = inFlight > 1;
  const filler = await openPeer(socketPath, { pipelined });
  await Promise.all(ids.map(read(filler.bento)));
  await filler.close();
  return await measure(inFlight === 1 ? SHORT_ROUNDS : ROUNDS, {
    metric: `hit in Redis, ${inFlight} in flight`,
    unit: "gets/s",
    peerName: PEER,
    ours: () => {
      ours.cache.evict();
      return rate(ids, inFlight, (id) => ours.cache.get(id));
    },
    peer: async () => {
      const peer = await openPeer(socketPath, { pipelined });
      const result = await rate(ids, inFlight, read(peer.bento));
      await peer.close();
      return result;
    },
  });
}

async function missesAndFills(ours: Ours, peer: Peer, inFlight: number): Promise<Row> {
  const count = inFlight === 1 ? SHORT_ROUND : 10_000;
  const get = read(peer.bento);
  return await measure(inFlight === 1 ? SHORT_ROUNDS : ROUNDS, {
    metric: `miss and fill, ${inFlight} in flight`,
    unit: "gets/s",
    peerName: PEER,
    ours: () => rate(freshIds(count), inFlight, (id) => ours.cache.get(id)),
    peer: () => rate(freshIds(count), inFlight, get),
  });
}

/** The peer has no call for many keys; asking for all at once is its way. */
async function batches(ours: Ours, peer: Peer): Promise<Row> {
  const count = 50;
  const groups = () => Array.from({ length: count }, () => freshIds(BATCH));
  const all = async (ask: (ids: readonly string[]) => Promise<unknown>) => {
    const asked = groups();
    return await perSecond(count * BATCH, async () => {
      for (const ids of asked) await ask(ids);
    });
  };
  const get = read(peer.bento);
  return await measure(ROUNDS, {
    metric: `batch of ${BATCH} misses`,
    unit: "gets/s",
    peerName: PEER,
    ours: () => all((ids) => ours.cache.getMany(ids)),
    peer: () => all((ids) => Promise.all(ids.map(get))),
  });
}

/** From the call in one process until another has dropped its copy; the median of many. */
async function propagation(socketPath: string): Promise<Row> {
  const ours = await openOurs(socketPath, source);
  const peer = await openPeer(socketPath, { pipelined: false });
  const [ourProcess] = (await startProcesses("ours", socketPath, 1)) as [ChildProcess];
  const [peerProcess] = (await startProcesses("peer", socketPath, 1)) as [ChildProcess];
  const p50 = async (child: ChildProcess, drop: (id: string) => Promise<unknown>) => {
    const ids = freshIds(INVALIDATIONS);
    await ask(child, { hold: ids });
    const taken: number[] = [];
    for (const id of ids) {
      const answer = answerOf(child);
      const started = process.hrtime.bigint();
      const finished = drop(id);
      const message = await answer;
      if (message.kind === "dropped") taken.push(Number(BigInt(message.at) - started) / 1000);
      await finished;
    }
    return median(taken);
  };
  try {
    return await measure(ROUNDS, {
      metric: "invalidation reaches another process, p50",
      unit: "µs",
      better: "lower",
      peerName: PEER,
      ours: () => p50(ourProcess, (id) => ours.cache.purge(id)),
      peer: () => p50(peerProcess, (id) => peer.bento.delete({ key: id })),
    });
  } finally {
    for (const child of [ourProcess, peerProcess]) child.kill("SIGKILL");
    await ours.close();
    await peer.close();
  }
}

/** How often the source is read when processes miss one id at the same time: once is enough. */
async function sourceReads(socketPath: string): Promise<Row> {
  const counts = openRedis({ kind: "socket", path: socketPath });
  const ourProcesses = await startProcesses("ours", socketPath, PROCESSES);
  const peerProcesses = await startProcesses("peer", socketPath, PROCESSES);
  const reads = async (processes: readonly ChildProcess[]) => {
    const [id] = freshIds(1) as [string];
    await Promise.all(processes.map((child) => ask(child, { ask: id })));
    return Number(await counts.commands.hget("source_reads", id));
  };
  try {
    return await measure(ROUNDS, {
      metric: `source reads for ${CONCURRENT_MISSES} misses in ${PROCESSES} processes`,
      unit: "reads",
      better: "lower",
      peerName: PEER,
      ours: () => reads(ourProcesses),
      peer: () => reads(peerProcesses),
    });
  } finally {
    for (const child of [...ourProcesses, ...peerProcesses]) child.kill("SIGKILL");
    await counts.close();
  }
}

async function startProcesses(side: string, socketPath: string, count: number): Promise<ChildProcess[]> {
  const children = Array.from({ length: count }, () =>
    fork(new URL("./cache-process.js", import.meta.url), {
      env: { ...process.env, SIDE: side, SOCKET: socketPath, ASKS: String(CONCURRENT_MISSES / PROCESSES) },
    }),
  );
  await Promise.all(children.map(answerOf));
  return children;
}

function ask(child: ChildProcess, request: Request): Promise<Answer> {
  const answer = answerOf(child);
  child.send(request);
  return answer;
}

function answerOf(child: ChildProcess): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`a process ended with ${code}`));
    child.once("exit", onExit);
    child.once("message", (answer) => {
      child.off("exit", onExit);
      resolve(answer as Answer);
    });
  });
}

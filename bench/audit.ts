import { spawn } from "node:child_process";
import { once } from "node:events";
import { z } from "zod";
import { systemClock } from "../src/kernel/clock.ts";
import { Config } from "../src/kernel/config.ts";
import {
  audit,
  Catalogue,
  decimal,
  expires,
  family,
  fields,
  hash,
  integer,
  json,
  list,
  mapOf,
  set,
  string,
  text,
  zset,
} from "../src/kernel/keyspace/index.ts";
import { openRedis } from "../src/kernel/redis/index.ts";
import type { Sql } from "../src/kernel/sql/index.ts";
import { type Row, temporaryRedis, writeResults } from "./kit.ts";

/** The shapes that most keys of an installation have, in about the proportions of a busy one. */
const keys = family("bench", {
  flag: string("bench:flag:{uid}", integer, { doc: "flags that expire", ttl: expires(86_400) }),
  session: string(
    "bench:session:{uid}",
    json(z.object({ sub: z.string(), at: z.number(), scopes: z.array(z.string()) })),
    {
      doc: "JSON values",
      ttl: expires(86_400),
      secret: true,
    },
  ),
  pending: hash("bench:pending:{uid}", fields({ uid: text, tries: integer, worry_at: decimal, body: text }), {
    doc: "hashes with known fields",
  }),
  counts: hash("bench:counts:{day}", mapOf(integer), { doc: "hashes of counters" }),
  queue: list("bench:queue:{uid}", json(z.object({ uid: z.string() })), { doc: "short queues" }),
  due: zset("bench:due:{uid}", text, { doc: "sorted sets", score: "when" }),
  seen: set("bench:seen:{uid}", text, { doc: "sets" }),
});

const KEYS = 1_000_000;
const BATCH = 10_000;

/** Fills one Redis with a million keys and audits them. `npm run bench -- audit [keys]`. */
export async function run(args: readonly string[] = []): Promise<void> {
  const wanted = Number(args[0] ?? KEYS);
  const redis = await temporaryRedis();
  try {
    const connection = await redis.connect();
    console.log(`\nFilling ${wanted.toLocaleString("en-US")} keys of ${Object.keys(keys).length} patterns …`);
    await fillElsewhere(redis.socketPath, wanted);
    const catalogue = new Catalogue([{ name: "bench", keys: [keys] }]);
    let peak = 0;
    const ctx = {
      redis: connection,
      cacheRedis: connection,
      sql: undefined as unknown as Sql,
      clock: systemClock,
      config: new Config([]),
    };
    const result = await audit(ctx, catalogue, {
      onProgress: () => {
        peak = Math.max(peak, process.memoryUsage.rss());
      },
    });
    if (!result.ok || result.keys !== wanted)
      throw new Error(
        `expected ${wanted} sound keys: ${result.keys} seen, ${JSON.stringify(result.findings.slice(0, 3))}`,
      );
    const rows = [
      { metric: `audit of ${wanted.toLocaleString("en-US")} keys`, unit: "s", ours: round(result.seconds), limit: 30 },
      { metric: "keys per second", unit: "keys/s", ours: Math.round(wanted / result.seconds), limit: null },
      { metric: "peak memory of the process", unit: "MB", ours: Math.round(peak / 1e6), limit: 200 },
    ].map((row) => ({ ...row, peer: null, peerName: null, ratio: null }));
    for (const { metric, unit, ours, limit } of rows)
      console.log(`${metric.padEnd(30)} ${String(ours).padStart(10)} ${unit}${limit ? ` (limit ${limit})` : ""}`);
    // There is no peer to compare with, so these rows have limits where others have ratios.
    writeResults("audit", rows as unknown as Row[], { redis: redis.version, keys: wanted });
  } finally {
    await redis.close();
  }
}

/** In a process of its own, so that the memory measured here is the audit's alone. */
async function fillElsewhere(socketPath: string, wanted: number): Promise<void> {
  const program = `import(${JSON.stringify(import.meta.url)}).then((own) => own.fill(${JSON.stringify(socketPath)}, ${wanted}))`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" });
  const [status] = await once(child, "exit");
  if (status !== 0) throw new Error(`filling ended with status ${status}`);
}

export async function fill(socketPath: string, wanted: number): Promise<void> {
  const connection = openRedis({ kind: "socket", path: socketPath });
  const { commands } = connection;
  for (let from = 0; from < wanted; from += BATCH) {
    const pipeline = commands.pipeline();
    for (let n = from; n < Math.min(from + BATCH, wanted); n++) {
      const uid = n.toString(36);
      const kind = n % 20;
      if (kind < 6) pipeline.set(keys.flag({ uid }), n, "EX", 86_000);
      else if (kind < 10)
        pipeline.set(keys.session({ uid }), JSON.stringify({ sub: uid, at: n, scopes: ["read", "write"] }), "EX", 3600);
      else if (kind < 14)
        pipeline.hset(keys.pending({ uid }), "uid", uid, "tries", 1, "worry_at", n + 0.5, "body", "x".repeat(100));
      else if (kind < 15) pipeline.hset(keys.counts({ day: n }), "queued", n, "sent", 2, "failed", 0);
      else if (kind < 17) pipeline.rpush(keys.queue({ uid }), `{"uid":"${uid}"}`, '{"uid":"b"}');
      else if (kind < 19) pipeline.zadd(keys.due({ uid }), n, "a", n + 1, "b");
      else pipeline.sadd(keys.seen({ uid }), "a", "b", "c");
    }
    await pipeline.exec();
  }
  await connection.close();
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestRedis, type TestRedis } from "../../../test/harness/redis.ts";

/**
 * Real processes against a real Redis. Each child is this program: it opens a cache whose source counts its reads in
 * Redis, reports ready, and on "go" asks for one id many times at once.
 */
const CHILD = `
const [{ openRedis, Subscriber }, { systemClock }, { LayeredCaches, messages }, { taggedFrame }, { text }, { Metrics }, { AlertRecorder }, { silentLog }] =
  await Promise.all(["kernel/redis/index", "kernel/clock", "mechanisms/layered-cache/index", "kernel/keyspace/frames", "kernel/keyspace/index", "kernel/metrics", "kernel/alerts", "kernel/log"]
    .map((name) => import(new URL(name + ".ts", process.env.SRC).href)));
const redis = openRedis({ kind: "socket", path: process.env.SOCKET });
const counting = openRedis({ kind: "socket", path: process.env.SOCKET });
const clock = systemClock;
const context = { clock, redis, cacheRedis: redis, subscriber: new Subscriber(redis, clock), alerts: new AlertRecorder(), metrics: new Metrics(), log: silentLog };
const stored = process.env.STORED === "1";
const cache = await new LayeredCaches(context).open({
  name: "many", codec: text, ttl: 60,
  lock: { key: (id) => "many:lock:" + id, owner: (id) => "many:lock:" + id + ":owner" },
  redis: stored ? { key: (id) => "many:value:" + id, ttl: 60 } : undefined,
  channel: { name: "ps:many", frames: messages(taggedFrame, {
    write: (m) => m.kind === "fill" ? { kind: "fill", uid: m.id, value: m.encoded } : { kind: "purge", uid: m.ids[0] },
    read: (f) => f.kind === "fill" ? { kind: "fill", id: f.uid, encoded: f.value } : { kind: "purge", ids: [f.uid] },
  }) },
  source: async (ids) => {
    await counting.commands.rpush("source:reads", ...ids);
    await clock.sleep(0.02);
    return new Map(ids.map((id) => [id, "value of " + id]));
  },
});
await redis.ready();
process.on("message", async (id) => {
  const answers = await Promise.all(Array.from({ length: 100 }, () => cache.get(id)));
  process.send({ id, answers: [...new Set(answers)] });
});
process.send("ready");
`;

/** Lets Node load TypeScript, since a child has no test runner around it. */
function typeScriptLoader(): string {
  const transform = pathToFileURL(createRequire(import.meta.url).resolve("rolldown/utils")).href;
  const hooks = `
    import { readFileSync } from "node:fs";
    import { fileURLToPath } from "node:url";
    import { transformSync } from ${JSON.stringify(transform)};
    export function load(url, context, next) {
      if (!url.endsWith(".ts")) return next(url, context);
      const source = transformSync(url, readFileSync(fileURLToPath(url), "utf8"), { lang: "ts" }).code;
      return { format: "module", source, shortCircuit: true };
    }`;
  const register = `
    import { register } from "node:module";
    register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});`;
  return `data:text/javascript,${encodeURIComponent(register)}`;
}

let server: TestRedis;
const children: ChildProcess[] = [];

beforeAll(async () => {
  server = await startTestRedis();
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await server.close();
});

async function startChildren(count: number, stored: boolean): Promise<ChildProcess[]> {
  const started = Array.from({ length: count }, () =>
    spawn(process.execPath, ["--import", typeScriptLoader(), "--input-type=module", "-e", CHILD], {
      env: {
        ...process.env,
        NODE_OPTIONS: "",
        SRC: new URL("../../", import.meta.url).href,
        SOCKET: server.server.socketPath,
        STORED: stored ? "1" : "0",
      },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
  children.push(...started);
  await Promise.all(started.map((child) => answerOf(child)));
  return started;
}

function answerOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`a child ended with ${code}`)));
  });
}

it.each([
  ["a family with a value in Redis", true],
  ["a family that lives in processes only", false],
])("four processes that miss at once read the source exactly once: %s", async (_name, stored) => {
  const connection = server.connect();
  await connection.commands.flushall();
  const processes = await startChildren(4, stored);
  for (let round = 1; round <= 10; round++) {
    const id = `id${round}`;
    const answers = processes.map((child) => answerOf(child));
    for (const child of processes) child.send(id);
    for (const answer of await Promise.all(answers)) expect(answer).toEqual({ id, answers: [`value of ${id}`] });
    expect(await connection.commands.lrange("source:reads", 0, -1)).toHaveLength(round);
  }
  for (const child of processes) child.kill("SIGKILL");
});

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import { eventually } from "../harness/facts.ts";
import { startTestRedis, type TestRedis } from "../harness/redis.ts";

const program = fileURLToPath(new URL("./fleet-process.mjs", import.meta.url));
const JOBS = 20_000;

const children = new Set<ChildProcess>();
const servers = new Set<TestRedis>();
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  await Promise.all([...servers].map((server) => server.close()));
  servers.clear();
});

interface Child {
  readonly said: string[];
  readonly ended: Promise<{ code: number | null; signal: string | null; errors: string }>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts the program and waits for its first line. */
async function startProcess(
  server: TestRedis,
  plan: { settings?: Record<string, unknown>; mode?: string },
): Promise<Child> {
  const child = spawn(process.execPath, [program, JSON.stringify({ socket: server.server.socketPath, ...plan })], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  const said: string[] = [];
  let errors = "";
  child.stdout.on("data", (data) => said.push(String(data)));
  child.stderr.on("data", (data) => {
    errors += data;
  });
  const ended = new Promise<Awaited<Child["ended"]>>((resolve) =>
    child.once("close", (code, signal) => {
      children.delete(child);
      resolve({ code, signal, errors });
    }),
  );
  void ended.then(({ errors }) => said.length === 0 && said.push(errors));
  await eventually(() => said.length > 0);
  return { said, ended, kill: (signal) => child.kill(signal) };
}

async function startServer(persistence: "always" | "off" = "off") {
  const server = await startTestRedis({ persistence });
  servers.add(server);
  const { commands } = server.connect();
  const push = async (name: string, count: number) => {
    const raws = Array.from({ length: count }, (_, n) =>
      JSON.stringify({ name: `runners.${name}`, kwargs: { n }, queued_at: 1 }),
    );
    for (let from = 0; from < count; from += 5000)
      await commands.rpush(jobKeys.hot(), ...raws.slice(from, from + 5000));
  };
  const hot = async () => (await commands.lrange(jobKeys.hot(), 0, -1)).map((raw) => JSON.parse(raw));
  return { server, commands, push, hot };
}

describe.concurrent("real processes and real signals", () => {
  test("the job of a worker that got SIGKILL runs in another one as soon as the silence is long enough", async () => {
    const { server, commands, push } = await startServer();
    await push("sleepy", 1);
    const victim = await startProcess(server, {});
    await eventually(async () => (await commands.llen("test:started")) === 1);
    victim.kill("SIGKILL");
    expect(await victim.ended).toMatchObject({ signal: "SIGKILL" });
    const rescuer = await startProcess(server, {});
    // The minute of silence passes for the dead one alone.
    const [dead] = await commands.zrange(jobKeys.workers(), 0, "0");
    expect(await commands.llen("test:started")).toBe(1);
    await commands.zincrby(jobKeys.workers(), -60, dead!);
    await eventually(async () => (await commands.llen("test:started")) === 2);
    expect(await commands.lrange("test:started", 0, -1)).toEqual(["0:0", "0:1"]);
    await eventually(async () => (await commands.keys(jobKeys.running({ worker_uid: "*" }))).length === 0);
    expect(await commands.zcard(jobKeys.workers())).toBe(1);
    rescuer.kill("SIGTERM");
    expect(await rescuer.ended).toMatchObject({ code: 0 });
  }, 40_000);

  test("a SIGTERM amid thousands of jobs ends the worker with status 0; what it did not start waits in order", async () => {
    const { server, commands, push, hot } = await startServer();
    await push("counted", JOBS);
    const child = await startProcess(server, { settings: { concurrency: 20 } });
    await eventually(async () => (await commands.hlen("test:ran")) > 500);
    child.kill("SIGTERM");
    expect(await child.ended).toEqual({ code: 0, signal: null, errors: "" });
    const ran = await commands.hgetall("test:ran");
    const left = (await hot()).map(({ kwargs }) => kwargs.n as number);
    expect(left.length).toBeGreaterThan(0);
    expect(Object.keys(ran).length + left.length).toBe(JOBS);
    expect(Object.values(ran).every((times) => times === "1")).toBe(true);
    expect(left).toEqual([...left].sort((a, b) => a - b));
    expect((await commands.keys("*")).sort()).toEqual([jobKeys.hot(), "test:ran"]);
  }, 40_000);

  test("a SIGTERM interrupts what runs, and it is first in line again before all that never ran", async () => {
    const { server, commands, push, hot } = await startServer();
    await push("sleepy", 12);
    const child = await startProcess(server, { settings: { concurrency: 4 } });
    await eventually(async () => (await commands.llen("test:started")) === 4);
    child.kill("SIGTERM");
    expect(await child.ended).toMatchObject({ code: 0 });
    const left = await hot();
    const interrupted = left.slice(0, 4);
    expect(interrupted.map(({ kwargs }) => kwargs.n).sort()).toEqual([0, 1, 2, 3]);
    expect(interrupted.every(({ bounces }) => bounces === 1)).toBe(true);
    expect(left.slice(4).map(({ kwargs }) => kwargs.n)).toEqual([4, 5, 6, 7, 8, 9, 10, 11]);
    expect(left.slice(4).every(({ bounces }) => bounces === undefined)).toBe(true);
  }, 40_000);

  test("when Redis itself gets SIGKILL amid twenty thousand jobs, workers go on by themselves and none is lost", async () => {
    const { server, commands, push, hot } = await startServer("always");
    await push("counted", JOBS);
    const plan = { settings: { concurrency: 20 } };
    const workers = [await startProcess(server, plan), await startProcess(server, plan)];
    await eventually(async () => (await commands.hlen("test:ran")) > 200);
    expect(await commands.llen(jobKeys.hot())).toBeGreaterThan(0);
    await server.crashAndRestart();
    // Only takes whose reply was lost are still in their hands; everything else goes on.
    await eventually(async () => (await commands.exists(jobKeys.hot(), jobKeys.delayed())) === 0);
    expect(await commands.zcard(jobKeys.workers())).toBe(2);
    for (const worker of workers) worker.kill("SIGTERM");
    for (const worker of workers) expect(await worker.ended).toMatchObject({ code: 0 });
    expect(await commands.keys(jobKeys.running({ worker_uid: "*" }))).toEqual([]);
    const given = (await hot()).map(({ kwargs }) => String(kwargs.n));
    expect(new Set([...given, ...Object.keys(await commands.hgetall("test:ran"))]).size).toBe(JOBS);
    await startProcess(server, plan);
    await eventually(async () => (await commands.hlen("test:ran")) === JOBS);
    await eventually(async () => (await commands.llen(jobKeys.hot())) === 0);
    const times = Object.values(await commands.hgetall("test:ran")).map(Number);
    expect(times.filter((count) => count > 1).length).toBeLessThan(JOBS / 10);
  }, 40_000);

  test("a worker whose main loop hangs keeps beating for a while, and then ends its process", async () => {
    const { server, commands } = await startServer();
    const child = await startProcess(server, { mode: "hang" });
    const beats = new Set<string | null>();
    await eventually(async () => {
      beats.add(await commands.zscore(jobKeys.workers(), "crl_wrk_hanging"));
      return beats.size > 4;
    });
    expect(await child.ended).toMatchObject({
      signal: "SIGKILL",
      errors: expect.stringContaining("the main loop has not moved"),
    });
  }, 40_000);
});

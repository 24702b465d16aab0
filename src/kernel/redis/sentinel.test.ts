import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { openRedis } from "./connection.ts";
import { findRedisServer } from "./managed.ts";

const directory = mkdtempSync(join(tmpdir(), "carillon-sentinel-"));
const children: ReturnType<typeof spawn>[] = [];
let ports: { one: number; two: number; sentinel: number };

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

const launch = (...args: string[]) => {
  const child = spawn(findRedisServer()!, args, { cwd: directory, stdio: "ignore" });
  children.push(child);
  return child;
};
const server = (port: number, ...extra: string[]) =>
  launch(
    "--repl-diskless-sync-delay",
    "0",
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--dir",
    directory,
    ...extra,
  );

beforeAll(async () => {
  ports = { one: await freePort(), two: await freePort(), sentinel: await freePort() };
  server(ports.one);
  server(ports.two, "--replicaof", "127.0.0.1", String(ports.one));
  const file = join(directory, "sentinel.conf");
  writeFileSync(
    file,
    [
      `port ${ports.sentinel}`,
      "bind 127.0.0.1",
      `sentinel monitor carillon 127.0.0.1 ${ports.one} 1`,
      "sentinel down-after-milliseconds carillon 500",
      "sentinel failover-timeout carillon 3000",
    ].join("\n"),
  );
  launch(file, "--sentinel");
});
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

test("a connection through Sentinel follows the master when it dies", async () => {
  const redis = openRedis({
    kind: "sentinel",
    sentinels: [{ host: "127.0.0.1", port: ports.sentinel }],
    master: "carillon",
  });
  await eventually(async () => (await redis.commands.set("n", "1")) === "OK");
  expect(await redis.commands.info("server")).toContain(`tcp_port:${ports.one}`);
  await eventually(async () => (await redis.commands.info("replication")).includes("state=online"));
  await redis.commands.wait(1, 5000);
  // Sentinel must know the replica too, or it has nobody to promote.
  const sentinel = new Redis({ port: ports.sentinel, host: "127.0.0.1" });
  await eventually(async () => ((await sentinel.call("SENTINEL", "replicas", "carillon")) as unknown[]).length > 0);
  sentinel.disconnect();
  children[0]!.kill("SIGKILL");
  await eventually(async () => (await redis.commands.set("m", "2").catch(() => "")) === "OK");
  expect(await redis.commands.info("server")).toContain(`tcp_port:${ports.two}`);
  expect(await redis.commands.get("n")).toBe("1");
  await redis.close();
});

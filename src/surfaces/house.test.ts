import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import { startTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import { alertKeys } from "../mechanisms/alerts/index.ts";
import { openHouse } from "./house.ts";
import { loadSettings } from "./settings.ts";

let folder: string;
let redis: TestRedis;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "carillon-house-"));
  redis = await startTestRedis({ extra: ["--maxmemory-policy", "allkeys-lru"] });
});

afterAll(async () => {
  await redis.close();
  rmSync(folder, { recursive: true });
});

function recorded() {
  const lines: { identifier?: string; msg: string }[] = [];
  return { lines, log: pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) }) };
}

const settings = (more: Record<string, string> = {}) =>
  loadSettings(
    { REDIS_URL: `unix://${redis.server.socketPath}`, CARILLON_DATA_DIR: folder, CARILLON_HTTP_PORT: "0", ...more },
    folder,
  );

test("a house warns of a Redis that may evict queues, lends its database to a second one, and closes without a trace", async () => {
  const { lines, log } = recorded();
  const first = await openHouse({ config: settings(), roles: { web: true, worker: true }, log });
  expect(lines).toContainEqual(expect.objectContaining({ identifier: "redis:policy" }));
  const kept = await eventually(async () => first.ctx.redis.commands.lindex(alertKeys.recent(), -1));
  expect(JSON.parse(kept)).toMatchObject({ level: "urgent", identifier: "redis:policy" });
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
  expect(first.ctx.hostname).toMatch(/^jobs-.+-1$/);

  const second = await openHouse({ config: settings(), roles: { web: false, worker: true }, log });
  expect(second.ctx.hostname).toMatch(/^jobs-.+-2$/);
  expect(second.database.owner).toBe(process.pid);
  expect(second.migrated).toEqual([]);
  await second.close();
  await first.close();
  await expect(fetch(`${first.url}/readyz`)).rejects.toThrow();
  expect(await redis.connect().commands.call("CLIENT", "LIST", "TYPE", "pubsub")).toBe("");
}, 120_000);

test("a house that cannot be opened gives everything back, so that the next one can", async () => {
  const { log } = recorded();
  const server = (await import("node:net")).createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const taken = settings({ CARILLON_HTTP_PORT: String(port) });
  await expect(openHouse({ config: taken, roles: { web: true, worker: false }, log })).rejects.toMatchObject({
    code: "port_unusable",
  });
  await new Promise((resolve) => server.close(resolve));
  const house = await openHouse({ config: taken, roles: { web: true, worker: false }, log });
  expect(house.ctx.hostname).toMatch(/^web-.+-1$/);
  expect(house.database.owner).toBeUndefined();
  await house.close();
}, 120_000);

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
let folder: string;
let children: ChildProcess[] = [];

beforeAll(() => {
  execFileSync(process.execPath, [join(root, "scripts/build.js")], { stdio: "pipe" });
}, 120_000);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "carillon-cli-"));
});

afterEach(async () => {
  for (const child of children)
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  children = [];
  rmSync(folder, { recursive: true, force: true });
});

/** A carillon of its own process in the temporary folder, without this process's settings. */
function carillon(args: readonly string[], environment: Record<string, string> = {}) {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(CARILLON_|REDIS_URL|DATABASE_URL|VITEST|NODE_ENV)/.test(name)),
  );
  const child = spawn(process.execPath, [join(root, "bin/carillon.js"), ...args], {
    cwd: folder,
    env: {
      ...inherited,
      CARILLON_HTTP_PORT: "0",
      CARILLON_REDIS_FSYNC: "everysec",
      CARILLON_DEMO: "off",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const written = { out: "", err: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    written.out += chunk.toString("utf8");
  });
  child.stderr.on("data", (chunk: Buffer) => {
    written.err += chunk.toString("utf8");
  });
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, ...written }));
  return { child, written, ended };
}

async function started() {
  const up = carillon(["up"]);
  const url = await Promise.race([
    new Promise<string>((found) => {
      up.child.stdout?.on("data", () => {
        const said = /API +(http:\S+)\/api\/1/.exec(up.written.out)?.[1];
        if (said) found(said);
      });
    }),
    up.ended.then(({ out, err }): never => {
      throw new Error(`up ended by itself: ${out}${err}`);
    }),
  ]);
  return { ...up, url };
}

test("carillon up says where to look, lends its database to commands, stops cleanly and finds its data again", async () => {
  const first = await started();
  expect((await fetch(`${first.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
  const made = await carillon(["admin", "token", "--label", "kept"]).ended;
  expect(made.err).toContain('"kept"');
  expect(made.out).toMatch(/^crl_admin_[A-Za-z0-9_-]{22}\n$/);

  const printed = await carillon(["admin", "login"]).ended;
  const [page, token] = printed.out.trim().split("#") as [string, string];
  expect(page).toBe(`${first.url}/admin/sign-in`);
  expect(first.written.out).toContain(`${page}#crl_link_`);
  const signIn = () =>
    fetch(`${first.url}/api/1/admin/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
  expect([(await signIn()).status, (await signIn()).status]).toEqual([201, 403]);
  expect((await carillon(["admin", "sessions", "--json"]).ended).out).toContain('"label": "command line"');

  const watched = await carillon(["jobs", "run", "runners.example", '{"message":"hello"}', "--watch"]).ended;
  expect(watched).toMatchObject({ code: 0, out: expect.stringMatching(/queued[\s\S]*started[\s\S]*succeeded/) });
  const wrong = await carillon(["jobs", "run", "runners.example", '{"message":7}']).ended;
  expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("message") });

  first.child.kill("SIGINT");
  const end = await first.ended;
  expect(end.code).toBe(0);
  expect(end.out).toContain("Stopped.");
  expect(existsSync(join(folder, ".carillon/redis/redis.sock"))).toBe(false);
  expect(readdirSync(join(folder, ".carillon/instances"))).toEqual([]);

  const second = await started();
  const listed = await carillon(["admin", "tokens", "--json"]).ended;
  expect(JSON.parse(listed.out)).toMatchObject([{ label: "kept" }]);
  second.child.kill("SIGTERM");
  expect((await second.ended).code).toBe(0);
}, 180_000);

test("carillon config tells where values come from, and masks what is secret", async () => {
  writeFileSync(
    join(folder, ".env"),
    "CARILLON_LOG_LEVEL=warn\nCARILLON_ROOT_SECRET=abcdefghijklmnopqrstuvwxyz0123456789\n",
  );
  const { code, out } = await carillon(["config", "--json"], { REDIS_URL: "redis://me:hunter2@cache.internal:6380/3" })
    .ended;
  expect(code).toBe(0);
  expect(out).not.toMatch(/hunter2|abcdefghijkl/);
  const byName = new Map((JSON.parse(out) as { env: string }[]).map((entry) => [entry.env, entry]));
  expect(byName.get("REDIS_URL")).toMatchObject({ value: "redis://***@cache.internal:6380/3", source: "environment" });
  expect(byName.get("CARILLON_LOG_LEVEL")).toMatchObject({ value: "warn", source: ".env", default: "info" });
  expect(byName.get("CARILLON_ROOT_SECRET")).toMatchObject({ value: "********" });
  expect(byName.get("CARILLON_STATISTICS_TZ")).toMatchObject({ value: "America/Los_Angeles", source: "default" });
});

test("a bad setting ends the process with code 78 and names the variable", async () => {
  const { code, err } = await carillon(["up"], {
    CARILLON_STATISTICS_TZ: "Mars/Olympus",
    CARILLON_JOB_CONCURRENCY: "many",
  }).ended;
  expect(code).toBe(78);
  expect(err).toContain('CARILLON_STATISTICS_TZ="Mars/Olympus"');
  expect(err).toContain("CARILLON_JOB_CONCURRENCY");
});

test("carillon doctor finds a Redis that does not answer and says how to fix it", async () => {
  const { code, out } = await carillon(["doctor"], { REDIS_URL: "redis://:secret@127.0.0.1:1" }).ended;
  expect(code).toBe(1);
  expect(out).toMatch(/fail {2}redis .*redis:\/\/\*\*\*@127\.0\.0\.1:1.*ECONNREFUSED.*\n +→ .*REDIS_URL/);
  expect(out).not.toContain("secret");
  expect(out).toMatch(/ok {4}sql /);
});

test("help comes before everything else and teaches; a mistyped command gets a suggestion and code 64", async () => {
  const help = await carillon(["--help"]).ended;
  expect(help.code).toBe(0);
  expect(help.out.split("\n").slice(0, 5).join("\n")).toMatch(
    /carillon up[\s\S]*carillon admin token[\s\S]*carillon doctor/,
  );
  const mistyped = await carillon(["docter"]).ended;
  expect(mistyped.code).toBe(64);
  expect(mistyped.err).toContain("doctor");
});

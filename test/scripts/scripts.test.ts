import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Catalogue, channel, family, list, text } from "../../src/kernel/keyspace/index.ts";
import { inspectScript } from "../../src/kernel/keyspace/inspect.ts";
import { MonitorReader, takeNamesSeen } from "../harness/names-seen.ts";

// The scripts are plain JavaScript, because they run before any package is there; so they are loaded without types.
const script = (name: string) => import(new URL(`../../scripts/${name}.js`, import.meta.url).href);
const { installNeeded, nodeIsRecent, fingerprint } = await script("setup");
const { parseVersion, recentEnough, elevation, bringsOwnRedis, MANAGERS } = await script("redis");
const { countTests } = await script("tally");
const { coverage, readNames } = await script("keyspace-coverage");

test("node is accepted from 20.19 on", () => {
  expect(["20.18.3", "18.20.0"].map(nodeIsRecent)).toEqual([false, false]);
  expect(["20.19.0", "22.0.0", "20.20.2"].map(nodeIsRecent)).toEqual([true, true, true]);
});

test("packages are installed when versions differ from the lockfile, not when only optional ones are absent", () => {
  const lock = {
    packages: {
      "": { version: "1.0.0" },
      "node_modules/a": { version: "1.0.0" },
      "node_modules/b-darwin": { version: "2.0.0", optional: true },
    },
  };
  const installed = { packages: { "node_modules/a": { version: "1.0.0" } } };
  expect(installNeeded(lock, installed)).toBe(false);
  expect(installNeeded(lock, undefined)).toBe(true);
  expect(installNeeded(lock, { packages: {} })).toBe(true);
  expect(installNeeded(lock, { packages: { "node_modules/a": { version: "1.0.1" } } })).toBe(true);
  expect(installNeeded(lock, { packages: { ...installed.packages, "node_modules/gone": { version: "1.0.0" } } })).toBe(
    true,
  );
});

test("the version of Redis and of Valkey is read and must be 7.0", () => {
  expect(parseVersion("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")).toEqual([7, 0]);
  expect(parseVersion("Valkey server v=8.1.1 sha=00000000:0")).toEqual([8, 1]);
  expect(recentEnough([6, 2])).toBe(false);
  expect(recentEnough([7, 0])).toBe(true);
});

test("installing needs root, or a sudo that asks nothing, except with brew", () => {
  const manager = (program: string) => MANAGERS.find((each: { program: string }) => each.program === program);
  expect(elevation({ manager: manager("apt-get"), isRoot: true, hasSudo: false })).toEqual([]);
  expect(elevation({ manager: manager("apt-get"), isRoot: false, hasSudo: true })).toEqual(["sudo", "-n"]);
  expect(elevation({ manager: manager("apt-get"), isRoot: false, hasSudo: false })).toBeUndefined();
  expect(elevation({ manager: manager("brew"), isRoot: false, hasSudo: false })).toEqual([]);
});

test("a Redis of one's own is known from the environment and from .env, and a build's fingerprint from its files", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-scripts-"));
  try {
    expect(bringsOwnRedis({}, folder)).toBe(false);
    expect(bringsOwnRedis({ REDIS_URL: "redis://elsewhere" }, folder)).toBe(true);
    const file = join(folder, ".env");
    writeFileSync(file, "# REDIS_URL=redis://commented\nREDIS_URL=\n");
    expect(bringsOwnRedis({}, folder)).toBe(false);
    const before = fingerprint([file]);
    expect(fingerprint([file])).toBe(before);
    writeFileSync(file, "REDIS_URL=redis://elsewhere\n");
    utimesSync(file, 1, 1);
    expect(bringsOwnRedis({}, folder)).toBe(true);
    expect(fingerprint([file])).not.toBe(before);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the tally counts tests, files that could not run, runs without a report and errors outside of tests", () => {
  const passing = {
    name: "a.test.ts",
    status: "passed",
    assertionResults: [{ status: "passed" }, { status: "passed" }],
  };
  const failing = {
    name: "b.test.ts",
    status: "failed",
    assertionResults: [{ status: "failed", fullName: "it breaks" }],
  };
  const broken = { name: "c.test.ts", status: "failed", message: "cannot be loaded", assertionResults: [] };
  expect(countTests({ testResults: [passing] }, 0)).toEqual({ passed: 2, failed: 0, remarks: [] });
  expect(countTests({ testResults: [passing, failing, broken] }, 1)).toEqual({
    passed: 2,
    failed: 2,
    remarks: ["✗ b.test.ts: it breaks", "✗ c.test.ts: cannot be loaded"],
  });
  expect(countTests({ testResults: [passing] }, 1)).toMatchObject({ passed: 2, failed: 1 });
  expect(countTests({ testResults: [] }, 0)).toMatchObject({ passed: 0, failed: 1 });
  expect(countTests(undefined, 1)).toMatchObject({ passed: 0, failed: 1 });
});

/** Runs prepareRedis on a machine whose PATH has nothing but these programs. */
function prepareOn(folder: string, programs: Record<string, string>) {
  for (const [name, body] of Object.entries(programs))
    writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  for (const name of ["env", "sh", "touch", "chmod", "true"])
    if (!(name in programs))
      try {
        symlinkSync(`/usr/bin/${name}`, join(folder, name));
      } catch {}
  const redis = fileURLToPath(new URL("../../scripts/redis.js", import.meta.url));
  const program = `import(${JSON.stringify(redis)}).then((own) => own.prepareRedis()).then((found) => console.log("found " + found), (error) => console.log("refused " + error.message))`;
  return spawnSync(process.execPath, ["-e", program], { env: { PATH: folder }, encoding: "utf8" }).stdout;
}

test("a missing Redis is installed with the package manager, whose list is refreshed only when that is needed", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-path-"));
  try {
    const out = prepareOn(folder, {
      sudo: 'shift; exec "$@"',
      "apt-get": `echo "$*" >> "${folder}/calls"
if [ "$1" = update ]; then touch "${folder}/fresh"; exit 0; fi
[ -e "${folder}/fresh" ] || exit 100
printf '#!/bin/sh\\necho "Redis server v=7.2.4 sha=0"\\n' > "${folder}/redis-server"
chmod +x "${folder}/redis-server"`,
    });
    expect(out).toMatch(/installing it with .*apt-get/);
    expect(out).toContain(`found ${folder}/redis-server, version 7.2`);
    expect(readFileSync(join(folder, "calls"), "utf8").trim().split("\n")).toEqual([
      "install -y --no-install-recommends redis-server",
      "install -y --no-install-recommends valkey-server",
      "update",
      "install -y --no-install-recommends redis-server",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("where Redis cannot be installed, and where it is too old, both ways out are told", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-path-"));
  try {
    expect(prepareOn(folder, {})).toMatch(/refused [\s\S]*no known package manager[\s\S]*yourself[\s\S]*REDIS_URL=/);
    const old = prepareOn(folder, { "redis-server": 'echo "Redis server v=6.2.1 sha=0"' });
    expect(old).toMatch(/refused [\s\S]*6\.2[\s\S]*needs 7\.0[\s\S]*REDIS_URL=/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a declared pattern counts as covered when tests wrote it and read it, in whichever process", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-names-"));
  try {
    const sms = family("sms", {
      toSend: list("sms:to_send", text, { doc: "a list" }),
      item: list("sms:pending:{sid}", text, { doc: "a list" }),
      other: list("sms:other", text, { doc: "a list" }),
      purge: channel("ps:sms:{uid}", text, { doc: "a channel" }),
    });
    writeFileSync(
      join(folder, "1.names"),
      '["key","sms:to_send","written"]\n["key","sms:undeclared","read"]\n["channel","ps:sms:b","read"]\n',
    );
    writeFileSync(
      join(folder, "2.names"),
      '["key","sms:pending:SM1","read"]\n["key","sms:to_send","read"]\n["channel","ps:sms:a","written"]\n["channel","sms:other","written"]\n',
    );
    writeFileSync(join(folder, "results.json"), "{}");
    const { summary, patterns } = coverage(new Catalogue([{ name: "sms", keys: [sms] }]), readNames(folder));
    expect(summary).toBe("4 patterns: written 2, read 3");
    expect(
      patterns.map(({ pattern, written, read }: Record<string, string | null>) => [pattern, written, read]),
    ).toEqual([
      ["ps:sms:{uid}", "ps:sms:a", "ps:sms:b"],
      ["sms:other", null, null],
      ["sms:pending:{sid}", null, "sms:pending:SM1"],
      ["sms:to_send", "sms:to_send", "sms:to_send"],
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("what a server tells of its commands becomes names that were written and read, inside scripts too", () => {
  takeNamesSeen();
  const reader = new MonitorReader();
  for (const line of [
    '+1700000000.1 [0 unix:/tmp/r.sock] "RPUSH" "a:queue" "\\"quoted\\" b:value"',
    '+1700000000.2 [0 unix:/tmp/r.sock] "evalsha" "0123" "1" "c:named_only" "d:argument"',
    '+1700000000.2 [0 lua] "HGETALL" "e:hash"',
    '+1700000000.3 [0 lua] "LMOVE" "a:queue" "f:purgatory" "LEFT" "RIGHT"',
    '+1700000000.4 [0 unix:/tmp/r.sock] "set" "g:flag" "1" "PX" "100" "NX"',
    '+1700000000.5 [0 unix:/tmp/r.sock] "set" "h:plain" "1"',
    '+1700000000.6 [0 unix:/tmp/r.sock] "del" "i:gone"',
    '+1700000000.6 [0 unix:/tmp/r.sock] "exists" "j:one" "k:two"',
    '+1700000000.7 [0 unix:/tmp/r.sock] "publish" "ps:l" "SUBSCRIBE ps:no"',
    '+1700000000.8 [0 unix:/tmp/r.sock] "subscribe" "ps:m"',
    `+1700000000.9 [0 unix:/tmp/r.sock] "evalsha" "${inspectScript.sha}" "0" "n:audited"`,
    '+1700000000.9 [0 lua] "LRANGE" "n:audited" "0" "-1"',
    `+1700000001.0 [0 unix:/tmp/r.sock] "eval" "for _, key in ipairs(redis.call('KEYS', '*')) do" "0" "5"`,
    '+1700000001.0 [0 lua] "PTTL" "n:audited"',
    '+1700000001.0 [0 unix:/tmp/r.sock] "get" "o:read_again"',
    "+OK",
  ])
    reader.read(line);
  expect(takeNamesSeen()).toEqual([
    ["key", "a:queue", "written"],
    ["key", "e:hash", "read"],
    ["key", "a:queue", "read"],
    ["key", "f:purgatory", "written"],
    ["key", "g:flag", "written"],
    ["key", "g:flag", "read"],
    ["key", "h:plain", "written"],
    ["key", "j:one", "read"],
    ["key", "k:two", "read"],
    ["channel", "ps:l", "written"],
    ["channel", "ps:m", "read"],
    ["key", "o:read_again", "read"],
  ]);
});

test("what a test writes in place of the code that should does not count as written, but what is read and told does", () => {
  takeNamesSeen();
  const reader = new MonitorReader({ staged: true });
  for (const line of [
    '+1700000000.1 [0 unix:/tmp/r.sock] "HINCRBY" "a:day" "sent" "1"',
    '+1700000000.1 [0 unix:/tmp/r.sock] "set" "b:flag" "1" "NX"',
    '+1700000000.2 [0 lua] "LMOVE" "c:queue" "d:purgatory" "LEFT" "RIGHT"',
    '+1700000000.3 [0 unix:/tmp/r.sock] "publish" "ps:e" "1"',
  ])
    reader.read(line);
  expect(takeNamesSeen()).toEqual([
    ["key", "b:flag", "read"],
    ["key", "c:queue", "read"],
    ["channel", "ps:e", "written"],
  ]);
});

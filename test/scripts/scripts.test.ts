import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

// The scripts are plain JavaScript, because they run before any package is there; so they are loaded without types.
const script = (name: string) => import(new URL(`../../scripts/${name}.js`, import.meta.url).href);
const { installNeeded, nodeIsRecent, fingerprint } = await script("setup");
const { parseVersion, recentEnough, elevation, bringsOwnRedis, MANAGERS } = await script("redis");
const { countTests } = await script("tally");

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

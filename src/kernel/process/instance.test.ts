import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimPidFile, liveInstances, pidFileHolder, reserveInstance } from "./index.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "carillon-instances-"));
});

afterEach(() => rmSync(directory, { recursive: true }));

test("processes of one role take the first free slot, and a released slot is taken again", () => {
  const first = reserveInstance({ directory, role: "jobs" });
  const second = reserveInstance({ directory, role: "jobs" });
  expect(first.hostname).toBe(`jobs-${hostname()}-1`);
  expect(second.slot).toBe("2");
  expect(reserveInstance({ directory, role: "web" }).slot).toBe("1");
  expect(liveInstances(directory)).toBe(3);
  first.release();
  expect(reserveInstance({ directory, role: "jobs" }).slot).toBe("1");
});

test("a slot that was asked for by name is refused while another process has it", () => {
  reserveInstance({ directory, role: "web", slot: "blue" });
  expect(() => reserveInstance({ directory, role: "web", slot: "blue" })).toThrow(/CARILLON_INSTANCE="blue"/);
});

test("the slot of a process that died is free, even when its number belongs to another process now", async () => {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  writeFileSync(join(directory, "jobs-1.pid"), `${child.pid} 12345 token\n`);
  writeFileSync(join(directory, "jobs-2.pid"), `${process.pid} 1 reused\n`);
  expect(liveInstances(directory)).toBe(0);
  expect(reserveInstance({ directory, role: "jobs" }).slot).toBe("1");
  expect(reserveInstance({ directory, role: "jobs" }).slot).toBe("2");
});

test("a pid file names its live holder, is held once, and leaves nothing behind", () => {
  const path = join(directory, "owner.pid");
  const held = claimPidFile(path);
  expect(claimPidFile(path)).toBeUndefined();
  expect(pidFileHolder(path)).toBe(process.pid);
  held?.release();
  expect(pidFileHolder(path)).toBeUndefined();
  expect(readdirSync(directory)).toEqual([]);
});

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { randomToken } from "../ids.ts";

/**
 * A file that says which live process holds something of this machine: an instance slot, the embedded database.
 *
 * The file is authoritative together with the process table: it counts only while the process that it names lives. A
 * number may be given to another process later, so the file also has the start time of its process where the system
 * tells it. Life: free -> held (linked into place whole, so nobody reads half a file) -> released (removed). A holder that
 * dies leaves the file behind; the next claimant moves it away.
 */
export interface PidFile {
  readonly path: string;
  release(): void;
}

interface Holder {
  readonly pid: number;
  readonly startedAt: string;
}

/** Claims the file for this process, or answers undefined when another live process holds it. */
export function claimPidFile(path: string): PidFile | undefined {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const own: Holder = { pid: process.pid, startedAt: startTime(process.pid) };
  const content = `${own.pid} ${own.startedAt} ${randomToken()}\n`;
  const draft = `${path}.${process.pid}.${randomToken()}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 10; attempt++) {
      if (linked(draft, path)) return { path, release: () => releaseIfOurs(path, content) };
      const found = read(path);
      if (found === undefined) continue;
      if (alive(parse(found))) return undefined;
      moveAwayIfUnchanged(path, found);
    }
    return undefined;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** The live process that holds the file now. */
export function pidFileHolder(path: string): number | undefined {
  const found = read(path);
  const holder = found === undefined ? undefined : parse(found);
  return holder && alive(holder) ? holder.pid : undefined;
}

function linked(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function parse(content: string): Holder | undefined {
  const [pid, startedAt] = content.trim().split(" ");
  return Number.isInteger(Number(pid)) && Number(pid) > 0
    ? { pid: Number(pid), startedAt: startedAt ?? "" }
    : undefined;
}

function alive(holder: Holder | undefined): boolean {
  if (!holder) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return holder.startedAt === startTime(holder.pid);
}

/** Ticks since boot at which a process began; "-" where the system has no /proc. */
function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets and may hold anything, so fields are counted after it.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "-";
  } catch {
    return "-";
  }
}

/** Two claimants may find the same dead holder; the slower one must not move away the file of the faster. */
function moveAwayIfUnchanged(path: string, expected: string): void {
  const aside = `${path}.${process.pid}.${randomToken()}.dead`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (read(aside) !== expected) linked(aside, path);
  rmSync(aside, { force: true });
}

function releaseIfOurs(path: string, content: string): void {
  if (read(path) === content) rmSync(path, { force: true });
}

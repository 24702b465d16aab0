import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The file in which the process with the sandbox tells the others of this installation where it answers, because its port
 * may have moved. It counts only while that process lives, so that one which a dead process left misleads nobody.
 */
interface Announcement {
  readonly url: string;
  readonly pid: number;
}

const fileIn = (folder: string) => join(folder, "address.json");

/** Tells the others; answers how to take it back. */
export function announce(folder: string | undefined, url: string): () => void {
  if (folder === undefined) return () => {};
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(fileIn(folder), JSON.stringify({ url, pid: process.pid } satisfies Announcement), { mode: 0o600 });
  return () => {
    // Another process may have taken over in the meantime.
    if (read(folder)?.url === url) rmSync(fileIn(folder), { force: true });
  };
}

/** Where the sandbox of another process answers, if there is one. */
export function announced(folder: string | undefined): string | undefined {
  const found = folder === undefined ? undefined : read(folder);
  return found && isAlive(found.pid) ? found.url : undefined;
}

function read(folder: string): Announcement | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(fileIn(folder), "utf8")) as Record<string, unknown>;
    return typeof url === "string" && URL.canParse(url) && typeof pid === "number" ? { url, pid } : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

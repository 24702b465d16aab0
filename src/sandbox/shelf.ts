import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { open } from "lmdb";
import { claimPidFile } from "../kernel/process/index.ts";
import type { SandboxMessage } from "./inbox.ts";

/**
 * Where the inbox lies on disk, so that a restart empties nothing. Memory is authoritative while the process runs; every
 * change is written in the background, and a process that dies loses at most its last moments. One process at a time
 * holds the folder; a second one keeps its messages in memory only.
 */
export interface Shelf {
  /** What was left there, oldest first. */
  readonly found: readonly SandboxMessage[];
  put(message: SandboxMessage): void;
  remove(message: SandboxMessage): void;
  clear(): void;
  close(): Promise<void>;
}

/** The number in `email-12`: ids count through all channels. */
export const numberOf = ({ id }: Pick<SandboxMessage, "id">): number => Number(id.slice(id.lastIndexOf("-") + 1));

export function openShelf(folder: string): Shelf | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const claim = claimPidFile(join(folder, "inbox.pid"));
  if (!claim) return undefined;
  const store = open<SandboxMessage, number>({ path: join(folder, "inbox") });
  const found = [...store.getRange()].map(({ value }) => value).filter((value) => Array.isArray(value?.moments));
  return {
    found,
    put: (message) => void store.put(numberOf(message), message),
    remove: (message) => void store.remove(numberOf(message)),
    clear: () => void store.clearAsync(),
    async close() {
      await store.close();
      claim.release();
    },
  };
}

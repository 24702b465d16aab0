import { readdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { kernelErrors } from "../errors.ts";
import { claimPidFile, type PidFile, pidFileHolder } from "./pid-file.ts";

/** What a process is to others: `web` answers requests, `jobs` works, `cli` is a command that is soon gone. */
export type InstanceRole = "web" | "jobs" | "cli";

export interface Instance {
  /** `jobs-alpha-1`: stable over restarts, so that the successor of a dead process may take over its locks. */
  readonly hostname: string;
  readonly slot: string;
  release(): void;
}

const SLOTS = 1000;

/** Takes the first free slot of this role in the data folder, or the one that was asked for. */
export function reserveInstance(options: { directory: string; role: InstanceRole; slot?: string }): Instance {
  const { directory, role } = options;
  const wanted = options.slot === undefined ? Array.from({ length: SLOTS }, (_, n) => String(n + 1)) : [options.slot];
  for (const slot of wanted) {
    const file = claimPidFile(slotPath(directory, role, slot));
    if (file) return reserved(file, role, slot);
  }
  const holder = pidFileHolder(slotPath(directory, role, wanted[0]!));
  throw kernelErrors.invalid_settings({
    message: `CARILLON_INSTANCE=${JSON.stringify(options.slot)}: process ${holder} of this machine already has this slot. Give each process its own, or none to take the first free one.`,
  });
}

/** How many live processes share this data folder. */
export function liveInstances(directory: string): number {
  let files: string[];
  try {
    files = readdirSync(directory);
  } catch {
    return 0;
  }
  return files.filter((file) => file.endsWith(".pid") && pidFileHolder(join(directory, file)) !== undefined).length;
}

function slotPath(directory: string, role: InstanceRole, slot: string): string {
  return join(directory, `${role}-${slot}.pid`);
}

function reserved(file: PidFile, role: InstanceRole, slot: string): Instance {
  return { hostname: `${role}-${hostname()}-${slot}`, slot, release: () => file.release() };
}

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Commit } from "./builds.ts";
import { SHA } from "./keys.ts";

/** Where commits are looked up. */
export interface Source {
  /** The commit that a request without one means. */
  head(): Promise<Commit | undefined>;
  /** When a commit was made; undefined when the checkout does not know it. */
  find(sha: string): Promise<Commit | undefined>;
}

const run = promisify(execFile);

/** A git checkout on this machine. */
export function gitSource(checkout: string): Source {
  const describe = async (revision: string): Promise<Commit | undefined> => {
    try {
      const { stdout } = await run("git", ["-C", checkout, "show", "-s", "--format=%H %ct", revision, "--"]);
      const [sha, committedAt] = stdout.trim().split(" ");
      return sha && SHA.test(sha) ? { sha, committedAt: Number(committedAt) } : undefined;
    } catch {
      return undefined;
    }
  };
  return { head: () => describe("HEAD"), find: async (sha) => (SHA.test(sha) ? describe(sha) : undefined) };
}

/** No checkout: only commits that a request names are known. */
export const noSource: Source = { head: async () => undefined, find: async () => undefined };

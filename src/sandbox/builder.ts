import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** How the simulated builder misbehaves. */
export interface BuilderFaults {
  /** Seconds that a build takes. */
  duration?: number;
  /** Fail with this message. */
  failure?: string;
  /** Declare a checksum that the build does not have. */
  wrongSha256?: boolean;
  /** Go on until it is ended. */
  neverFinishes?: boolean;
}

interface SandboxClock {
  sleep(seconds: number, signal?: AbortSignal): Promise<boolean>;
}

const run = promisify(execFile);

/** Builds a tar.gz whose one file, `sha.txt`, holds the commit. */
export class SandboxBuilder {
  readonly faults: BuilderFaults;
  /** The commits it was asked for, in order. */
  readonly started: string[] = [];
  /** How many builds were ended before they were done. */
  ended = 0;
  readonly #clock: SandboxClock;

  constructor(clock: SandboxClock, faults: BuilderFaults = {}) {
    this.#clock = clock;
    this.faults = faults;
  }

  async build(
    job: { readonly repo: string; readonly sha: string; readonly outputPath: string },
    signal: AbortSignal,
  ): Promise<{ sha256?: string }> {
    this.started.push(job.sha);
    const { duration, failure, wrongSha256, neverFinishes } = this.faults;
    if (neverFinishes && !signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    else if (duration) await this.#clock.sleep(duration, signal);
    if (signal.aborted) {
      this.ended += 1;
      throw new Error("the build was ended");
    }
    if (failure) throw new Error(failure);
    const directory = await mkdtemp(join(tmpdir(), "carillon-sandbox-build-"));
    try {
      await writeFile(join(directory, "sha.txt"), job.sha);
      await run("tar", ["-czf", job.outputPath, "-C", directory, "sha.txt"]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
    return wrongSha256 ? { sha256: "0".repeat(64) } : {};
  }
}

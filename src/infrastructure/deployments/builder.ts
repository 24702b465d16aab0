import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { type FileTransaction, putFile, queueDelete } from "../files/service.ts";
import { deleteBuilds, findBuild, finishBuildIfBuilding, outdatedBuilds } from "./builds.ts";
import { errors } from "./errors.ts";
import { type BuiltArtefact, keys } from "./keys.ts";
import type { DeploymentTables } from "./tables.ts";

/** What turns a commit into a tar.gz at `outputPath`. Rejects when it cannot; the signal ends it at once. */
export interface Builder {
  build(
    job: { readonly repo: string; readonly sha: string; readonly outputPath: string },
    signal: AbortSignal,
    // A builder that knows the checksum says it; otherwise the file is measured as it is found.
  ): Promise<{ readonly sha256?: string }>;
}

const PROTECT_BUILD = 3600;
const STDERR_KEPT = 2000;

/** A shell command that gets its task in the environment and answers with its exit status. */
export function commandBuilder(command: string): Builder {
  return {
    build: ({ repo, sha, outputPath }, signal) =>
      new Promise((resolve, reject) => {
        const env = {
          ...process.env,
          CARILLON_BUILD_REPO: repo,
          CARILLON_BUILD_SHA: sha,
          CARILLON_BUILD_OUTPUT: outputPath,
        };
        // A group of its own, so that ending it also ends what the shell started.
        const child = spawn(command, { shell: true, detached: true, env, stdio: ["ignore", "ignore", "pipe"] });
        let said = "";
        child.stderr.on("data", (chunk: Buffer) => {
          said = (said + chunk.toString("utf8")).slice(-STDERR_KEPT);
        });
        const end = () => {
          try {
            if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
          } catch {
            // It has ended by itself.
          }
        };
        signal.addEventListener("abort", end, { once: true });
        child.once("error", reject);
        child.once("close", (code, killedBy) => {
          signal.removeEventListener("abort", end);
          if (code === 0) return resolve({});
          const why = killedBy ? `was ended by ${killedBy}` : `answered ${code}`;
          reject(errors.build_failed({ message: `the build command ${why}: ${said.trim() || "it said nothing"}` }));
        });
      }),
  };
}

/**
 * Builds a commit, stores it and announces it: file and row become ready in one transaction, then the unit's current
 * build is set, then whoever launched this is told. A death in between leaves a ready row, which launcher and waiting
 * instances find by looking; a build that was given up meanwhile is thrown away.
 */
export async function runBuild(
  ctx: Context,
  task: { readonly repo: string; readonly sha: string; readonly builder: Builder },
  signal: AbortSignal,
): Promise<void> {
  const { repo, sha } = task;
  const directory = await mkdtemp(join(tmpdir(), "carillon-build-"));
  try {
    const outputPath = join(directory, "build.tar.gz");
    const declared = await task.builder.build({ repo, sha, outputPath }, signal);
    const measured = await measure(outputPath);
    if (!measured) {
      // A command that hands the work to another machine finds the build announced by that one.
      if ((await findBuild(ctx, repo, sha))?.state === "ready") return;
      throw errors.build_failed({ message: "the build command left no output" });
    }
    signal.throwIfAborted();
    const artefact = await store(ctx, repo, sha, outputPath, { ...measured, ...declared });
    await setBuildHash(ctx, repo, sha);
    await ctx.redis.commands.publish(keys.buildReady({ repo }), JSON.stringify(artefact));
    await retireBuilds(ctx, repo, sha);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Setting it again does nothing, so everybody who sees a build ready for their request may do so. */
export async function setBuildHash(ctx: Pick<Context, "redis">, repo: string, sha: string): Promise<void> {
  await ctx.redis.commands.set(ctx.redis.topology.key(keys.buildHash({ repo })), sha);
}

async function measure(path: string): Promise<{ size: number; sha256: string } | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (!found) return undefined;
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return { size: found.size, sha256: hash.digest("hex") };
}

async function store(
  ctx: Context,
  repo: string,
  sha: string,
  path: string,
  facts: { size: number; sha256: string },
): Promise<BuiltArtefact> {
  const file = await putFile(ctx, createReadStream(path), {
    purpose: "processing_output",
    protectFor: PROTECT_BUILD,
    contentType: "application/gzip",
    keyPrefix: `builds/${repo}/${sha}`,
    extension: ".tar.gz",
    references: {
      async add(tx, { id }) {
        const finished = { repo, sha, fileId: id, ...facts, now: ctx.clock.now() };
        if (!(await finishBuildIfBuilding(ours(tx), finished)))
          throw errors.build_failed({ message: "the build was given up or finished by another builder meanwhile" });
      },
      async remove(tx, { id }) {
        await ours(tx)
          .updateTable("builds")
          .set({ state: "building", s3_file_id: null, size: null, sha256: null, finished_at: null })
          .where("s3_file_id", "=", id)
          .execute();
      },
    },
  });
  return { sha, bucket: file.bucket, key: file.key, ...facts };
}

/** The transaction of the files' room, seeing our tables too. */
function ours(tx: FileTransaction): Kysely<DeploymentTables> {
  return tx as unknown as Kysely<DeploymentTables>;
}

/** The deletion waits, so that the rows are gone before it looks whether anything refers to the files. */
async function retireBuilds(ctx: Context, repo: string, current: string): Promise<void> {
  const outdated = await outdatedBuilds(ctx, repo, current);
  if (outdated.length === 0) return;
  await queueDelete(ctx, outdated, { hint: `deployments:outdated_build:${repo}`, when: "soon" });
  await deleteBuilds(
    ctx,
    outdated.map(({ id }) => id),
  );
}

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream, readlinkSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import type { Context } from "../../jobs/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import { errors } from "./errors.ts";
import type { BuiltArtefact } from "./keys.ts";
import type { UnitInstance } from "./turn.ts";

/**
 * Builds on this machine: `builds/{repo}/{sha}/` in the data folder, each whole or absent, and the link `current` to the
 * one that is served. A death while downloading or unpacking leaves a folder named `partial-…`, removed by the next
 * installation; the link is switched in one step.
 */

const run = promisify(execFile);
const CURRENT = "current";
const PARTIAL = "partial-";

/** The folder from which the unit's files are served; absent until a build was installed. */
export function currentFolder(unit: UnitInstance): string {
  return join(buildsFolder(unit), CURRENT);
}

/** The commit that is installed here. */
export function installedSha(unit: UnitInstance): string | undefined {
  try {
    return basename(readlinkSync(currentFolder(unit)));
  } catch {
    return undefined;
  }
}

/** Makes the build the one that is served here, or raises `artefact_mismatch` and changes nothing. */
export async function installArtefact(
  ctx: Pick<Context, "providers">,
  unit: UnitInstance,
  artefact: BuiltArtefact,
): Promise<void> {
  const folder = buildsFolder(unit);
  const previous = installedSha(unit);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeExcept(folder, [CURRENT, previous, artefact.sha]);
  const target = join(folder, artefact.sha);
  if (!(await stat(target).catch(() => undefined))) {
    const partial = join(folder, `${PARTIAL}${randomToken()}`);
    await mkdir(partial);
    try {
      const archive = join(partial, "build.tar.gz");
      await download(ctx, artefact, archive);
      const files = join(partial, "files");
      await mkdir(files);
      await run("tar", ["-xzf", archive, "-C", files, "--no-same-owner"]);
      await rename(files, target);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  }
  const link = join(folder, `${PARTIAL}${randomToken()}`);
  await symlink(artefact.sha, link);
  await rename(link, join(folder, CURRENT));
}

async function download(ctx: Pick<Context, "providers">, artefact: BuiltArtefact, path: string): Promise<void> {
  const { objectStore } = ctx.providers;
  if (artefact.bucket !== objectStore.bucket)
    throw errors.artefact_mismatch({ message: `the build lies in the bucket ${artefact.bucket}, which is not ours` });
  const hash = createHash("sha256");
  let size = 0;
  const measured = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      hash.update(chunk);
      done(null, chunk);
    },
  });
  await pipeline(await objectStore.get(artefact.key), measured, createWriteStream(path));
  const sha256 = hash.digest("hex");
  if (size !== artefact.size || sha256 !== artefact.sha256)
    throw errors.artefact_mismatch({
      message: `${artefact.key} has ${size} bytes and checksum ${sha256}; announced were ${artefact.size} and ${artefact.sha256}`,
    });
}

async function removeExcept(folder: string, kept: readonly (string | undefined)[]): Promise<void> {
  const found = await readdir(folder);
  const gone = found.filter((name) => !kept.includes(name));
  await Promise.all(gone.map((name) => rm(join(folder, name), { recursive: true, force: true })));
}

function buildsFolder(unit: UnitInstance): string {
  return join(unit.directory, "builds", unit.repo);
}

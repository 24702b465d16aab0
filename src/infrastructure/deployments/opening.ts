import type { Context } from "../../jobs/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { installArtefact, installedSha } from "./artefact.ts";
import { beginBuild, type Commit, findBuild, newestStoredBuild, recordBundledBuild } from "./builds.ts";
import { keys } from "./keys.ts";
import { openBuildHash } from "./scripts.ts";
import type { UnitInstance } from "./turn.ts";

export interface Opened {
  /** The commit that this instance serves from now on. */
  readonly sha: string;
  /** This instance brought a commit that nobody has built yet: it is to launch the build. */
  readonly launch: boolean;
}

/**
 * What an instance of a built unit does before it serves. Older than the newest stored build: it takes that one over.
 * Otherwise it makes its own commit the current one; whoever is first with a new commit has it built, or without a
 * builder just serves the files that came with its code.
 */
export async function openBuildUnit(
  ctx: Context,
  unit: UnitInstance,
  options: { readonly bundled: Commit; readonly canBuild: boolean },
): Promise<Opened> {
  const { repo } = unit;
  const own = await ownCommit(ctx, unit, options.bundled);
  const newest = await newestStoredBuild(ctx, repo);
  if (newest?.artefact && newest.sha !== own.sha && newest.committedAt > own.committedAt) {
    try {
      await installArtefact(ctx, unit, newest.artefact);
      return { sha: newest.sha, launch: false };
    } catch (error) {
      // The old build can still be served; the periodic comparison tries again.
      ctx.alerts.warning("builds:cannot_converge", `${repo}: ${String(error)}; ${own.sha} is served instead`, {
        urgent: true,
      });
      return { sha: own.sha, launch: false };
    }
  }
  // The row comes first, so that the current commit is never one without a row.
  const known = await findBuild(ctx, repo, own.sha);
  if (!options.canBuild) await recordBundledBuild(ctx, repo, own);
  else if (!known || known.state === "failed") await beginBuild(ctx, repo, own);
  const previous = await open(ctx, repo, own.sha);
  // One that is neither ready nor failed may have lost its launcher: this instance sees to it.
  const unfinished = known?.state !== "ready";
  return { sha: own.sha, launch: options.canBuild && (unfinished || previous !== own.sha) };
}

/** What is installed here counts, unless code with a newer commit was put on the machine since. */
async function ownCommit(ctx: Context, unit: UnitInstance, bundled: Commit): Promise<Commit> {
  const sha = installedSha(unit);
  if (sha === undefined || sha === bundled.sha) return bundled;
  const installed = await findBuild(ctx, unit.repo, sha);
  return installed && installed.committedAt >= bundled.committedAt ? installed : bundled;
}

/** Whether the lost reply was ours cannot be known, so then the build is launched: at worst it is found ready. */
async function open(ctx: Context, repo: string, sha: string): Promise<string | undefined> {
  try {
    return await ctx.redis.run(openBuildHash, [keys.buildHash({ repo })], [sha]);
  } catch (error) {
    if (kernelErrors.outcome_unknown.matches(error)) return undefined;
    throw error;
  }
}

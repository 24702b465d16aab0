import { type Kysely, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import type { BuiltArtefact } from "./keys.ts";
import type { BuildRow, BuildState, DeploymentTables } from "./tables.ts";

/** The rows of `builds`. Only the statements here change a state, and each says from which one. */

const KEPT_BUILDS = 5;

type RowContext = Pick<Context, "sql" | "clock">;

export interface Commit {
  readonly sha: string;
  /** Unix seconds. */
  readonly committedAt: number;
}

export interface Build {
  readonly sha: string;
  readonly state: BuildState;
  readonly committedAt: number;
  readonly finishedAt: number | null;
  readonly error: string | null;
  /** Undefined until it is stored, and for builds that are bundled with the code. */
  readonly artefact: BuiltArtefact | undefined;
}

export async function findBuild(ctx: RowContext, repo: string, sha: string): Promise<Build | undefined> {
  const row = await selectBuilds(ctx).where("repo", "=", repo).where("sha", "=", sha).executeTakeFirst();
  return row && toBuild(row);
}

/** The newest build that instances can take over, by the time of its commit. */
export async function newestStoredBuild(ctx: RowContext, repo: string): Promise<Build | undefined> {
  const row = await selectBuilds(ctx)
    .where("repo", "=", repo)
    .where("state", "=", "ready")
    .where("s3_file_id", "is not", null)
    .orderBy("committed_at", "desc")
    .orderBy("builds.id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && toBuild(row);
}

export async function recentBuilds(ctx: RowContext, limit: number): Promise<(Build & { repo: string })[]> {
  const rows = await selectBuilds(ctx).orderBy("builds.id", "desc").limit(limit).execute();
  return rows.map((row) => ({ ...toBuild(row), repo: row.repo }));
}

/** Writes down a commit that is going to be built, or begins again one that was not finished. True unless it is ready. */
export async function requestBuild(ctx: RowContext, repo: string, commit: Commit): Promise<boolean> {
  return upsertUnlessReady(ctx, repo, commit, "requested");
}

export async function beginBuild(ctx: RowContext, repo: string, commit: Commit): Promise<boolean> {
  return upsertUnlessReady(ctx, repo, commit, "building");
}

/** A commit whose files are bundled with the code: ready, and nowhere else. */
export async function recordBundledBuild(ctx: RowContext, repo: string, commit: Commit): Promise<void> {
  await upsertUnlessReady(ctx, repo, commit, "ready");
}

/** False when the build was given up or finished by somebody else meanwhile. */
export async function finishBuildIfBuilding(
  tables: Kysely<DeploymentTables>,
  build: { repo: string; sha: string; fileId: number; size: number; sha256: string; now: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tables
    .updateTable("builds")
    .set({
      state: "ready",
      s3_file_id: build.fileId,
      size: build.size,
      sha256: build.sha256,
      error: null,
      finished_at: timestamp(build.now),
    })
    .where("repo", "=", build.repo)
    .where("sha", "=", build.sha)
    .where("state", "=", "building")
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** False when it was finished meanwhile. */
export async function failBuildUnlessReady(
  ctx: RowContext,
  repo: string,
  sha: string,
  error: string,
): Promise<boolean> {
  const { numUpdatedRows } = await tablesOf(ctx)
    .updateTable("builds")
    .set({ state: "failed", error: error.slice(0, 1000), finished_at: timestamp(ctx.clock.now()) })
    .where("repo", "=", repo)
    .where("sha", "=", sha)
    .where("state", "in", ["requested", "building"])
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Stored builds beyond the newest ones, except the one in use. */
export async function outdatedBuilds(ctx: RowContext, repo: string, current: string) {
  const rows = await selectBuilds(ctx)
    .select("builds.id as build_id")
    .where("repo", "=", repo)
    .where("state", "=", "ready")
    .where("s3_file_id", "is not", null)
    .orderBy("committed_at", "desc")
    .orderBy("builds.id", "desc")
    .offset(KEPT_BUILDS)
    .execute();
  return rows
    .filter((row) => row.sha !== current)
    .map((row) => ({ id: row.build_id, bucket: row.bucket!, key: row.key! }));
}

export async function deleteBuilds(ctx: RowContext, ids: readonly number[]): Promise<void> {
  await tablesOf(ctx)
    .deleteFrom("builds")
    .where("id", "in", [...ids])
    .execute();
}

function tablesOf(ctx: RowContext) {
  return ctx.sql.tables<DeploymentTables>();
}

function selectBuilds(ctx: RowContext) {
  return tablesOf(ctx)
    .selectFrom("builds")
    .leftJoin("s3_files", "s3_files.id", "builds.s3_file_id")
    .select([
      "repo",
      "sha",
      "state",
      "committed_at",
      "finished_at",
      "error",
      "size",
      "sha256",
      "s3_files.bucket",
      "s3_files.key",
    ]);
}

type SelectedBuild = Pick<BuildRow, "sha" | "state" | "error" | "size" | "sha256"> & {
  committed_at: number;
  finished_at: number | null;
  bucket: string | null;
  key: string | null;
};

function toBuild(row: SelectedBuild): Build {
  const { sha, state, error, size, sha256, bucket, key } = row;
  const stored = size !== null && sha256 !== null && bucket !== null && key !== null;
  return {
    sha,
    state,
    committedAt: row.committed_at,
    finishedAt: row.finished_at,
    error,
    artefact: stored ? { sha, bucket, key, size, sha256 } : undefined,
  };
}

async function upsertUnlessReady(
  ctx: RowContext,
  repo: string,
  commit: Commit,
  state: "requested" | "building" | "ready",
): Promise<boolean> {
  const now = timestamp(ctx.clock.now());
  const finished = state === "ready" ? now : null;
  const changed = await tablesOf(ctx)
    .insertInto("builds")
    .values({
      uid: newUid("bld"),
      repo,
      sha: commit.sha,
      committed_at: timestamp(commit.committedAt),
      state,
      created_at: now,
      finished_at: finished,
    })
    .onConflict((conflict) =>
      conflict
        .columns(["repo", "sha"])
        .doUpdateSet({ state, error: null, finished_at: finished })
        .where(sql<boolean>`builds.state <> 'ready'`),
    )
    .returning("id")
    .executeTakeFirst();
  return changed !== undefined;
}

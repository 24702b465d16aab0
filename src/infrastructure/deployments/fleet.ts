import { spawn } from "node:child_process";
import type { Context } from "../../jobs/context.ts";
import { currentFolder, installedSha } from "./artefact.ts";
import { startBuildUpdater } from "./build-updater.ts";
import { commandBuilder } from "./builder.ts";
import type { Commit } from "./builds.ts";
import { openBuildUnit } from "./opening.ts";
import { startPlainUpdater, type Updater, type UpdaterCallbacks, type UpdaterOptions } from "./plain-updater.ts";
import { settings } from "./settings.ts";
import { gitSource, noSource } from "./source.ts";
import { announceReady } from "./turn.ts";
import { unitKind } from "./units.ts";

export interface DeploymentOptions extends UpdaterCallbacks {
  /** The units that this process hosts. */
  readonly repos: readonly string[];
  /** The data folder of this machine. */
  readonly directory: string;
  /** The commits of built units that came with the code, where no checkout tells. */
  readonly bundled?: Readonly<Record<string, Commit>>;
}

export interface Deployments {
  /** The folder with the installed build of a unit; undefined while the files that came with the code are served. */
  folderOf(repo: string): string | undefined;
  /** To be called once the process serves: ends the turns that its predecessor took. */
  announceReady(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the units of this process and listens for their updates. */
export async function startDeployments(ctx: Context, options: DeploymentOptions): Promise<Deployments> {
  const served = new Map<string, string | undefined>();
  const updaters: Updater[] = [];
  for (const repo of options.repos) {
    const common = updaterOptions(ctx, options, repo);
    const started =
      unitKind(ctx.config, repo) === "plain"
        ? { sha: undefined, updater: await startPlainUpdater(ctx, common) }
        : await startBuilt(ctx, common, options.bundled?.[repo]);
    if (!started.updater) continue;
    served.set(repo, started.sha);
    updaters.push(started.updater);
  }
  return {
    folderOf(repo) {
      const unit = { repo, directory: options.directory };
      return installedSha(unit) === undefined ? undefined : currentFolder(unit);
    },
    async announceReady() {
      for (const [repo, sha] of served) await announceReady(ctx, { repo, directory: options.directory }, sha);
      // The token on this disk belongs to whoever listens: a second process must not end the turn of the first.
      for (const repo of options.repos) if (!served.has(repo)) ctx.alerts.ops(`${repo} ${ctx.hostname} ready`);
    },
    async close() {
      await Promise.all(updaters.map((updater) => updater.close()));
    },
  };
}

async function startBuilt(ctx: Context, common: UpdaterOptions, bundled: Commit | undefined) {
  const checkout = ctx.config.get(settings.checkouts)[common.repo];
  const source = checkout === undefined ? noSource : gitSource(checkout);
  const command = ctx.config.get(settings.buildCommand);
  const builder = command === undefined ? undefined : commandBuilder(command);
  const own = bundled ?? (await source.head());
  const opened = own && (await openBuildUnit(ctx, common, { bundled: own, canBuild: builder !== undefined }));
  const sha = opened?.sha ?? installedSha(common);
  const launch = opened?.launch && own ? { ...own, sha: opened.sha } : undefined;
  return { sha, updater: await startBuildUpdater(ctx, { ...common, source, builder, sha: sha ?? "", launch }) };
}

function updaterOptions(ctx: Context, options: DeploymentOptions, repo: string): UpdaterOptions {
  const { directory, shutdown, exit, onUpdateRequested } = options;
  const command = ctx.config.get(settings.updateCommand);
  const runUpdate = command === undefined ? undefined : commandUpdate(command);
  return { repo, directory, shutdown, exit, onUpdateRequested, runUpdate };
}

/** Starts the update command so that it outlives this process. */
function commandUpdate(command: string): NonNullable<UpdaterOptions["runUpdate"]> {
  return ({ repo, sha }) =>
    new Promise((resolve, reject) => {
      const env = { ...process.env, CARILLON_UPDATE_REPO: repo, CARILLON_UPDATE_SHA: sha ?? "" };
      const child = spawn(command, { shell: true, detached: true, stdio: "ignore", env });
      child.once("error", reject);
      child.once("spawn", () => {
        child.unref();
        resolve();
      });
    });
}

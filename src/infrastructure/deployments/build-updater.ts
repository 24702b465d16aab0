import type { Context } from "../../jobs/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import { installArtefact } from "./artefact.ts";
import { type Builder, setBuildHash } from "./builder.ts";
import { type Commit, findBuild } from "./builds.ts";
import { errors } from "./errors.ts";
import { recordEvent } from "./events.ts";
import { type BuiltArtefact, keys, readUpdateMessage } from "./keys.ts";
import { launchBuild, WakeUp } from "./launch.ts";
import { claimUpdater, leave, type Updater, type UpdaterMode, type UpdaterOptions } from "./plain-updater.ts";
import type { Source } from "./source.ts";
import { takeTurn, tryTake } from "./turn.ts";

/**
 * Listens for updates of a unit that is built once for all its instances.
 *
 *   idle -> settling -> pursuing (tries to win the lock every 10 s, the winner launches the build) -> idle
 *   idle -> waiting (a build is there and it is not ours) -> updating (installed, restarting) -> gone
 *
 * Requests come by message and may be lost; builds to take over also come from looking every 300 s whether the unit's
 * current build is the one served here. One loop does all the work, so pursuing and updating never overlap; a newer
 * request replaces the one before, and a build that is ready goes before any request.
 */

const SETTLE = 5;
const PURSUE_INTERVAL = 10;
const COMPARE_INTERVAL = 300;

export interface BuildUpdaterOptions extends UpdaterOptions {
  readonly source: Source;
  /** Without one, the instances of the unit update themselves like those of a plain unit. */
  readonly builder: Builder | undefined;
  /** The commit that is served here. */
  readonly sha: string;
  /** The commit that this instance brought and is to have built, as its opening said. */
  readonly launch?: Commit;
}

interface BuildRequest {
  readonly sha: string | undefined;
  readonly at: number;
}

export async function startBuildUpdater(ctx: Context, options: BuildUpdaterOptions): Promise<Updater | undefined> {
  const pidFile = claimUpdater(ctx, options);
  if (!pidFile) return undefined;
  const updater = new BuildUpdater(ctx, options);
  const { repo } = options;
  const unsubscribe = await Promise.all([
    ctx.subscriber.subscribe(keys.updates({ repo }), (raw) => updater.receiveRequest(raw)),
    ctx.subscriber.subscribe(keys.doUpdate({ repo }), (raw) => updater.receiveBuild(raw)),
  ]);
  const stopComparing = ctx.clock.every(COMPARE_INTERVAL, () => updater.compare());
  const ended = updater.run();
  return {
    get mode() {
      return updater.mode;
    },
    async close() {
      stopComparing();
      updater.stopListening();
      await Promise.all(unsubscribe.map((stop) => stop()));
      pidFile.release();
      await ended;
    },
  };
}

class BuildUpdater {
  mode: UpdaterMode = "idle";
  readonly #ctx: Context;
  readonly #options: BuildUpdaterOptions;
  readonly #ending = new AbortController();
  readonly #wakeUp = new WakeUp();
  #request: BuildRequest | undefined;
  #build: BuiltArtefact | undefined;
  /** The key of a build that turned out not to be what was announced: not worth another restart. */
  #refused: string | undefined;

  constructor(ctx: Context, options: BuildUpdaterOptions) {
    this.#ctx = ctx;
    this.#options = options;
    if (options.launch) this.#request = { sha: options.launch.sha, at: ctx.clock.now() };
  }

  receiveRequest(raw: Buffer): void {
    const message = readUpdateMessage(raw);
    if (message.kind === "stop") {
      void this.#stop();
      return;
    }
    this.#request = { sha: message.sha, at: this.#ctx.clock.now() };
    this.#options.onUpdateRequested?.(this.#options.repo);
    this.#wakeUp.call();
  }

  receiveBuild(raw: Buffer): void {
    try {
      this.#offer(keys.doUpdate.codec.decode(raw));
    } catch (error) {
      this.#ctx.alerts.warning("updates:malformed_message", `${this.#options.repo}: ${String(error)}`);
    }
  }

  /** Finds what a lost message would have told. */
  async compare(): Promise<void> {
    const { repo } = this.#options;
    const { commands, topology } = this.#ctx.redis;
    try {
      const sha = await commands.get(topology.key(keys.buildHash({ repo })));
      if (sha === null || sha === this.#options.sha) return;
      const build = await findBuild(this.#ctx, repo, sha);
      if (build?.state === "ready" && build.artefact) this.#offer(build.artefact);
    } catch (error) {
      this.#ctx.log.warn({ err: error, repo }, "the unit's current build cannot be looked up");
    }
  }

  stopListening(): void {
    this.#ending.abort();
    this.#wakeUp.call();
  }

  async run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        if (this.#build) await this.#takeOver(this.#build);
        else if (this.#request) await this.#pursue(this.#request);
        else await this.#wakeUp.sleep(this.#ctx, COMPARE_INTERVAL);
      } catch (error) {
        this.#ctx.alerts.error(error, `updating ${this.#options.repo}`);
        await this.#wakeUp.sleep(this.#ctx, PURSUE_INTERVAL);
      }
      if (this.mode === "updating" || this.mode === "stopping") return;
      this.mode = "idle";
    }
  }

  #offer(build: BuiltArtefact): void {
    if (build.sha === this.#options.sha || build.key === this.#refused) return;
    this.#build = build;
    this.#wakeUp.call();
  }

  /** Until the requested commit is built or cannot be, tries to become the one who has it built. */
  async #pursue(request: BuildRequest): Promise<void> {
    const { repo, builder } = this.#options;
    this.mode = "settling";
    if (!(await this.#ctx.clock.sleep(SETTLE, this.#ending.signal))) return;
    if (!builder) return this.#updateWithoutBuild(request);
    const commit = await this.#resolve(request);
    if (!commit) {
      this.#done(request);
      this.#ctx.alerts.warning(
        "builds:unknown_commit",
        `${repo}: the request names no commit and no checkout is configured`,
      );
      return;
    }
    while (!this.#ending.signal.aborted && this.#request === request && !this.#build) {
      const found = await findBuild(this.#ctx, repo, commit.sha);
      if (found?.state === "ready") {
        this.#done(request);
        await setBuildHash(this.#ctx, repo, commit.sha);
        if (found.artefact) this.#offer(found.artefact);
        return;
      }
      if (found?.state === "failed" && (found.finishedAt ?? 0) >= request.at) return this.#done(request);
      const token = randomToken();
      if (await tryTake(this.#ctx, repo, token)) {
        const outcome = await launchBuild(this.#ctx, { repo, commit, builder, token }, this.#ending.signal);
        // A build that is ready is found by the next look, message or not.
        if (outcome === "failed") this.#done(request);
      } else await this.#wakeUp.sleep(this.#ctx, PURSUE_INTERVAL);
    }
  }

  async #resolve(request: BuildRequest): Promise<Commit | undefined> {
    const { source, launch } = this.#options;
    if (request.sha === undefined) return source.head();
    if (request.sha === launch?.sha) return launch;
    return (await source.find(request.sha)) ?? { sha: request.sha, committedAt: request.at };
  }

  /** A newer request must not be forgotten together with the one that was served. */
  #done(request: BuildRequest): void {
    if (this.#request === request) this.#request = undefined;
  }

  async #updateWithoutBuild(request: BuildRequest): Promise<void> {
    this.mode = "waiting";
    const newest = () => this.#request?.sha ?? request.sha;
    const turn = await takeTurn(this.#ctx, this.#options, { signal: this.#ending.signal, sha: newest });
    if (!turn) return;
    this.mode = "updating";
    await leave(this.#ctx, this.#options, newest());
  }

  async #takeOver(build: BuiltArtefact): Promise<void> {
    const { repo } = this.#options;
    this.mode = "waiting";
    const newest = () => this.#build ?? build;
    const turn = await takeTurn(this.#ctx, this.#options, { signal: this.#ending.signal, sha: () => newest().sha });
    if (!turn) return;
    const chosen = newest();
    this.#build = undefined;
    try {
      await installArtefact(this.#ctx, this.#options, chosen);
    } catch (error) {
      const mismatch = errors.artefact_mismatch.matches(error);
      if (mismatch) this.#refused = chosen.key;
      await recordEvent(this.#ctx, { repo, event: "build_failed", token: turn.token, sha: chosen.sha });
      await turn.giveBack();
      this.#ctx.alerts.warning(
        mismatch ? "builds:artefact_mismatch" : "builds:cannot_install",
        `${repo} stays at ${this.#options.sha}: ${error instanceof Error ? error.message : String(error)}`,
        { urgent: true },
      );
      return;
    }
    this.mode = "updating";
    // The new build is in place, so a plain restart is all that is left.
    await leave(this.#ctx, { ...this.#options, runUpdate: undefined }, chosen.sha);
  }

  async #stop(): Promise<void> {
    if (this.mode === "updating" || this.mode === "stopping") return;
    this.mode = "stopping";
    this.stopListening();
    await this.#options.shutdown().catch((error: unknown) => this.#ctx.alerts.error(error, "stopping"));
    this.#options.exit({ restart: false });
  }
}

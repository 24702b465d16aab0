import { join } from "node:path";
import type { KernelContext } from "../../kernel/context.ts";
import { claimPidFile, type PidFile } from "../../kernel/process/index.ts";
import { keys, readUpdateMessage } from "./keys.ts";
import { takeTurn, type UnitInstance } from "./turn.ts";

/**
 * Listens for updates of a unit whose instances update themselves, and takes this instance down when it is its turn.
 *
 *   idle -> settling (5 s, so that the new code is in place) -> waiting -> updating -> gone
 *   any  -> stopping -> gone, on `stop-without-restart`: no turn, no restart
 *
 * A message that comes while settling or waiting replaces the one before: the newest commit counts. Messages are not
 * kept anywhere; an instance that missed one updates at its next start.
 */

const SETTLE = 5;

export interface UpdaterCallbacks {
  /** Stops taking work and finishes what is under way. */
  shutdown(): Promise<void>;
  /** Ends the process; `restart` false: nobody is to start it again by itself. */
  exit(how: { readonly restart: boolean }): void;
  /** An update was asked for; the instance goes on serving until its turn comes. */
  onUpdateRequested?(repo: string): void;
}

export interface UpdaterOptions extends UnitInstance, UpdaterCallbacks {
  /** Starts what brings the new code and starts the instance again; without it the supervisor does. */
  runUpdate?(update: { readonly repo: string; readonly sha: string | undefined }): Promise<void>;
}

export type UpdaterMode = "idle" | "settling" | "waiting" | "updating" | "stopping";

export interface Updater {
  readonly mode: UpdaterMode;
  /** Stops listening; an update that has begun goes on. */
  close(): Promise<void>;
}

export type UpdaterContext = Pick<
  KernelContext,
  "redis" | "sql" | "clock" | "hostname" | "alerts" | "log" | "subscriber"
>;

/** One updater per unit and machine: another live process of this machine may already listen. */
export function claimUpdater(ctx: UpdaterContext, unit: UnitInstance): PidFile | undefined {
  const file = claimPidFile(join(unit.directory, `updater.${unit.repo}.pid`));
  if (!file) ctx.log.info({ repo: unit.repo }, "another process of this machine listens for updates of this unit");
  return file;
}

/** Undefined when another process of this machine already listens. */
export async function startPlainUpdater(ctx: UpdaterContext, options: UpdaterOptions): Promise<Updater | undefined> {
  const pidFile = claimUpdater(ctx, options);
  if (!pidFile) return undefined;
  const updater = new PlainUpdater(ctx, options);
  const unsubscribe = await ctx.subscriber.subscribe(keys.updates({ repo: options.repo }), (raw) =>
    updater.receive(raw),
  );
  return {
    get mode() {
      return updater.mode;
    },
    async close() {
      updater.stopListening();
      await unsubscribe();
      pidFile.release();
    },
  };
}

class PlainUpdater {
  mode: UpdaterMode = "idle";
  readonly #ctx: UpdaterContext;
  readonly #options: UpdaterOptions;
  readonly #ending = new AbortController();
  #sha: string | undefined;

  constructor(ctx: UpdaterContext, options: UpdaterOptions) {
    this.#ctx = ctx;
    this.#options = options;
  }

  receive(raw: Buffer): void {
    const message = readUpdateMessage(raw);
    if (message.kind === "stop") {
      void this.#stop();
      return;
    }
    this.#sha = message.sha;
    this.#options.onUpdateRequested?.(this.#options.repo);
    if (this.mode === "idle") void this.#update().catch((error: unknown) => this.#abandon(error));
  }

  stopListening(): void {
    this.#ending.abort();
  }

  async #update(): Promise<void> {
    this.mode = "settling";
    const { signal } = this.#ending;
    if (!(await this.#ctx.clock.sleep(SETTLE, signal))) return;
    this.mode = "waiting";
    const turn = await takeTurn(this.#ctx, this.#options, { signal, sha: () => this.#sha });
    if (!turn) return;
    this.mode = "updating";
    await leave(this.#ctx, this.#options, this.#sha);
  }

  /** Something on this machine is in the way, such as a full disk; the next request tries again. */
  #abandon(error: unknown): void {
    this.#ctx.alerts.error(error, `updating ${this.#options.repo}`);
    if (this.mode !== "stopping") this.mode = "idle";
  }

  async #stop(): Promise<void> {
    if (this.mode === "updating" || this.mode === "stopping") return;
    this.mode = "stopping";
    this.#ending.abort();
    await shutDown(this.#ctx, this.#options);
    this.#options.exit({ restart: false });
  }
}

/** The turn is taken: down, and up again by whoever brings the new code. */
export async function leave(ctx: UpdaterContext, options: UpdaterOptions, sha: string | undefined): Promise<void> {
  await shutDown(ctx, options);
  if (!options.runUpdate) return options.exit({ restart: true });
  try {
    await options.runUpdate({ repo: options.repo, sha });
    options.exit({ restart: false });
  } catch (error) {
    // Better the old code than none: the supervisor starts it again.
    ctx.alerts.error(error, `the update command of ${options.repo}`);
    options.exit({ restart: true });
  }
}

async function shutDown(ctx: UpdaterContext, options: UpdaterOptions): Promise<void> {
  try {
    await options.shutdown();
  } catch (error) {
    ctx.alerts.error(error, `stopping ${options.repo} for its update`);
  }
}

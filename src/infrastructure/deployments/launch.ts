import type { Context } from "../../jobs/context.ts";
import { type Builder, runBuild, setBuildHash } from "./builder.ts";
import { beginBuild, type Commit, failBuildUnlessReady, findBuild, newestStoredBuild, requestBuild } from "./builds.ts";
import { recordEvent } from "./events.ts";
import { keys } from "./keys.ts";
import { withdrawBuildHash } from "./scripts.ts";
import { releaseTurn, renewTurn } from "./turn.ts";

/**
 * One build, from the lock that was won to the announcement that everybody may take it over.
 *
 *   requested -> building -> ready (build_ready seen or the row found ready) -> lock released -> do_update published
 *                         -> failed (builder failed, or 1800 s are over) -> lock released, urgent alert
 *
 * The `builds` row is authoritative; `build_ready` only saves up to 5 s of looking. The lock is renewed every 60 s; a
 * launcher that dies stops renewing, and within 310 s another instance wins the lock and begins again. A launcher that
 * lost its lock, or is told to stop, ends its builder and leaves the row to its successor.
 */

const LOOK_INTERVAL = 5;
const RENEW_INTERVAL = 60;
const GIVE_UP_AFTER = 1800;
const TIMED_OUT = `build_timeout: no build within ${GIVE_UP_AFTER} s`;

export type LaunchOutcome = "ready" | "failed" | "lock_lost" | "stopped";

export async function launchBuild(
  ctx: Context,
  plan: { readonly repo: string; readonly commit: Commit; readonly builder: Builder; readonly token: string },
  signal: AbortSignal,
): Promise<LaunchOutcome> {
  const { repo, commit, token } = plan;
  const { sha } = commit;
  const ending = new AbortController();
  const wakeUp = new WakeUp();
  const stop = () => wakeUp.call();
  signal.addEventListener("abort", stop, { once: true });
  const unsubscribe = await ctx.subscriber.subscribe(keys.buildReady({ repo }), () => wakeUp.call());
  let failure: string | undefined;
  let outcome: LaunchOutcome;
  try {
    await requestBuild(ctx, repo, commit);
    if (await beginBuild(ctx, repo, commit))
      void runBuild(ctx, { repo, sha, builder: plan.builder }, ending.signal)
        .catch((error: unknown) => {
          failure = error instanceof Error ? error.message : String(error);
        })
        .finally(() => wakeUp.call());
    outcome = await watch(ctx, { repo, sha, token, wakeUp, signal, failure: () => failure });
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    outcome = "failed";
  } finally {
    ending.abort();
    signal.removeEventListener("abort", stop);
    await unsubscribe();
  }
  if (outcome === "failed" && !(await giveUp(ctx, repo, sha, token, failure ?? TIMED_OUT))) outcome = "ready";
  if (outcome !== "lock_lost") await releaseTurn(ctx, repo, token);
  if (outcome === "ready") await announce(ctx, repo, sha);
  return outcome;
}

interface Watched {
  readonly repo: string;
  readonly sha: string;
  readonly token: string;
  readonly wakeUp: WakeUp;
  readonly signal: AbortSignal;
  failure(): string | undefined;
}

async function watch(ctx: Context, { repo, sha, token, wakeUp, signal, failure }: Watched): Promise<LaunchOutcome> {
  const started = ctx.clock.monotonic();
  let renewAt = started + RENEW_INTERVAL;
  for (;;) {
    // Read before the failure: a builder that fails because another one finished is no failure.
    const failedBefore = failure();
    const build = await findBuild(ctx, repo, sha);
    if (build?.state === "ready") return "ready";
    if (build?.state === "failed" || failedBefore !== undefined) return "failed";
    if (signal.aborted) return "stopped";
    const now = ctx.clock.monotonic();
    if (now - started >= GIVE_UP_AFTER) return "failed";
    if (now >= renewAt) {
      if (!(await renewTurn(ctx, repo, token))) {
        ctx.alerts.warning("builds:lock_lost", `${repo}: the launcher of ${sha} was too slow and lost its lock`);
        return "lock_lost";
      }
      renewAt = now + RENEW_INTERVAL;
    }
    await wakeUp.sleep(ctx, LOOK_INTERVAL);
  }
}

/** False when the build became ready in the last moment after all. */
async function giveUp(ctx: Context, repo: string, sha: string, token: string, why: string): Promise<boolean> {
  await failBuildUnlessReady(ctx, repo, sha, why);
  if ((await findBuild(ctx, repo, sha))?.state === "ready") return false;
  const previous = await newestStoredBuild(ctx, repo);
  await ctx.redis.run(withdrawBuildHash, [keys.buildHash({ repo })], [sha, previous?.sha ?? ""]);
  await recordEvent(ctx, { repo, event: "build_failed", token, sha });
  ctx.alerts.warning("builds:failed", `${repo} ${sha} cannot be built: ${why}`, { urgent: true });
  return true;
}

async function announce(ctx: Context, repo: string, sha: string): Promise<void> {
  await setBuildHash(ctx, repo, sha);
  const build = await findBuild(ctx, repo, sha);
  if (build?.artefact) await ctx.redis.commands.publish(keys.doUpdate({ repo }), JSON.stringify(build.artefact));
}

/** A sleep that something else may end; a call that comes while nobody sleeps ends the next sleep. */
export class WakeUp {
  #controller = new AbortController();

  call(): void {
    this.#controller.abort();
  }

  async sleep(ctx: Pick<Context, "clock">, seconds: number): Promise<void> {
    await ctx.clock.sleep(seconds, this.#controller.signal);
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
  }
}

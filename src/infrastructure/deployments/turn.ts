import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import { acquireToken, delIfMatch, renewToken } from "../../mechanisms/lock/index.ts";
import { forgetOldEvents, recordEvent, unfinishedUpdate } from "./events.ts";
import { keys, TURN_LEASE } from "./keys.ts";
import { LocalToken } from "./local-token.ts";

/**
 * A turn: the right of one instance of a unit to be away.
 *
 *   wanted -> waiting (asks every second, keeps serving) -> taken -> the process restarts -> given back by its successor
 *
 * Redis is authoritative: the turn is the token in `updates:{repo}:lock`. Local disk only remembers which token is ours.
 *
 * died while waiting           nobody notices; the instance is new after its restart anyway
 * died after taking the turn   a successor gives it back; without one it ends after 300 s, the next instance takes its
 *                              turn, sees an update without an end and raises `updates:lock_expired`
 * reply to the taking lost     asked again with the same token, which is recognised as ours
 */

const ASK_INTERVAL = 1;

export type TurnContext = Pick<KernelContext, "redis" | "sql" | "clock" | "hostname" | "alerts" | "log">;

/** An instance of a unit, and the data folder of its machine. */
export interface UnitInstance {
  readonly repo: string;
  readonly directory: string;
}

export interface Turn {
  readonly token: string;
  /** Gives the turn back because the update is not going to happen. */
  giveBack(): Promise<void>;
}

/** Waits for this instance's turn; undefined when the signal ends the wait. `sha` is asked anew when the turn is taken. */
export async function takeTurn(
  ctx: TurnContext,
  unit: UnitInstance,
  options: { readonly signal: AbortSignal; sha(): string | undefined },
): Promise<Turn | undefined> {
  const { repo } = unit;
  const token = randomToken();
  const local = new LocalToken(unit.directory, repo, ctx.clock);
  let waiting = false;
  while (!options.signal.aborted) {
    local.write(token);
    if (await tryTake(ctx, repo, token)) {
      await reportExpiredTurn(ctx, repo);
      await recordEvent(ctx, { repo, event: "updating", token, sha: options.sha() });
      return {
        token,
        async giveBack() {
          await releaseTurn(ctx, repo, token);
          local.forget();
        },
      };
    }
    if (!waiting) await recordEvent(ctx, { repo, event: "waiting", token, sha: options.sha() });
    waiting = true;
    await ctx.clock.sleep(ASK_INTERVAL, options.signal);
  }
  local.forget();
  return undefined;
}

/** Called by a process once it serves: ends the turn that its predecessor took. */
export async function announceReady(ctx: TurnContext, unit: UnitInstance, sha?: string): Promise<void> {
  const local = new LocalToken(unit.directory, unit.repo, ctx.clock);
  const token = local.read();
  if (token !== undefined) {
    await releaseTurn(ctx, unit.repo, token);
    await recordEvent(ctx, { repo: unit.repo, event: "ready", token, sha });
    await forgetOldEvents(ctx);
  }
  local.forget();
  ctx.alerts.ops(`${unit.repo} ${ctx.hostname} ready`);
}

/** True when the turn is ours now. A Redis that is away counts as not yet. */
export async function tryTake(ctx: TurnContext, repo: string, token: string): Promise<boolean> {
  try {
    const { outcome } = await ctx.redis.run(acquireToken, [keys.lock({ repo })], [token, TURN_LEASE * 1000]);
    return outcome === "acquired" || outcome === "already_held";
  } catch (error) {
    ctx.log.warn({ err: error, repo }, "the turn cannot be asked for");
    return false;
  }
}

/** True while the turn is still ours. */
export async function renewTurn(ctx: TurnContext, repo: string, token: string): Promise<boolean> {
  return (await ctx.redis.run(renewToken, [keys.lock({ repo })], [token, TURN_LEASE * 1000])).ok;
}

export async function releaseTurn(ctx: TurnContext, repo: string, token: string): Promise<boolean> {
  return ctx.redis.run(delIfMatch, [keys.lock({ repo })], [token]);
}

async function reportExpiredTurn(ctx: TurnContext, repo: string): Promise<void> {
  const lost = await unfinishedUpdate(ctx, repo);
  if (!lost) return;
  await recordEvent(ctx, { repo, event: "lock_expired", token: lost.token ?? undefined });
  ctx.alerts.warning(
    "updates:lock_expired",
    `${repo}: ${lost.instance} began to update and never became ready; the next instance takes its turn`,
    { urgent: true },
  );
}

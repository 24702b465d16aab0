import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { recentBuilds } from "./builds.ts";
import { errors } from "./errors.ts";
import { recentEvents, recordEvent } from "./events.ts";
import { ATTEMPT_WINDOW, keys, writeUpdateMessage } from "./keys.ts";
import { settings } from "./settings.ts";
import { unitKind, unitsOf } from "./units.ts";

export { type DeploymentOptions, type Deployments, startDeployments } from "./fleet.ts";
export { unitsOf } from "./units.ts";

const BUILDS_SHOWN = 50;
const EVENTS_SHOWN = 100;

const requestLimit = counterLimit({
  reason: "deployment_requests",
  limit: 10,
  window: ATTEMPT_WINDOW,
  mode: "fixed",
  whenUnreachable: "closed",
});

/** Lets a caller with the deployment secret pass; every try of an address counts. */
export async function authorizeDeployment(ctx: Context, bearer: string | undefined, address: string): Promise<void> {
  const secret = ctx.config.get(settings.secret);
  if (!secret) throw errors.deployment_not_configured();
  const from = address.replaceAll(/[^0-9A-Za-z.:%_-]/g, "_") || "unknown";
  const result = await attempt(ctx, [requestLimit(keys.requestAttempts({ address: from }))]);
  if (!result.allowed) throw errors.too_many_deployment_requests({ retryAfter: Math.ceil(result.retryAfter) });
  if (bearer === undefined || !equalInConstantTime(bearer, secret)) throw errors.deployment_unauthorized();
}

/** Asks every instance of a unit to update, and says how many heard it. */
export async function requestUpdate(
  ctx: Context,
  request: { readonly repo: string; readonly sha?: string },
): Promise<{ readonly subscribers: number; readonly expected?: number }> {
  const { repo, sha } = request;
  unitKind(ctx.config, repo);
  await recordEvent(ctx, { repo, event: "requested", sha });
  const message = writeUpdateMessage(sha, ctx.clock.now());
  const subscribers = await ctx.redis.commands.publish(keys.updates({ repo }), message);
  const expected = ctx.config.get(settings.expectedInstances)[repo];
  if (expected !== undefined && expected !== subscribers)
    ctx.alerts.warning(
      "updates:unexpected_subscribers",
      `${subscribers} instances of ${repo} heard the update, ${expected} should have`,
    );
  return expected === undefined ? { subscribers } : { subscribers, expected };
}

/** Every unit as it stands: who listens, whose turn it is, what is built. */
export async function deploymentOverview(ctx: Context) {
  const units = Object.entries(unitsOf(ctx.config));
  const repos = units.map(([repo]) => repo);
  const { commands, topology } = ctx.redis;
  const channels = repos.map((repo) => keys.updates({ repo }));
  const [locks, hashes, counts, builds, events] = await Promise.all([
    Promise.all(repos.map((repo) => commands.pttl(topology.key(keys.lock({ repo }))))),
    Promise.all(repos.map((repo) => commands.get(topology.key(keys.buildHash({ repo }))))),
    commands.pubsub("NUMSUB", ...channels) as Promise<(string | number)[]>,
    recentBuilds(ctx, BUILDS_SHOWN),
    recentEvents(ctx, repos, EVENTS_SHOWN),
  ]);
  return {
    units: units.map(([repo, kind], index) => ({
      repo,
      kind,
      // The token stays hidden: whoever knows it could end the turn.
      lock: locks[index]! >= 0 ? { expires_in: locks[index]! / 1000 } : null,
      build_hash: hashes[index] ?? null,
      subscribers: Number(counts[index * 2 + 1] ?? 0),
    })),
    builds: builds.map(({ repo, sha, state, committedAt, finishedAt, error, artefact }) => ({
      repo,
      sha,
      state,
      committed_at: committedAt,
      finished_at: finishedAt,
      error,
      size: artefact?.size ?? null,
    })),
    events,
  };
}

/** Ends the present turn of a unit, whoever has it. */
export async function unlockUnit(ctx: Context, repo: string): Promise<void> {
  unitKind(ctx.config, repo);
  await ctx.redis.commands.del(ctx.redis.topology.key(keys.lock({ repo })));
}

/** Both are hashed first, so that neither length nor content shows in the time it takes. */
function equalInConstantTime(a: string, b: string): boolean {
  const hashed = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(hashed[0]!, hashed[1]!);
}

import { createHash } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { consume, issue } from "../../mechanisms/one-time-token/index.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { openSession } from "./sessions.ts";
import { settings } from "./settings.ts";

/**
 * Signing in to the dashboard: whoever may run commands here prints a link; whoever opens it first gets a session. The
 * secret stands behind the `#`, which browsers keep to themselves, so no log and no proxy ever sees it.
 */
const SIGN_IN_PATH = "/admin/sign-in";

type SignInContext = Pick<Context, "redis" | "clock" | "config">;

const keyOf = (secret: string) => keys.signInLink({ digest: createHash("sha256").update(secret).digest("hex") });

/** Remembers where the server answers, for commands in other processes. */
export async function rememberServerUrl({ redis }: Pick<Context, "redis">, url: string): Promise<void> {
  await redis.commands.set(redis.topology.key(keys.serverUrl()), url);
}

/** A link that works once. Raises `dashboard_nowhere` when no server was ever started and no setting says where it is. */
export async function issueSignInLink(
  ctx: SignInContext,
  plan: { readonly label: string },
): Promise<{ readonly url: string; readonly expiresAt: number }> {
  const { commands, topology } = ctx.redis;
  const base = ctx.config.get(settings.dashboardUrl) ?? (await commands.get(topology.key(keys.serverUrl())));
  if (!base) throw errors.dashboard_nowhere();
  const now = ctx.clock.now();
  const ttl = ctx.config.get(settings.signInLinkLifetime);
  const secret = await issue(ctx, {
    code: () => newUid("link"),
    key: keyOf,
    value: JSON.stringify({ label: plan.label, created_at: now }),
    ttl,
  });
  return { url: `${base}${SIGN_IN_PATH}#${secret}`, expiresAt: now + ttl };
}

/** Trades the secret of a link for a session. The first who comes gets it. */
export async function exchangeSignInLink(
  ctx: SignInContext,
  secret: string,
  visitor: { readonly address: string; readonly userAgent: string },
) {
  const found = await consume(ctx, keyOf(secret));
  if (!found) throw errors.sign_in_link_invalid();
  const { label } = keys.signInLink.codec.decode(found);
  return openSession(ctx, { ...visitor, label });
}

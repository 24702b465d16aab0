import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { delist, enlist, isLive } from "../../mechanisms/one-time-token/index.ts";
import { keys } from "./keys.ts";
import { deriveKey } from "./root-secret.ts";
import { settings } from "./settings.ts";

/**
 * A browser that is signed in to the dashboard. Redis alone knows: a session counts while it stands in `access:sessions`
 * and its hash is there. Opening enters it in the set first, revoking takes it out of the set first; so a death between
 * two steps leaves at most a hash that counts for nothing and goes with its TTL.
 */
export interface Session {
  readonly uid: string;
  readonly label: string;
  /** Where it was signed in from, and with what. */
  readonly address: string;
  readonly user_agent: string;
  readonly created_at: number;
  readonly expires_at: number;
  /** Exact to a minute. */
  readonly last_used_at: number;
}

type SessionContext = Pick<Context, "redis" | "clock" | "config">;

const MOST_SESSIONS = 200;
const USE_NOTED_EVERY = 60;
const LONGEST_USER_AGENT = 256;
const FORM = /^crl_session_[A-Za-z0-9_-]{22}$/;

const digestOf = (secret: string) => createHash("sha256").update(secret).digest();
const uidOf = (digest: Buffer) => `crl_ses_${digest.toString("base64url").slice(0, 22)}`;

/** The only moment at which the secret itself is known. */
export async function openSession(
  ctx: SessionContext,
  visitor: { readonly label: string; readonly address: string; readonly userAgent: string },
): Promise<{ readonly session: Session; readonly secret: string }> {
  const secret = newUid("session");
  const digest = digestOf(secret);
  const uid = uidOf(digest);
  const now = ctx.clock.now();
  const lifetime = ctx.config.get(settings.sessionLifetime);
  const session: Session = {
    uid,
    label: visitor.label,
    address: visitor.address,
    user_agent: visitor.userAgent.slice(0, LONGEST_USER_AGENT),
    created_at: now,
    expires_at: now + lifetime,
    last_used_at: now,
  };
  await enlist(ctx, keys.sessions(), [{ jti: uid, expiry: session.expires_at }], { cap: MOST_SESSIONS });
  const { uid: _, ...kept } = session;
  await write(ctx, uid, keys.session.codec.encode({ ...kept, secret_hash: digest.toString("hex") }), lifetime);
  return { session, secret };
}

/** The session that a cookie's secret belongs to; undefined once it has ended. */
export async function verifySession(ctx: SessionContext, secret: string): Promise<Session | undefined> {
  if (!FORM.test(secret)) return undefined;
  const digest = digestOf(secret);
  const uid = uidOf(digest);
  const [live, found] = await Promise.all([isLive(ctx, keys.sessions(), uid), read(ctx, uid)]);
  if (!live || !found || !timingSafeEqual(Buffer.from(found.secret_hash, "hex"), digest)) return undefined;
  const { secret_hash: _, ...session } = found;
  const now = ctx.clock.now();
  if (session.last_used_at <= now - USE_NOTED_EVERY)
    await write(ctx, uid, ["last_used_at", String(now)], session.expires_at - now);
  return session;
}

/** Those that count, the newest first. */
export async function listSessions(ctx: SessionContext): Promise<readonly Session[]> {
  const { commands, topology } = ctx.redis;
  const uids = await commands.zrangebyscore(topology.key(keys.sessions()), `(${ctx.clock.now()}`, "+inf");
  const found = await Promise.all(uids.map((uid) => read(ctx, uid)));
  return found
    .flatMap((each) => {
      if (!each) return [];
      const { secret_hash: _, ...session } = each;
      return [session];
    })
    .sort((one, other) => other.created_at - one.created_at);
}

/** Ends a session at once, everywhere; false when it had ended already. */
export async function revokeSession(ctx: SessionContext, uid: string): Promise<boolean> {
  const ended = await delist(ctx, keys.sessions(), uid);
  await ctx.redis.commands.del(ctx.redis.topology.key(keys.session({ uid })));
  return ended;
}

/**
 * What the page must send along with every change that the cookie alone would allow. A foreign page can make a browser send
 * the cookie, but can read neither it nor the answer that tells this.
 */
export function csrfTokenOf(ctx: Pick<Context, "config">, secret: string): string {
  return createHmac("sha256", deriveKey(ctx, "carillon-dashboard-csrf")).update(secret).digest("base64url");
}

export function isCsrfTokenOf(ctx: Pick<Context, "config">, secret: string, given: string): boolean {
  return timingSafeEqual(digestOf(given), digestOf(csrfTokenOf(ctx, secret)));
}

async function read({ redis }: SessionContext, uid: string) {
  const raw = await redis.commands.hgetallBuffer(redis.topology.key(keys.session({ uid })));
  return Object.keys(raw).length === 0 ? undefined : { uid, ...keys.session.codec.decode(raw) };
}

/** With its TTL in one step: a use noted while the session is revoked must not leave a hash for ever. */
async function write(
  { redis }: SessionContext,
  uid: string,
  values: readonly (string | Buffer)[],
  seconds: number,
): Promise<void> {
  const key = redis.topology.key(keys.session({ uid }));
  await redis.commands
    .multi()
    .hset(key, ...values)
    .pexpire(key, Math.max(1, Math.ceil(seconds * 1000)))
    .exec();
}

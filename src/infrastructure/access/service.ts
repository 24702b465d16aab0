import type { Context } from "../../jobs/context.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { getUser } from "../../people/users/service.ts";
import { errors } from "./errors.ts";
import { ADMIN_WRITE_WINDOW, keys } from "./keys.ts";
import { ACCESS, signToken } from "./tokens.ts";

export {
  type AdminToken,
  createAdminToken,
  listAdminTokens,
  revokeAdminToken,
  verifyAdminToken,
} from "./admin-tokens.ts";
export { type AuditEntry, listAudit, withoutSecrets, writeAudit } from "./audit.ts";
export { authenticate, bearerOf, type Principal } from "./bearer.ts";
export {
  authenticateCookie,
  CSRF_HEADER,
  isFromOwnPage,
  sessionCookie,
  sessionSecretOf,
} from "./cookie.ts";
export { errors } from "./errors.ts";
export { deriveKey, withRootSecret } from "./root-secret.ts";
export { csrfTokenOf, listSessions, openSession, revokeSession, type Session, verifySession } from "./sessions.ts";
export { exchangeSignInLink, issueSignInLink, rememberServerUrl } from "./sign-in.ts";
export { ACCESS, type Audience, ISSUER, signToken, type TokenPlan, type VerifiedToken, verifyToken } from "./tokens.ts";

export const ADMIN_WRITES_PER_MINUTE = 60;

const adminWrites = counterLimit({
  reason: "admin_writes",
  limit: ADMIN_WRITES_PER_MINUTE,
  window: ADMIN_WRITE_WINDOW,
  mode: "fixed",
});

/** Counts one change by this administrator, or refuses it. */
export async function countAdminWrite(ctx: Context, admin: string): Promise<void> {
  const result = await attempt(ctx, [adminWrites(keys.adminWrites({ admin }))]);
  if (!result.allowed) throw errors.too_many_admin_writes({ retryAfter: Math.ceil(result.retryAfter) });
}

/** An access token for a user who exists; undefined otherwise. */
export async function mintAccessToken(
  ctx: Context,
  sub: string,
  expiresIn: number,
): Promise<{ readonly token: string; readonly expiresAt: number } | undefined> {
  if (!(await getUser(ctx, sub))) return undefined;
  const expiresAt = ctx.clock.now() + expiresIn;
  return { token: await signToken(ctx, { audience: ACCESS, subject: sub, expiresIn }), expiresAt };
}

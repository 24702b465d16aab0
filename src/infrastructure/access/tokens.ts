import { errors as joseErrors, jwtVerify, SignJWT } from "jose";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { deriveKey } from "./root-secret.ts";

export const ISSUER = "carillon";

/** Whom a token is for. A token for one audience is worthless to every other: each has a key of its own. */
export type Audience = `${typeof ISSUER}-${string}`;
export const ACCESS = "carillon-access" satisfies Audience;

export interface TokenPlan {
  readonly audience: Audience;
  /** What the token speaks for: a user's sub, an upload's uid, a job's uid. */
  readonly subject: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly claims?: Readonly<Record<string, unknown>>;
}

export type VerifiedToken =
  | {
      readonly ok: true;
      readonly subject: string;
      readonly issuedAt: number;
      readonly expiresAt: number;
      readonly jti: string;
      readonly claims: Readonly<Record<string, unknown>>;
    }
  | { readonly ok: false; readonly reason: "invalid" | "expired" };

type TokenContext = Pick<Context, "config" | "clock">;

/** An HS256 JWT that only this installation can make and check. */
export function signToken(ctx: TokenContext, plan: TokenPlan): Promise<string> {
  // Fractions matter: a token made in the same second as a revocation, but after it, must work.
  const now = Number(ctx.clock.now().toFixed(6));
  return new SignJWT({ ...plan.claims })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuer(ISSUER)
    .setAudience(plan.audience)
    .setSubject(plan.subject)
    .setJti(newUid("jti"))
    .setIssuedAt(now)
    .setExpirationTime(now + plan.expiresIn)
    .sign(deriveKey(ctx, plan.audience));
}

export async function verifyToken(ctx: TokenContext, audience: Audience, jwt: string): Promise<VerifiedToken> {
  try {
    const { payload } = await jwtVerify(jwt, deriveKey(ctx, audience), {
      algorithms: ["HS256"],
      issuer: ISSUER,
      audience,
      requiredClaims: ["sub", "iat", "exp", "jti"],
      currentDate: new Date(ctx.clock.now() * 1000),
    });
    const { sub, iat, exp, jti } = payload as { sub: string; iat: number; exp: number; jti: string };
    return { ok: true, subject: sub, issuedAt: iat, expiresAt: exp, jti, claims: payload };
  } catch (error) {
    if (error instanceof joseErrors.JWTExpired) return { ok: false, reason: "expired" };
    if (error instanceof joseErrors.JOSEError || error instanceof TypeError) return { ok: false, reason: "invalid" };
    throw error;
  }
}

import { timingSafeEqual } from "node:crypto";
import { decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose";
import type { KernelContext } from "../../kernel/context.ts";
import { errors } from "./errors.ts";
import { appleIssuer, cognitoIssuer, type Issuer } from "./issuer.ts";
import { verificationKey } from "./key-copies.ts";

type VerifierContext = Pick<KernelContext, "clock" | "cacheRedis" | "alerts" | "config" | "log">;

/** Claims of a token whose signature, issuer, life time and addressee were checked. */
export type VerifiedClaims = JWTPayload & { readonly sub: string };

/** The claims of an Apple id token made for `audience` in the sign-in that `nonce` was given to. */
export async function verifyAppleIdToken(
  ctx: VerifierContext,
  token: string,
  expected: { readonly audience: string; readonly nonce: string },
): Promise<VerifiedClaims> {
  const claims = await verify(ctx, appleIssuer(ctx), token, expected.audience);
  if (typeof claims.nonce !== "string" || !equal(claims.nonce, expected.nonce)) throw errors.nonce_mismatch();
  return claims;
}

/** The claims of an id or access token of the configured Cognito pool, made for the configured client. */
export async function verifyCognitoToken(ctx: VerifierContext, token: string): Promise<VerifiedClaims> {
  const issuer = cognitoIssuer(ctx);
  const claims = await verify(ctx, issuer, token, undefined);
  // An id token names its client as the audience, an access token in a claim of its own.
  const client = claims.token_use === "id" ? claims.aud : claims.token_use === "access" ? claims.client_id : undefined;
  if (client !== issuer.client) throw errors.invalid_issuer_token({ message: "the token was made for another client" });
  return claims;
}

async function verify(
  ctx: VerifierContext,
  issuer: Issuer,
  token: string,
  audience: string | undefined,
): Promise<VerifiedClaims> {
  const header = headerOf(token);
  const { key, algorithm } = await verificationKey(ctx, issuer, header.kid);
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [algorithm],
      issuer: issuer.issuer,
      audience,
      requiredClaims: ["sub", "exp"],
      currentDate: new Date(ctx.clock.now() * 1000),
    });
    if (typeof payload.sub !== "string" || payload.sub === "") throw new Error("the token has no subject");
    return payload as VerifiedClaims;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw errors.invalid_issuer_token({ message: `the token of ${issuer.name} is not valid: ${why}`, cause });
  }
}

function headerOf(token: string): { kid: string } {
  try {
    const { kid } = decodeProtectedHeader(token);
    if (typeof kid === "string" && kid !== "") return { kid };
  } catch {
    // Falls through to the same refusal: to the caller both are tokens that nobody can check.
  }
  throw errors.invalid_issuer_token({ message: "the token names no signing key" });
}

function equal(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

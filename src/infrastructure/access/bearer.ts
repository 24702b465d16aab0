import type { Context } from "../../jobs/context.ts";
import { readStanding } from "../../people/users/service.ts";
import { verifyAdminToken } from "./admin-tokens.ts";
import { errors } from "./errors.ts";
import { ACCESS, verifyToken } from "./tokens.ts";

/** Who stands behind a credential. */
export type Principal =
  | { readonly kind: "admin_token" | "session"; readonly sub: string; readonly role: "admin" }
  | { readonly kind: "user"; readonly sub: string; readonly role: "user" | "admin" };

const REFUSALS = {
  invalid: errors.credential_invalid,
  expired: errors.credential_expired,
  revoked: errors.credential_revoked,
};

/** The token of an `Authorization: Bearer` header; undefined when there is no header at all. */
export function bearerOf(header: string | undefined): string | undefined {
  if (header === undefined || header === "") return undefined;
  const found = /^bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header);
  if (!found) throw errors.credential_invalid({ message: "The Authorization header must be `Bearer` and one token." });
  return found[1];
}

/**
 * Checks a credential of either kind. The role is always the one in the users table now, never one that a token claims.
 * `fresh` demands that a user's row is read for this very request, as every change does.
 */
export async function authenticate(
  ctx: Pick<Context, "sql" | "clock" | "config">,
  bearer: string,
  options: { fresh: boolean },
): Promise<Principal> {
  if (bearer.startsWith("crl_admin_")) {
    const check = await verifyAdminToken(ctx, bearer);
    if (!check.ok) throw REFUSALS[check.reason]();
    return { kind: "admin_token", sub: check.uid, role: "admin" };
  }
  const token = await verifyToken(ctx, ACCESS, bearer);
  if (!token.ok) throw REFUSALS[token.reason]();
  const standing = await readStanding(ctx, token.subject, options);
  if (!standing) throw errors.credential_revoked({ message: "The user of this token no longer exists." });
  if (standing.tokensValidAfter !== null && token.issuedAt < standing.tokensValidAfter)
    throw errors.credential_revoked();
  return { kind: "user", sub: standing.sub, role: standing.role === "admin" ? "admin" : "user" };
}

import { createHmac, createSecretKey } from "node:crypto";
import { deriveKey } from "../../infrastructure/access/service.ts";
import type { Context } from "../../jobs/context.ts";

const PURPOSE = "message log: addresses";

/**
 * Digests of addresses, keyed: phone numbers are so few that a plain digest could be tried for all of them. Case is not
 * part of an address here, because people who ask for help do not remember how they once wrote it.
 */
export function digester(ctx: Pick<Context, "config">): (address: string) => string {
  const key = createSecretKey(deriveKey(ctx, PURPOSE));
  return (address) => createHmac("sha256", key).update(address.trim().toLowerCase()).digest("base64url").slice(0, 32);
}

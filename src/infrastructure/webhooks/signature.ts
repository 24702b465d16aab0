import { createHmac } from "node:crypto";
import type { Config } from "../../kernel/config.ts";
import { deriveKey } from "../access/service.ts";

/** Which secrets an endpoint has now. */
export interface SecretHolder {
  readonly uid: string;
  readonly secret_number: number;
  readonly previous_secret_until: number | null;
}

/**
 * Secrets are derived from the root secret, the endpoint and a number that rotation raises. So they are kept nowhere: who
 * reads the database or a backup of it can sign nothing.
 */
function secretBytes(ctx: { readonly config: Config }, uid: string, number: number): Buffer {
  return createHmac("sha256", deriveKey(ctx, "webhook-endpoints")).update(`${uid} ${number}`).digest();
}

/** The secret as receivers are given it. */
export function secretOf(ctx: { readonly config: Config }, { uid, secret_number }: SecretHolder): string {
  return `whsec_${secretBytes(ctx, uid, secret_number).toString("base64")}`;
}

export interface Signed {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/** The headers by which a receiver knows a message: one signature for each secret that is valid now. */
export function sign(
  ctx: { readonly config: Config },
  endpoint: SecretHolder,
  message: { readonly uid: string; readonly body: string },
  now: number,
): Signed {
  const timestamp = String(Math.floor(now));
  const { uid, secret_number: present, previous_secret_until: until } = endpoint;
  const numbers = until !== null && until > now ? [present, present - 1] : [present];
  const signatures = numbers.map((number) => {
    const mac = createHmac("sha256", secretBytes(ctx, uid, number));
    return `v1,${mac.update(`${message.uid}.${timestamp}.${message.body}`).digest("base64")}`;
  });
  return { "webhook-id": message.uid, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

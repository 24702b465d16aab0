import { createHmac, timingSafeEqual } from "node:crypto";

export interface SignedRequest {
  /** Where this installation is reached from outside; scheme, host and port count. */
  readonly publicUrl: string;
  /** Path and query, as the request had them. */
  readonly path: string;
  /** The decoded fields of the form, each name once, blank values included. */
  readonly fields: Iterable<readonly [string, string]>;
}

const DIGEST_BYTES = 20;
const BASE64_DIGEST = /^[A-Za-z0-9+/]{27}=$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** The signature that Twilio puts on a request to this address. */
export function signTwilioRequest(authToken: string, request: SignedRequest): string {
  return digest(authToken, addresses(request)[0]!, request.fields).toString("base64");
}

/** True for text that can be a signature at all. */
export function isTwilioSignature(signature: string): boolean {
  return BASE64_DIGEST.test(signature) && Buffer.from(signature, "base64").length === DIGEST_BYTES;
}

/**
 * Whether a request was signed with our token. Behind proxies Twilio and we may disagree on whether the default port is
 * part of the address, so both spellings count; both are always computed, in time that does not tell which matched.
 */
export function verifyTwilioSignature(authToken: string, signature: string, request: SignedRequest): boolean {
  if (!isTwilioSignature(signature)) return false;
  const given = Buffer.from(signature, "base64");
  const fields = [...request.fields];
  return addresses(request)
    .map((address) => timingSafeEqual(digest(authToken, address, fields), given))
    .includes(true);
}

function digest(authToken: string, address: string, fields: Iterable<readonly [string, string]>): Buffer {
  const hmac = createHmac("sha1", authToken).update(address, "utf8");
  // By code unit, as `<` compares; a sort by locale would order some names otherwise.
  for (const [name, value] of [...fields].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    hmac.update(name, "utf8").update(value, "utf8");
  return hmac.digest();
}

/** The request's address, first as it is usually written, then with the scheme's default port spelled out. */
function addresses({ publicUrl, path }: SignedRequest): string[] {
  const { protocol, hostname, port } = new URL(publicUrl);
  const bare = `${protocol}//${hostname}`;
  if (port !== "") return [`${bare}:${port}${path}`];
  const usual = DEFAULT_PORTS[protocol];
  return [`${bare}${path}`, ...(usual === undefined ? [] : [`${bare}:${usual}${path}`])];
}

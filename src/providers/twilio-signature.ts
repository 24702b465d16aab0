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
  return digest(authToken, addresses(request)[0]!, contentOf(request)).toString("base64");
}

/** True for text that can be a signature at all. */
export function isTwilioSignature(signature: string): boolean {
  return BASE64_DIGEST.test(signature) && Buffer.from(signature, "base64").length === DIGEST_BYTES;
}

/**
 * Whether a request was signed with our token. Behind proxies Twilio and we may disagree on whether the default port is
 * part of the address, so both spellings count. Comparing takes the same time wherever two digests differ.
 */
export function verifyTwilioSignature(authToken: string, signature: string, request: SignedRequest): boolean {
  if (!isTwilioSignature(signature)) return false;
  const given = Buffer.from(signature, "base64");
  const content = contentOf(request);
  return addresses(request).some((address) => timingSafeEqual(digest(authToken, address, content), given));
}

function digest(authToken: string, address: string, content: string): Buffer {
  return createHmac("sha1", authToken)
    .update(address + content, "utf8")
    .digest();
}

/** Names and values in the order of the names by code unit, as `<` compares; a sort by locale would order some otherwise. */
function contentOf({ fields }: SignedRequest): string {
  let content = "";
  for (const [name, value] of [...fields].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) content += name + value;
  return content;
}

/** The request's address, first as it is usually written, then with the scheme's default port spelled out. */
function addresses({ publicUrl, path }: SignedRequest): string[] {
  return originsOf(publicUrl).map((origin) => origin + path);
}

/** Of the address that was asked for last: an installation has one, and taking it apart costs more than the digest. */
let known: { readonly publicUrl: string; readonly origins: readonly string[] } | undefined;

function originsOf(publicUrl: string): readonly string[] {
  if (known?.publicUrl === publicUrl) return known.origins;
  const { protocol, hostname, port } = new URL(publicUrl);
  const bare = `${protocol}//${hostname}`;
  const usual = DEFAULT_PORTS[protocol];
  const origins = port !== "" ? [`${bare}:${port}`] : usual === undefined ? [bare] : [bare, `${bare}:${usual}`];
  known = { publicUrl, origins };
  return origins;
}

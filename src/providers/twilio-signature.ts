import { createHmac, hash, timingSafeEqual } from "node:crypto";

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
  return digest(authToken, addresses(request)[0]! + contentOf(request));
}

/** True for text that can be a signature at all: twenty bytes in base64. */
export function isTwilioSignature(signature: string): boolean {
  return BASE64_DIGEST.test(signature);
}

/**
 * Whether a request was signed with our token. Behind proxies Twilio and we may disagree on whether the default port is
 * part of the address, so both spellings count. Comparing takes the same time wherever two digests differ.
 */
export function verifyTwilioSignature(authToken: string, signature: string, request: SignedRequest): boolean {
  if (!isTwilioSignature(signature)) return false;
  const given = Buffer.from(signature, "latin1");
  const content = contentOf(request);
  return addresses(request).some((address) =>
    timingSafeEqual(Buffer.from(digest(authToken, address + content), "latin1"), given),
  );
}

/** The block of SHA-1, by which keys are padded; and the longest text whose bytes surely fit beside one. */
const BLOCK = 64;
const SHORT = 4_096;
/** The key that was used last, as both halves of the algorithm need it. An installation has one. */
let pads: { readonly authToken: string; readonly inner: Buffer; readonly outer: Buffer } | undefined;

/**
 * HMAC-SHA1 in base64. Requests of the usual length take the way of two plain hashes over a padded key that is kept, as
 * the algorithm is defined: it costs a third of an Hmac object, and there are thousands of requests a second.
 */
function digest(authToken: string, text: string): string {
  if (text.length > SHORT || Buffer.byteLength(authToken) > BLOCK)
    return createHmac("sha1", authToken).update(text, "utf8").digest("base64");
  if (pads?.authToken !== authToken) pads = { authToken, ...padded(authToken) };
  const { inner, outer } = pads;
  const length = inner.write(text, BLOCK, "utf8");
  outer.write(hash("sha1", inner.subarray(0, BLOCK + length), "binary"), BLOCK, "latin1");
  return hash("sha1", outer, "base64");
}

function padded(authToken: string): { readonly inner: Buffer; readonly outer: Buffer } {
  const inner = Buffer.alloc(BLOCK + 3 * SHORT);
  const outer = Buffer.alloc(BLOCK + DIGEST_BYTES);
  const key = Buffer.alloc(BLOCK);
  key.write(authToken, "utf8");
  for (const [at, byte] of key.entries()) {
    inner[at] = byte ^ 0x36;
    outer[at] = byte ^ 0x5c;
  }
  return { inner, outer };
}

/** Names and values in the order of the names by code unit, as `<` compares; a sort by locale would order some otherwise. */
function contentOf({ fields }: SignedRequest): string {
  let content = "";
  for (const field of [...fields].sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)))
    content += field[0] + field[1];
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

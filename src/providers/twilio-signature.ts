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
const BASE64_LENGTH = 28;
const BASE64_DIGEST = /^[A-Za-z0-9+/]{27}=$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** The signature that Twilio puts on a request to this address. */
export function signTwilioRequest(authToken: string, request: SignedRequest): string {
  return digest(authToken, originsOf(request.publicUrl)[0]! + request.path + contentOf(request));
}

/** True for text that can be a signature at all: twenty bytes in base64. */
export function isTwilioSignature(signature: string): boolean {
  return BASE64_DIGEST.test(signature);
}

/** Whether a request was signed with our token. */
export function verifyTwilioSignature(authToken: string, signature: string, request: SignedRequest): boolean {
  const { publicUrl, path } = request;
  if (!isTwilioSignature(signature)) return false;
  return fitsTwilioSignature(authToken, signature, { publicUrl, path, content: contentOf(request) });
}

/** A request whose names and values are one text already, in the order of the names. */
export interface ContentRequest extends Pick<SignedRequest, "publicUrl" | "path"> {
  readonly content: string;
}

const [made, given] = [Buffer.alloc(BASE64_LENGTH), Buffer.alloc(BASE64_LENGTH)];

/**
 * The same for what can be a signature. Behind proxies Twilio and we may disagree on whether the default port is part of
 * the address, so both spellings count. Comparing takes the same time wherever two digests differ.
 */
export function fitsTwilioSignature(
  authToken: string,
  signature: string,
  { publicUrl, path, content }: ContentRequest,
): boolean {
  given.write(signature, "latin1");
  for (const origin of originsOf(publicUrl)) {
    made.write(digest(authToken, origin + path + content), "latin1");
    if (timingSafeEqual(made, given)) return true;
  }
  return false;
}

/** The block of SHA-1, by which keys are padded. */
const BLOCK = 64;
const ASCII = /^[\0-\x7f]*$/;

/** A key as both halves of the algorithm need it; a text stays one when it is padded, since it is ASCII. */
interface Padded {
  readonly inner: string;
  readonly outer: Buffer;
}

/** By the key. An installation has one or two. */
const pads = new Map<string, Padded>();

/**
 * HMAC-SHA1 in base64, as the algorithm is defined: two plain hashes over a padded key that is kept. It costs a third of an
 * Hmac object, and there are thousands of requests a second.
 */
function digest(authToken: string, text: string): string {
  const known = pads.get(authToken);
  if (!known && (authToken.length > BLOCK || !ASCII.test(authToken)))
    return createHmac("sha1", authToken).update(text, "utf8").digest("base64");
  const { inner, outer } = known ?? padded(authToken);
  outer.write(hash("sha1", inner + text, "binary"), BLOCK, "latin1");
  return hash("sha1", outer, "base64");
}

function padded(authToken: string): Padded {
  const key = Buffer.alloc(BLOCK);
  key.write(authToken, "latin1");
  const inner = String.fromCharCode(...key.map((byte) => byte ^ 0x36));
  const outer = Buffer.alloc(BLOCK + DIGEST_BYTES);
  outer.set(key.map((byte) => byte ^ 0x5c));
  const made = { inner, outer };
  pads.set(authToken, made);
  return made;
}

/** Names and values in the order of the names by code unit, as `<` compares; a sort by locale would order some otherwise. */
function contentOf({ fields }: SignedRequest): string {
  let content = "";
  for (const field of [...fields].sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)))
    content += field[0] + field[1];
  return content;
}

/**
 * Our own address, first as it is usually written, then with the scheme's default port spelled out. The one that was asked
 * for last is kept: an installation has one, and taking it apart costs more than the digest.
 */
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

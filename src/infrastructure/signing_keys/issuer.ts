import { z } from "zod";
import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { errors } from "./errors.ts";
import { keys, PublishedKey } from "./keys.ts";
import { settings } from "./settings.ts";

/** Who signs tokens, where its public keys are published, and where our copy of them is. */
export interface Issuer {
  readonly name: "apple" | "cognito";
  readonly issuer: string;
  readonly address: string;
  readonly copy: KeyName<"string">;
}

/** Tokens name Apple itself as their issuer, wherever the keys are fetched from. */
const APPLE_ISSUER = "https://appleid.apple.com";
const FETCH_TIMEOUT = 5;
const LARGEST_BODY = 262_144;

const PublishedBody = z.object({ keys: z.array(PublishedKey) });

export function appleIssuer(ctx: Pick<KernelContext, "config">): Issuer {
  const base = trimmed(ctx.config.get(settings.appleBaseUrl));
  return { name: "apple", issuer: APPLE_ISSUER, address: `${base}/auth/keys`, copy: keys.apple() };
}

export function cognitoIssuer(ctx: Pick<KernelContext, "config">): Issuer & { readonly client: string } {
  const { config } = ctx;
  const pool = config.get(settings.cognitoPool);
  const client = config.get(settings.cognitoClient);
  if (!pool || !client) throw errors.issuer_not_configured();
  const region = config.get(settings.cognitoRegion);
  const base = trimmed(config.get(settings.cognitoBaseUrl) ?? `https://cognito-idp.${region}.amazonaws.com`);
  const issuer = `${base}/${pool}`;
  return { name: "cognito", issuer, address: `${issuer}/.well-known/jwks.json`, copy: keys.cognito(), client };
}

/** Asks the issuer. Anything but a 200 with a body of the documented shape is an error. */
export async function fetchPublishedKeys(ctx: Pick<KernelContext, "clock">, issuer: Issuer): Promise<PublishedKey[]> {
  const deadline = new AbortController();
  const done = new AbortController();
  void ctx.clock.sleep(FETCH_TIMEOUT, done.signal).then((passed) => {
    if (passed) deadline.abort(new Error(`no answer within ${FETCH_TIMEOUT} s`));
  });
  try {
    const response = await fetch(issuer.address, { signal: deadline.signal, redirect: "error" });
    if (response.status !== 200) throw new Error(`answered ${response.status}`);
    const body = await readUpTo(response, LARGEST_BODY);
    return PublishedBody.parse(JSON.parse(body)).keys;
  } finally {
    done.abort();
  }
}

async function readUpTo(response: Response, largest: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > largest) throw new Error(`answered more than ${largest} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function trimmed(base: string): string {
  return base.replace(/\/+$/, "");
}

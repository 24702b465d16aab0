import { z } from "zod";
import { expires, family, json, string } from "../../kernel/keyspace/index.ts";

/** How long a copy in Redis is trusted. */
export const KEYS_TTL = 3600;

/** One public key as its issuer publishes it; issuers may add fields, and keys that are not for us. */
export const PublishedKey = z.looseObject({
  kid: z.string(),
  kty: z.string(),
  alg: z.string().optional(),
  use: z.string().optional(),
  n: z.string().optional(),
  e: z.string().optional(),
});
export type PublishedKey = z.infer<typeof PublishedKey>;

const publishedKeys = json(z.array(PublishedKey), { shape: "JSON array of JWKs (`kid, alg, kty, use, n, e`)" });

export const keys = family("signing_keys", {
  apple: string("apple:jwks", publishedKeys, {
    doc: "the public keys with which Apple signs id tokens, as last fetched",
    ttl: expires(KEYS_TTL),
    cache: true,
  }),
  cognito: string("cognito:jwks", publishedKeys, {
    doc: "the public keys with which the Amazon Cognito pool signs tokens, as last fetched",
    ttl: expires(KEYS_TTL),
    cache: true,
  }),
});

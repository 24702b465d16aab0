import { z } from "zod";
import {
  decimal,
  expires,
  family,
  fields,
  hash,
  integer,
  json,
  member,
  string,
  text,
  zset,
} from "../../kernel/keyspace/index.ts";

export const ADMIN_WRITE_WINDOW = 60;

const SignInLink = z.object({ label: z.string(), created_at: z.number() });

export const keys = family("access", {
  adminWrites: string("access:admin_writes:{admin}", integer, {
    doc: "How many changes one administrator has made in the running minute.",
    ttl: expires(ADMIN_WRITE_WINDOW),
    origin: "carillon",
    params: { admin: /[A-Za-z0-9._|@+-]{1,128}/ },
  }),
  signInLink: string("access:sign_in_link:{digest}", json(SignInLink, { shape: "link JSON" }), {
    doc: "A link that signs one person in to the dashboard, once; the digest is that of its secret.",
    ttl: expires(undefined, "access.signInLinkLifetime"),
    origin: "carillon",
    params: { digest: /[0-9a-f]{64}/ },
  }),
  session: hash(
    "access:session:{uid}",
    fields({
      secret_hash: text,
      label: text,
      address: text,
      user_agent: text,
      created_at: decimal,
      expires_at: decimal,
      last_used_at: decimal,
    }),
    {
      doc: "One browser that is signed in to the dashboard. The uid follows from the secret in its cookie, not the reverse.",
      ttl: expires(undefined, "access.sessionLifetime"),
      origin: "carillon",
    },
  ),
  sessions: zset("access:sessions", member, {
    doc: "Every browser that is signed in to the dashboard; one that is not here counts no more.",
    score: "unix time it expires",
    ttl: expires(undefined, "until the last of them expires"),
    origin: "carillon",
  }),
  serverUrl: string("access:server_url", text, {
    doc: "Where the server that started last answers, for those who print links to its pages.",
    origin: "carillon",
  }),
});

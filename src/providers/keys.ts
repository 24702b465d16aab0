import { expires, family, member, zset } from "../kernel/keyspace/index.ts";

/** Seconds that errors of a provider are counted for, and how many of them make others take over. */
export const CIRCUIT_WINDOW = 300;
export const CIRCUIT_THRESHOLD = 10;

export const providerKeys = family("providers", {
  errors: zset("providers:errors:{channel}:{provider}", member, {
    doc: "recent outages of a provider of push, sms or email; ten within the window and the next provider takes over",
    score: "when it happened",
    ttl: expires(CIRCUIT_WINDOW),
    origin: "carillon",
    params: { channel: /push|sms|email/, provider: /[a-z][a-z0-9_-]*/ },
  }),
});

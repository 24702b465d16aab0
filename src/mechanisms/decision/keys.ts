import { expires, matching, string } from "../../kernel/keyspace/index.ts";

/** Longer than any callback is retried, so that the last repeat still finds what the first one decided. */
export const DECISION_TTL = 172_800;

/** The flags of one channel, for its family of keys: `decided: decisionFlags("sms")`. */
export function decisionFlags<const Channel extends string>(channel: Channel) {
  const pattern = `${channel}:decided:{message_uid}:{stage}:{try}` as const;
  return string<typeof pattern, string>(pattern, matching(/^(retry|abandon)$/, "`retry` or `abandon`"), {
    doc: "what was decided about one failed try of a message, so that a repeated callback decides nothing anew",
    ttl: expires(DECISION_TTL),
    origin: "carillon",
  });
}

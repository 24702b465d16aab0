import { z } from "zod";
import {
  decimal,
  expires,
  family,
  fields,
  hash,
  integer,
  json,
  list,
  literal,
  string,
  text,
  zset,
} from "../../../src/kernel/keyspace/index.ts";
import { OWNER_LEASE, ownerLock } from "../../../src/mechanisms/lock/index.ts";

export const Letter = z.object({ to: z.string(), text: z.string() });
export const letter = json(Letter);

/** Keys of a post office that exists only on the pages of the handbook. */
export const keys = family("post", {
  lock: string("post:lock", ownerLock, {
    doc: "held by the one run of the sender",
    ttl: expires(OWNER_LEASE),
    lock: "owner",
  }),
  toSend: list("post:to_send", letter, { doc: "letters that wait to be sent" }),
  sending: list("post:send_purgatory", letter, { doc: "letters that the sender holds right now" }),
  alarms: zset("post:alarms", text, { doc: "people to wake", score: "unix time to wake them" }),
  ringing: zset("post:ring_purgatory", text, { doc: "people who are being woken", score: "unix time to wake them" }),
  pending: zset("post:pending", text, { doc: "letters without an answer", score: "unix time to worry" }),
  pendingLetter: hash("post:pending:{uid}", fields({ to: text, tries: integer, version: integer }), {
    doc: "what is known of one letter without an answer",
  }),
  visits: string("post:visits:{sub}", integer, { doc: "visits in this minute", ttl: expires(60) }),
  views: list("post:views", json(z.object({ uid: z.string(), at: z.number() })), { doc: "views on their way to SQL" }),
  errors: zset("post:errors", text, { doc: "late errors of the carrier", score: "unix time", ttl: expires(300) }),
  slot: string("post:carrier_slot", decimal, { doc: "the last slot given away", ttl: expires(60) }),
  recent: list("post:recent", text, { doc: "the newest letters", ttl: expires(86_400) }),
  rates: string("post:rates", text, { doc: "postage by country", ttl: expires(3600), cache: true }),
  code: string("post:codes:{code}", text, { doc: "who may fetch a parcel with it", ttl: expires(600), secret: true }),
  greeting: string("post:greeting", text, { doc: "what the counter says" }),
  cursor: string("post:cursor", text, { doc: "how far the yearly count has come" }),
  opened: string("post:opened", literal("1"), { doc: "the office has opened once" }),
  report: hash("post:last_run", fields({ started_at: decimal }), {
    doc: "what the last run of the sender did",
    report: { runner: "runners.post.send", unit: "seconds" },
  }),
});

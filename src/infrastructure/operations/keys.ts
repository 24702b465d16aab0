import { z } from "zod";
import {
  expires,
  FINDING_KINDS,
  type FindingKind,
  family,
  hash,
  json,
  mapOf,
  string,
} from "../../kernel/keyspace/index.ts";

/** An audit is old news after a week. */
export const AUDIT_KEPT = 604_800;

const Kind = z.enum(Object.keys(FINDING_KINDS) as [FindingKind, ...FindingKind[]]);
const Usage = { keys: z.int(), bytes: z.number() };

/** What an audit found, as it is kept and shown. */
export const AuditResult = z.object({
  ok: z.boolean(),
  started_at: z.number(),
  seconds: z.number(),
  deep: z.boolean(),
  keys: z.int(),
  bytes: z.number(),
  found: z.int().meta({ description: "All findings; `findings` lists the first few of each kind and pattern" }),
  counts: z.array(z.object({ kind: Kind, pattern: z.string().nullable(), count: z.int() })),
  findings: z.array(
    z.object({ kind: Kind, pattern: z.string().nullable(), key: z.string().nullable(), detail: z.string() }),
  ),
  invariants: z.int().meta({ description: "How many rules over several keys were checked" }),
  patterns: z.array(
    z.object({
      pattern: z.string(),
      domain: z.string(),
      family: z.string(),
      type: z.string(),
      ...Usage,
      length: z.number().meta({ description: "Elements of collections, bytes of strings" }),
      unread: z.int().meta({ description: "Values that were too large to read" }),
    }),
  ),
  unknown: z.array(z.object({ prefix: z.string(), ...Usage })),
});

/** What the last look at a queue saw. */
export const WatchedQueue = z.object({
  head: z.string().nullable(),
  since: z.number(),
  long_since: z.number().nullable(),
  told_at: z.number().nullable(),
});
export type WatchedQueue = z.infer<typeof WatchedQueue>;

export const keys = family("operations", {
  queues: hash("alerts:queues", mapOf(json(WatchedQueue)), {
    doc: "for every queue in which something waits: which entry is the first and since when, since when it is too long, and when operators were warned",
    origin: "carillon",
  }),
  lastAudit: string("keyspace:audit", json(AuditResult, { shape: "audit JSON" }), {
    doc: "what the last audit that somebody asked for found, with the count and weight of every pattern",
    ttl: expires(AUDIT_KEPT),
    origin: "carillon",
  }),
});

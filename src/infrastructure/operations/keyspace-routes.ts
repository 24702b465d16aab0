import { z } from "zod";
import { route } from "../../domain.ts";
import { shownSetting } from "../../kernel/config.ts";
import { newUid } from "../../kernel/ids.ts";
import { explain, keysJson } from "../../kernel/keyspace/index.ts";
import { auditKeyspace } from "./jobs.ts";
import { AuditResult } from "./keys.ts";
import { examplesOf, readLastAudit } from "./keyspace.ts";

const LONGEST_NAME = 1024;
const Name = z.string().min(1).max(LONGEST_NAME);
const Kind = z.enum(["key", "channel"]);

const Declared = z.object({
  pattern: z.string(),
  kind: Kind,
  type: z.string().meta({ description: "The Redis type, or `channel`" }),
  family: z.string(),
  domain: z.string(),
  ttl: z.union([z.null(), z.number(), z.string()]).meta({
    description: "Null: never expires. A number: seconds at most. A text where seconds do not tell it",
  }),
  origin: z.enum(["documented", "carillon"]),
  doc: z.string(),
});

const Live = z.union([
  z.object({ exists: z.literal(false) }),
  z.object({
    exists: z.literal(true),
    type: z.string(),
    expires_in: z.number().nullable().meta({ description: "Seconds; null: never" }),
    bytes: z.number(),
    length: z.number().nullable(),
    value: z.unknown().meta({ description: "Decoded; absent when it is withheld, too large or undecodable" }),
    scores: z
      .array(z.number().nullable())
      .optional()
      .meta({ description: "Of a zset: the score of each element of `value`; null for one that has left since" }),
    complete: z.boolean(),
    note: z.string().optional().meta({ description: "Why there is no value" }),
  }),
]);

const Explained = z.union([
  z.object({
    known: z.literal(true),
    kind: Kind,
    pattern: z.string(),
    parameters: z.record(z.string(), z.string()).nullable(),
    type: z.string(),
    family: z.string(),
    domain: z.string(),
    ttl: z.string(),
    origin: z.string(),
    shape: z.string(),
    doc: z.string(),
    shared: z.boolean(),
    secret: z.boolean(),
    cache: z.boolean(),
    live: Live.optional(),
  }),
  z.object({
    known: z.literal(false),
    name: z.string(),
    near: z.array(z.object({ pattern: z.string(), kind: Kind, doc: z.string() })),
  }),
]);

const Shown = z.object({
  name: z.string(),
  env: z.string(),
  value: z.unknown(),
  default: z.unknown(),
  source: z.enum(["environment", ".env", "default", "override"]),
  unit: z.string().optional(),
  secret: z.boolean(),
  doc: z.string(),
});

/** What an operator sees of keys and settings: what is declared, what is there, and whether they agree. */
export const keyspaceRoutes = [
  route({
    method: "GET",
    path: "/api/1/admin/keys",
    access: "admin",
    summary: "Every declared key and channel",
    responses: { 200: z.object({ items: z.array(Declared) }) },
    handle: (ctx) => ({ status: 200, body: { items: [...keysJson(ctx.catalogue)] } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/keys/explain",
    access: "admin",
    summary: "What a key, channel or pattern means, and what the key holds now",
    description: "A name that nobody declared is answered with the patterns most like it. Secret values are withheld.",
    schemas: { query: z.object({ name: Name }) },
    responses: { 200: Explained },
    handle: async (ctx, { query }) => ({
      status: 200,
      body: readable(await explain(ctx.catalogue, query.name, ctx)),
    }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/keys/examples",
    access: "admin",
    summary: "Some live keys of a pattern; of a secret one none",
    description: "A large keyspace is not searched to its end; `complete` tells whether these are all.",
    schemas: { query: z.object({ pattern: Name, limit: z.coerce.number().int().min(1).max(100).default(20) }) },
    responses: { 200: z.object({ items: z.array(z.string()), complete: z.boolean() }) },
    handle: async (ctx, { query }) => {
      const { items, complete } = await examplesOf(ctx, query.pattern, query.limit);
      return { status: 200, body: { items: [...items], complete } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/keys/audit",
    access: "admin",
    summary: "What the last audit found, with the count and weight of every pattern; null when there was none",
    responses: { 200: z.object({ audit: AuditResult.nullable() }) },
    handle: async (ctx) => ({ status: 200, body: { audit: await readLastAudit(ctx) } }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/keys/audit",
    access: "admin",
    summary: "Audit the keyspace in a worker, beside all traffic",
    description: "Its progress is told under `uid`. While an audit runs, another one ends at once.",
    schemas: { body: z.strictObject({ deep: z.boolean().default(false) }).default({ deep: false }) },
    responses: { 202: z.object({ uid: z.string() }) },
    async handle(ctx, { body }) {
      const uid = newUid("jp");
      await ctx.jobs.enqueue(auditKeyspace, { deep: body.deep }, { jobUid: uid });
      return { status: 202, body: { uid } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/settings",
    access: "admin",
    summary: "Every setting of the process that answers: value, source, meaning; secrets masked",
    responses: { 200: z.object({ items: z.array(Shown) }) },
    handle: (ctx) => ({ status: 200, body: { items: ctx.config.effective.map(shownSetting) } }),
  }),
];

/** JSON of decoded values: bytes as base64, where JSON would print every one of them. */
function readable(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString("base64");
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, readable(inner)]));
}

import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/index.ts";
import type { Route } from "../../kernel/route.ts";
import { RecentAlert } from "../../mechanisms/alerts/index.ts";
import { forceRelease, listLocks } from "../../mechanisms/lock/index.ts";
import { discardQuarantined, quarantinedQueues } from "../../mechanisms/quarantine/index.ts";
import { alertMeanings } from "./alert-meanings.ts";
import { keyspaceRoutes } from "./keyspace-routes.ts";
import { readQuarantine, redrive } from "./quarantine.ts";
import { readRecentAlerts } from "./recent-alerts.ts";
import { readReports } from "./reports.ts";

const LONGEST_NAME = 1024;

const Name = z.string().min(1).max(LONGEST_NAME);
const Json = z.record(z.string(), z.unknown());
const Report = z.object({
  key: z.string(),
  runner: z.string(),
  state: z.enum(["never", "running", "ok", "last_failed"]),
  started_at: z.number().nullable(),
  finished_at: z.number().nullable(),
  running_time: z.number().nullable().meta({ description: "Seconds" }),
  stop_reason: z.string().nullable(),
  counts: z.record(z.string(), z.string()),
});
const Entry = z.object({ queue: Name, id: z.string().min(1).max(64) });

export const routes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/admin/jobs/reports",
    access: "admin",
    summary: "What the last run of every reporting job did",
    description: "`state` is `running`, `ok`, `last_failed` (a run began and never ended) or `never`.",
    responses: { 200: z.object({ items: z.array(Report) }) },
    handle: async (ctx) => ({ status: 200, body: { items: await readReports(ctx) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/quarantine",
    access: "admin",
    summary: "Queues with entries that could not be read",
    responses: { 200: z.object({ items: z.array(z.object({ queue: z.string(), length: z.int() })) }) },
    handle: async (ctx) => ({ status: 200, body: { items: await quarantinedQueues(ctx) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/quarantine/{queue}",
    access: "admin",
    summary: "Entries of a queue that could not be read, newest first",
    schemas: {
      params: z.object({ queue: Name }),
      query: z.object({
        limit: z.coerce.number().int().min(1).max(100).default(50),
        offset: z.coerce.number().int().min(0).default(0),
      }),
    },
    responses: { 200: z.object({ items: z.array(Json), next_offset: z.int().nullable() }) },
    handle: async (ctx, { params, query }) => ({ status: 200, body: await readQuarantine(ctx, params.queue, query) }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/quarantine/{queue}/{id}/requeue",
    access: "admin",
    summary: "Put a quarantined entry back into its queue, as it was or corrected",
    description:
      "`score` is when an entry of a schedule or pending set is due, by default now; `member` says whose hash an entry of a pending set is.",
    schemas: {
      params: Entry,
      body: z
        .strictObject({
          corrected: z.string().max(1_048_576).optional(),
          score: z.number().optional(),
          member: z.string().min(1).max(LONGEST_NAME).optional(),
        })
        .default({}),
    },
    bodyLimit: 2_097_152,
    responses: { 202: z.object({ queue: z.string(), id: z.string() }) },
    async handle(ctx, { params, body }) {
      await redrive(ctx, params.queue, params.id, body);
      return { status: 202, body: params };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/quarantine/{queue}/{id}",
    access: "admin",
    summary: "Forget a quarantined entry for good",
    schemas: { params: Entry },
    async handle(ctx, { params }) {
      await discardQuarantined(ctx, params.queue, params.id);
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/locks",
    access: "admin",
    summary: "Every lock that is held now, with its holder and age where it tells them",
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            key: z.string(),
            kind: z.enum(["basic", "token", "owner"]),
            holder: z.string().nullable(),
            age: z.number().nullable(),
            ttl: z.number().nullable(),
            malformed: z.boolean(),
          }),
        ),
      }),
    },
    async handle(ctx) {
      const locks = await listLocks(ctx, ctx.catalogue);
      const items = locks.map((lock) => ({
        ...lock,
        holder: lock.holder ?? null,
        age: lock.age ?? null,
        ttl: lock.ttl ?? null,
      }));
      return { status: 200, body: { items } };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/locks/{key}",
    access: "admin",
    summary: "Free a lock, whoever holds it",
    description: "The holder notices at its next renewal or fenced step and leaves the rest to the next one.",
    schemas: { params: z.object({ key: Name }) },
    async handle(ctx, { params }) {
      await forceRelease(ctx, ctx.catalogue, params.key);
      return { status: 204 };
    },
  }),
  ...(["/api/1/admin/alerts", "/api/1/admin/alerts/recent"] as const).map((path) =>
    route({
      method: "GET",
      path,
      access: "admin",
      summary: "The last 200 alerts of all processes, newest first",
      responses: { 200: z.object({ items: z.array(RecentAlert) }) },
      handle: async (ctx) => ({ status: 200, body: { items: await readRecentAlerts(ctx) } }),
    }),
  ),
  route({
    method: "GET",
    path: "/api/1/admin/alerts/meanings",
    access: "admin",
    summary: "What the handbook says of each alert, and what to do about it",
    description: "Parts of identifiers in braces vary: `quarantine:{queue}`.",
    responses: {
      200: z.object({
        items: z.array(
          z.object({ identifier: z.string(), section: z.string(), means: z.string(), remedy: z.string() }),
        ),
      }),
    },
    handle: () => ({ status: 200, body: { items: [...alertMeanings()] } }),
  }),
  ...keyspaceRoutes,
];

import { createHash } from "node:crypto";
import { sql } from "kysely";
import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { deliver } from "./delivery-job.ts";
import { bodyOf, WebhookEvent } from "./event.ts";
import { type KnownEndpoint, knownEndpoints, mayWant } from "./known-endpoints.ts";
import type { WebhookTables } from "./tables.ts";

/**
 * Telling of events.
 *
 * Life of an event: told -> a row for each endpoint that wants its type -> a job for each row, see `deliver.ts`. SQL is
 * authoritative from the row on: a row whose job was lost is queued again by the sweep. While SQL is away an event waits
 * in Redis, as a job that makes the rows later. The uid of a row follows from endpoint, type and key, so whoever tells
 * twice, or dies and is run again, makes no second row.
 */
export type EmitContext = Pick<Context, "sql" | "clock" | "log"> & Partial<Pick<Context, "jobs" | "alerts">>;

/** By name, because the job itself needs this file. */
export const RECORD = "runners.webhooks.record";
export const RecordKwargs = z.strictObject({ events: z.array(WebhookEvent).min(1) });
const EVENTS_A_JOB = 200;

/** Whether telling of this type may lead to anything: ask it before gathering what an event should say. */
export function isWanted(ctx: EmitContext, type: WebhookEvent["type"]): boolean {
  return hasRoom(ctx) && mayWant(ctx, type);
}

/** Tells of events, any number at once. Never fails: what the caller did is done, whether or not it can be told. */
export async function emitEvents(ctx: EmitContext, events: readonly WebhookEvent[]): Promise<void> {
  if (events.length === 0 || !hasRoom(ctx)) return;
  try {
    await recordEvents(ctx, events);
  } catch (error) {
    ctx.log.warn({ reason: String(error), count: events.length }, "events for webhooks wait until SQL takes them");
    await keepForLater(ctx, events);
  }
}

/** Makes the rows: one statement for all events and endpoints, and one push for their jobs. */
export async function recordEvents(ctx: EmitContext, events: readonly WebhookEvent[]): Promise<void> {
  const endpoints = await knownEndpoints(ctx);
  const rows = events.flatMap((event) =>
    endpoints.flatMap((endpoint) => (endpoint.types.includes(event.type) ? [rowOf(endpoint, event)] : [])),
  );
  if (rows.length === 0) return;
  await queueDeliveries(ctx, await insertMessages(ctx, rows));
}

export interface NewMessage {
  readonly uid: string;
  readonly endpoint_id: number;
  readonly type: string;
  readonly user_sub: string | null;
  readonly body: string;
}

function rowOf(endpoint: KnownEndpoint, event: WebhookEvent): NewMessage {
  const { type, key, data } = event;
  const digest = createHash("sha256").update(`${endpoint.uid} ${type} ${key}`).digest("base64url");
  return {
    uid: `crl_whm_${digest.slice(0, 22)}`,
    endpoint_id: endpoint.id,
    type,
    user_sub: typeof data.user_sub === "string" ? data.user_sub : null,
    body: bodyOf(event),
  };
}

/** Answers the uids that were not there before. Endpoints that are gone or switched off by now get nothing. */
export async function insertMessages(
  ctx: Pick<Context, "sql" | "clock">,
  rows: readonly NewMessage[],
): Promise<readonly string[]> {
  const column = <T>(of: (row: NewMessage) => T) => rows.map(of);
  const now = sql`to_timestamp(${ctx.clock.now()}::float8)`;
  const inserted = await sql<{ uid: string }>`
    insert into webhook_messages (uid, endpoint_id, type, user_sub, body, status, attempts, due_at, created_at)
    select asked.uid, endpoint.id, asked.type, asked.user_sub, asked.body, 'pending', 0, ${now}, ${now}
    from unnest(
      ${column(({ uid }) => uid)}::text[], ${column((row) => row.endpoint_id)}::bigint[],
      ${column(({ type }) => type)}::text[], ${column((row) => row.user_sub)}::text[],
      ${column(({ body }) => body)}::text[]
    ) with ordinality as asked (uid, endpoint_id, type, user_sub, body, place)
    join webhook_endpoints as endpoint on endpoint.id = asked.endpoint_id and endpoint.disabled_at is null
    order by asked.place
    on conflict (uid) do nothing returning uid`.execute(ctx.sql.tables<WebhookTables>());
  return inserted.rows.map(({ uid }) => uid);
}

export async function queueDeliveries(ctx: EmitContext, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  try {
    await ctx.jobs?.enqueueMany(
      deliver,
      uids.map((uid) => ({ uid })),
    );
  } catch (error) {
    ctx.log.warn({ reason: String(error), count: uids.length }, "deliveries of webhooks are left to the sweep");
  }
}

async function keepForLater(ctx: EmitContext, events: readonly WebhookEvent[]): Promise<void> {
  try {
    for (let at = 0; at < events.length; at += EVENTS_A_JOB)
      await ctx.jobs!.enqueueNamed(RECORD, { events: events.slice(at, at + EVENTS_A_JOB) });
  } catch (error) {
    ctx.log.error({ reason: String(error), count: events.length }, "events for webhooks are lost");
    const { alerts } = ctx;
    if (alerts)
      alerts.warning("webhooks:lost", `${events.length} events reached neither SQL nor Redis and are not told`);
  }
}

/** Callers may be run where nobody delivers, such as a command that opens a part of the house. */
function hasRoom(ctx: EmitContext): boolean {
  return ctx.jobs?.runners.has(deliver.name) ?? false;
}

import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { insertMessages, queueDeliveries } from "./emit.ts";
import { endpointRow } from "./endpoints.ts";
import { errors } from "./errors.ts";
import { bodyOf, TEST_TYPE } from "./event.ts";
import type { MessageStatus, WebhookTables } from "./tables.ts";

/** One event on its way to one endpoint, as administrators see it. */
export interface Message {
  readonly uid: string;
  readonly endpoint_uid: string;
  readonly type: string;
  readonly status: MessageStatus;
  readonly attempts: number;
  /** When it is tried again, while it is pending. */
  readonly next_attempt_at: number | null;
  readonly last_attempt_at: number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly delivered_at: number | null;
  readonly created_at: number;
}

const COLUMNS = sql`message.uid, endpoint.uid as endpoint_uid, message.type, message.status, message.attempts,
  message.due_at as next_attempt_at, message.last_attempt_at, message.last_status, message.last_error,
  message.delivered_at, message.created_at`;

export interface MessagesWish {
  readonly status: MessageStatus | undefined;
  readonly type: string | undefined;
  readonly before: number | undefined;
  readonly limit: number;
}

/** The newest first; `next` is the `before` of the page after it. */
export async function listMessages(
  ctx: Pick<Context, "sql">,
  endpointUid: string,
  { status, type, before, limit }: MessagesWish,
): Promise<{ readonly items: readonly Message[]; readonly next: number | null }> {
  const { id } = await endpointRow(ctx, endpointUid);
  const { rows } = await sql<Message & { id: number }>`
    select message.id, ${COLUMNS}
    from webhook_messages as message join webhook_endpoints as endpoint on endpoint.id = message.endpoint_id
    where message.endpoint_id = ${id} and ${before === undefined ? sql`true` : sql`message.id < ${before}`}
      and ${status === undefined ? sql`true` : sql`message.status = ${status}`}
      and ${type === undefined ? sql`true` : sql`message.type = ${type}`}
    order by message.id desc limit ${limit + 1}`.execute(ctx.sql.tables<WebhookTables>());
  const page = rows.slice(0, limit);
  return { items: page.map(({ id: _, ...row }) => row), next: rows.length > limit ? page.at(-1)!.id : null };
}

/** One message with what it says. */
export async function readMessage(
  ctx: Pick<Context, "sql">,
  uid: string,
): Promise<Message & { readonly payload: Readonly<Record<string, unknown>> }> {
  const { rows } = await sql<Message & { body: string }>`
    select ${COLUMNS}, message.body
    from webhook_messages as message join webhook_endpoints as endpoint on endpoint.id = message.endpoint_id
    where message.uid = ${uid}`.execute(ctx.sql.tables<WebhookTables>());
  if (!rows[0]) throw errors.webhook_message_not_found();
  const { body, ...message } = rows[0];
  return { ...message, payload: JSON.parse(body) as Record<string, unknown> };
}

/** Sends a message once more, whatever became of it, with all its attempts before it. */
export async function resendMessage(ctx: Context, uid: string): Promise<void> {
  const { rows } = await sql<{ disabled: boolean }>`
    update webhook_messages as message
    set status = 'pending', attempts = 0, due_at = ${timestamp(ctx.clock.now())}, delivered_at = null
    from webhook_endpoints as endpoint
    where endpoint.id = message.endpoint_id and message.uid = ${uid} and endpoint.disabled_at is null
    returning 1`.execute(ctx.sql.tables<WebhookTables>());
  if (rows.length === 0) {
    await readMessage(ctx, uid);
    throw errors.webhook_endpoint_disabled();
  }
  await queueDeliveries(ctx, [uid]);
}

/** Sends an event that says nothing, so that a receiver can be tried out; answers its message. */
export async function sendTest(ctx: Context, endpointUid: string): Promise<string> {
  const endpoint = await endpointRow(ctx, endpointUid);
  if (endpoint.disabled_at !== null) throw errors.webhook_endpoint_disabled();
  const body = bodyOf({ type: TEST_TYPE, at: ctx.clock.now(), data: { endpoint_uid: endpointUid } });
  const uid = newUid("whm");
  await queueDeliveries(
    ctx,
    await insertMessages(ctx, [{ uid, endpoint_id: endpoint.id, type: TEST_TYPE, user_sub: null, body }]),
  );
  return uid;
}

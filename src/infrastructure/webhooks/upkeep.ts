import { sql, type Transaction } from "kysely";
import type { Context, JobContext } from "../../jobs/context.ts";
import { queueDeliveries } from "./emit.ts";
import { settings } from "./settings.ts";
import type { WebhookTables } from "./tables.ts";

const BATCH = 1_000;
/** A job that waits in the queue is not lost yet. */
const LATE_SECONDS = 60;

/** Queues messages whose job was lost: its pusher died after the rows were made, or its worker while it had them. */
export async function sweepMessages(ctx: JobContext): Promise<void> {
  const now = ctx.clock.now();
  for (;;) {
    // Moved to now, so that a long queue gets at most one more job a minute for each.
    const { rows } = await sql<{ uid: string }>`
      update webhook_messages set due_at = to_timestamp(${now}::float8)
      where id in (
        select id from webhook_messages
        where status = 'pending' and due_at < to_timestamp(${now - LATE_SECONDS}::float8)
        order by due_at limit ${BATCH} for update skip locked)
      returning uid`.execute(ctx.sql.tables<WebhookTables>());
    await queueDeliveries(
      ctx,
      rows.map(({ uid }) => uid),
    );
    if (rows.length < BATCH || ctx.shuttingDown() || ctx.budget.exhausted()) return;
  }
}

/** Forgets messages that ended long ago; answers how many. */
export async function pruneMessages(ctx: JobContext): Promise<number> {
  const before = ctx.clock.now() - ctx.config.get(settings.keepFor);
  let pruned = 0;
  for (;;) {
    const { rows } = await sql`
      delete from webhook_messages where id in (
        select id from webhook_messages where status <> 'pending' and created_at < to_timestamp(${before}::float8)
        order by created_at limit ${BATCH})
      returning 1`.execute(ctx.sql.tables<WebhookTables>());
    pruned += rows.length;
    if (rows.length < BATCH || ctx.shuttingDown() || ctx.budget.exhausted()) return pruned;
  }
}

/** What was or will be told about a person is forgotten with them. */
export async function forgetUser(_ctx: Context, tx: unknown, user: { readonly sub: string }): Promise<void> {
  await sql`delete from webhook_messages where user_sub = ${user.sub}`.execute(tx as Transaction<WebhookTables>);
}

/** Messages about an account that becomes part of another say what they said, and are forgotten with the other. */
export async function followMerge(
  _ctx: Context,
  tx: unknown,
  kept: { readonly sub: string },
  gone: { readonly sub: string },
): Promise<void> {
  await sql`update webhook_messages set user_sub = ${kept.sub} where user_sub = ${gone.sub}`.execute(
    tx as Transaction<WebhookTables>,
  );
}

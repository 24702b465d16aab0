import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { noteVerified } from "./addresses.ts";
import { ContactChange, type ContactTransaction } from "./change.ts";
import { TOKENS_PER_USER } from "./settings.ts";
import { CHANNELS, type Channel } from "./tables.ts";

/**
 * The room's part in a user's life. The users service has the transaction and commits it; the counters are staged in it
 * and applied by the sweep of `stat_deltas`.
 */
type HookUser = { readonly id: number; readonly sub: string };

const TABLE: Readonly<Record<Channel, string>> = {
  email: "user_email_addresses",
  phone: "user_phone_numbers",
  push: "user_push_tokens",
};

/** Everything goes, counted by channel. Suppressions stay: they belong to the addresses. The log goes with the user. */
export async function onUserDeleting(ctx: Context, transaction: unknown, user: HookUser): Promise<void> {
  const tx = transaction as ContactTransaction;
  const change = new ContactChange(ctx);
  const { rows } = await sql<Record<Channel, number>>`
    with email as (delete from user_email_addresses where user_id = ${user.id} returning 1),
      phone as (delete from user_phone_numbers where user_id = ${user.id} returning 1),
      push as (delete from user_push_tokens where user_id = ${user.id} returning 1)
    select (select count(*) from email) as email, (select count(*) from phone) as phone,
      (select count(*) from push) as push`.execute(tx);
  for (const channel of CHANNELS) {
    const gone = rows[0]?.[channel] ?? 0;
    if (gone > 0) change.count("deleted", `${channel}:account`, gone);
    change.reach(channel, [user.id], { ifRemoved: "account_deleted" });
  }
  change.countTokens("deleted_due_to_user_deletion", rows[0]?.push ?? 0);
  ctx.log.info({ user_sub: user.sub, ...rows[0] }, "the contact methods of a deleted user are gone");
  await change.settle(tx);
}

/**
 * Two accounts become one. The kept one gets what it does not have; an address that both have stays once, verified if
 * either was. Tokens beyond the limit go, those unseen for longest first. The log of both is read as one.
 */
export async function onUserMerging(ctx: Context, transaction: unknown, kept: HookUser, gone: HookUser): Promise<void> {
  const tx = transaction as ContactTransaction;
  const change = new ContactChange(ctx);
  for (const [channel, address] of [
    ["email", "email"],
    ["phone", "phone_number"],
  ] as const) {
    const table = sql.table(TABLE[channel]);
    const column = sql.ref(address);
    const verified = await sql<{ address: string }>`
      update ${table} as own set verified = true from ${table} as other
      where own.user_id = ${kept.id} and other.user_id = ${gone.id} and lower(own.${column}) = lower(other.${column})
        and other.verified and not own.verified
      returning own.${column} as address`.execute(tx);
    for (const row of verified.rows) noteVerified(change, channel, kept.id, row.address, "identity");
    const doubled = await sql`
      delete from ${table} as other using ${table} as own
      where own.user_id = ${kept.id} and other.user_id = ${gone.id} and lower(own.${column}) = lower(other.${column})
      returning other.id`.execute(tx);
    if (doubled.rows.length > 0) change.count("deleted", `${channel}:account`, doubled.rows.length);
  }
  for (const channel of CHANNELS) {
    await sql`update ${sql.table(TABLE[channel])} set user_id = ${kept.id} where user_id = ${gone.id}`.execute(tx);
    change.reach(channel, [kept.id]);
    change.reach(channel, [gone.id], { ifRemoved: "account_deleted" });
  }
  const excess = await sql<{ token: string }>`
    delete from user_push_tokens where id in (
      select id from user_push_tokens where user_id = ${kept.id}
      order by last_seen_at desc, id desc offset ${TOKENS_PER_USER}::integer)
    returning token`.execute(tx);
  for (const { token } of excess.rows) {
    change.count("deleted", "push:excessive");
    change.countTokens("deleted_due_to_token_limit");
    change.note({
      userId: kept.id,
      channel: "push",
      identifier: token,
      action: "delete",
      reason: { source: "merge", reason: "excessive" },
    });
  }
  await sql`update contact_method_log set user_id = ${kept.id} where user_id = ${gone.id}`.execute(tx);
  await change.settle(tx);
}

import { type RawBuilder, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { SuppressedEmail } from "./email-suppression.ts";
import type { SuppressedPhone } from "./phone-suppression.ts";
import type { Channel, EmailReason, LogAction, PhoneReason, Platform } from "./tables.ts";

type ListContext = Pick<Context, "sql">;

export interface ListedMethod {
  readonly uid: string;
  readonly receives_notifications: boolean;
  readonly created_at: number;
}
export interface ListedAddress extends ListedMethod {
  readonly value: string;
  readonly verified: boolean;
  readonly suppressed: boolean;
}
export interface ListedToken extends ListedMethod {
  readonly platform: Platform;
  readonly last_seen_at: number;
  /** When a notification was last proven to reach it; null: not yet. */
  readonly last_confirmed_at: number | null;
}
export interface ContactMethods {
  readonly emails: readonly ListedAddress[];
  readonly phones: readonly ListedAddress[];
  readonly push_tokens: readonly ListedToken[];
}

/** What a person can be reached by, the oldest first, with one query. Tokens themselves are not shown. */
export async function contactMethodsOf(ctx: ListContext, userSub: string): Promise<ContactMethods> {
  const { rows } = await sql<{ channel: Channel } & ListedAddress & ListedToken>`
    with owner as (select id from users where sub = ${userSub})
    select 'email' as channel, id, uid, email as value, verified, receives_notifications, created_at,
      exists (select 1 from suppressed_emails where lower(email_address) = lower(email)) as suppressed,
      null as platform, null::timestamptz as last_seen_at, null::timestamptz as last_confirmed_at
    from user_email_addresses where user_id = (select id from owner)
    union all
    select 'phone', id, uid, phone_number, verified, receives_notifications, created_at,
      exists (select 1 from suppressed_phone_numbers as held where held.phone_number = own.phone_number), null, null, null
    from user_phone_numbers as own where user_id = (select id from owner)
    union all
    select 'push', id, uid, null, null, receives_notifications, created_at, null, platform, last_seen_at, last_confirmed_at
    from user_push_tokens where user_id = (select id from owner)
    order by channel, id`.execute(ctx.sql.tables());
  const addresses = (wanted: Channel) =>
    rows
      .filter(({ channel }) => channel === wanted)
      .map(({ uid, value, verified, receives_notifications, suppressed, created_at }) => ({
        uid,
        value,
        verified,
        receives_notifications,
        suppressed,
        created_at,
      }));
  return {
    emails: addresses("email"),
    phones: addresses("phone"),
    push_tokens: rows
      .filter(({ channel }) => channel === "push")
      .map(({ uid, platform, receives_notifications, created_at, last_seen_at, last_confirmed_at }) => ({
        uid,
        platform,
        receives_notifications,
        created_at,
        last_seen_at,
        last_confirmed_at,
      })),
  };
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it as `after` for the next page. */
  readonly next: string | null;
}

export interface PageWish {
  /** `next` of the page before. */
  readonly after?: string;
  readonly limit: number;
}

export interface LoggedChange {
  readonly uid: string;
  readonly channel: Channel;
  readonly identifier: string;
  readonly action: LogAction;
  readonly reason: Record<string, unknown>;
  readonly created_at: number;
}

/** What happened to one person's contact methods, the newest first. */
export function contactMethodLog(ctx: ListContext, userSub: string, wish: PageWish): Promise<Page<LoggedChange>> {
  return page(ctx, "contact_method_log", ["channel", "identifier", "action", "reason"], wish, [
    sql`user_id = (select id from users where sub = ${userSub})`,
  ]);
}

export function listSuppressedEmails(
  ctx: ListContext,
  wish: PageWish & { readonly email?: string; readonly reason?: EmailReason },
): Promise<Page<SuppressedEmail>> {
  return page(ctx, "suppressed_emails", ["email_address", "reason", "scope", "note"], wish, [
    ...(wish.email === undefined ? [] : [sql`lower(email_address) = lower(${wish.email}::text)`]),
    ...(wish.reason === undefined ? [] : [sql`reason = ${wish.reason}`]),
  ]);
}

export function listSuppressedPhones(
  ctx: ListContext,
  wish: PageWish & { readonly phoneNumber?: string; readonly reason?: PhoneReason },
): Promise<Page<SuppressedPhone>> {
  return page(ctx, "suppressed_phone_numbers", ["phone_number", "reason", "reason_details"], wish, [
    ...(wish.phoneNumber === undefined ? [] : [sql`phone_number = ${wish.phoneNumber}`]),
    ...(wish.reason === undefined ? [] : [sql`reason = ${wish.reason}`]),
  ]);
}

export interface FailedEmail {
  readonly uid: string;
  readonly email_address: string;
  readonly failure_type: "Bounce" | "Complaint";
  readonly failure_extra: string | null;
  readonly message_id: string | null;
  readonly created_at: number;
}

export function listEmailFailures(
  ctx: ListContext,
  wish: PageWish & { readonly email?: string },
): Promise<Page<FailedEmail>> {
  return page(ctx, "email_failures", ["email_address", "failure_type", "failure_extra", "message_id"], wish, [
    ...(wish.email === undefined ? [] : [sql`lower(email_address) = lower(${wish.email}::text)`]),
  ]);
}

/** Pages by the order in which rows came, so that a row which is gone by the next page does not disturb it. */
async function page<T>(
  ctx: ListContext,
  table: string,
  columns: readonly string[],
  { after, limit }: PageWish,
  conditions: readonly RawBuilder<unknown>[],
): Promise<Page<T>> {
  const all = [...conditions, after === undefined ? sql`true` : sql`id < ${after}::bigint`];
  const { rows } = await sql<T & { id: number }>`
    select id, uid, ${sql.join(columns.map((column) => sql.ref(column)))}, created_at from ${sql.table(table)}
    where ${sql.join(all, sql` and `)} order by id desc limit ${limit + 1}::integer`.execute(ctx.sql.tables());
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  const items = rows.slice(0, limit).map(({ id: _, ...item }) => item as unknown as T);
  return { items, next: last ? String(last.id) : null };
}

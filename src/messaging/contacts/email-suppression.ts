import { sql } from "kysely";
import { newUid } from "../../kernel/ids.ts";
import { type ContactChange, type ContactContext, type ContactTransaction, changeContacts } from "./change.ts";
import type { AddedReason, RemovedReason } from "./effects.ts";
import { EMAIL_REASONS, type EmailReason, type EmailScope } from "./tables.ts";

/**
 * Addresses that get no mail. Suppression belongs to the address, holds for every account with it and outlives them all.
 * One address has one row: a stronger reason replaces a weaker one, a wider scope a narrower one, never the reverse.
 * Addresses are compared without regard to case, by the database's own idea of it.
 */
export interface EmailSuppression {
  readonly email: string;
  readonly reason: EmailReason;
  readonly scope?: EmailScope;
  readonly note?: string;
}

export interface SuppressedEmail {
  readonly uid: string;
  readonly email_address: string;
  readonly reason: EmailReason;
  readonly scope: EmailScope;
  readonly note: string | null;
  readonly created_at: number;
}

export interface EmailSuppressionOutcome {
  readonly outcome: "created" | "strengthened" | "kept";
  readonly suppression: SuppressedEmail;
}

export async function suppressEmails(
  ctx: ContactContext,
  suppressions: readonly EmailSuppression[],
  ifRemoved: RemovedReason = "unreachable",
): Promise<readonly EmailSuppressionOutcome[]> {
  if (suppressions.length === 0) return [];
  return changeContacts(ctx, (tx, change) => suppressEmailsIn(tx, change, ctx.clock.now(), suppressions, ifRemoved));
}

/** The same inside a change that does more. Two statements for any number of addresses, and one for their owners. */
export async function suppressEmailsIn(
  tx: ContactTransaction,
  change: ContactChange,
  now: number,
  suppressions: readonly EmailSuppression[],
  ifRemoved: RemovedReason,
): Promise<readonly EmailSuppressionOutcome[]> {
  const emails = suppressions.map(({ email }) => email);
  const uids = suppressions.map(() => newUid("se"));
  const strength = (reason: ReturnType<typeof sql>) => sql`array_position(${[...EMAIL_REASONS]}::text[], ${reason})`;
  const stronger = sql`${strength(sql`excluded.reason`)} > ${strength(sql`held.reason`)}`;
  const wider = sql`excluded.scope = 'all' and held.scope = 'lists'`;
  const written = await sql<{ uid: string }>`
    insert into suppressed_emails as held (uid, email_address, reason, scope, note, created_at)
    select distinct on (lower(asked.email)) asked.uid, asked.email, asked.reason,
      case when bool_or(asked.scope = 'all') over (partition by lower(asked.email)) then 'all' else 'lists' end,
      asked.note, to_timestamp(${now}::float8)
    from unnest(
      ${uids}::text[], ${emails}::text[], ${suppressions.map(({ reason }) => reason)}::text[],
      ${suppressions.map(({ scope = "all" }) => scope)}::text[], ${suppressions.map(({ note = null }) => note)}::text[]
    ) as asked (uid, email, reason, scope, note)
    order by lower(asked.email), ${strength(sql`asked.reason`)} desc
    on conflict (lower(email_address)) do update set
      reason = case when ${stronger} then excluded.reason else held.reason end,
      scope = case when ${wider} then 'all' else held.scope end,
      note = coalesce(excluded.note, held.note)
    where ${stronger} or ${wider}
    returning uid`.execute(tx);
  const { rows } = await sql<SuppressedEmail>`
    select held.uid, held.email_address, held.reason, held.scope, held.note, held.created_at
    from unnest(${emails}::text[]) with ordinality as asked (email, place)
    join suppressed_emails as held on lower(held.email_address) = lower(asked.email)
    order by asked.place`.execute(tx);
  const changed = new Set(written.rows.map(({ uid }) => uid));
  const own = new Set<string>(uids);
  if (changed.size > 0) change.reach("email", await ownersOfEmails(tx, emails), { ifRemoved });
  for (const { uid, email_address: address, reason, scope } of rows)
    if (changed.has(uid) && reason === "User")
      change.left({ key: `${uid} ${scope}`, channel: "email", address, reason: "unsubscribed", scope });
  return rows.map((suppression) => {
    if (!changed.has(suppression.uid)) return { outcome: "kept", suppression };
    return { outcome: own.has(suppression.uid) ? "created" : "strengthened", suppression };
  });
}

/**
 * Lifts suppressions, named by uid or by address. `only` spares those with another reason: a person who takes back their
 * own unsubscription does not lift a bounce. Answers the addresses that are free again.
 */
export async function unsuppressEmails(
  ctx: ContactContext,
  which: { readonly uids: readonly string[] } | { readonly emails: readonly string[] },
  options: {
    readonly only?: EmailReason;
    readonly ifAdded?: AddedReason;
    /** What else belongs to it, in the same transaction. */
    readonly also?: (tx: ContactTransaction, freed: readonly string[]) => Promise<void>;
  } = {},
): Promise<readonly string[]> {
  const named =
    "uids" in which
      ? sql`uid = any(${[...which.uids]}::text[])`
      : sql`lower(email_address) in (select lower(email) from unnest(${[...which.emails]}::text[]) as email)`;
  return changeContacts(ctx, async (tx, change) => {
    const { rows } = await sql<{ email_address: string }>`
      delete from suppressed_emails where ${named} and ${options.only ? sql`reason = ${options.only}` : sql`true`}
      returning email_address`.execute(tx);
    const freed = rows.map(({ email_address }) => email_address);
    if (freed.length > 0)
      change.reach("email", await ownersOfEmails(tx, freed), { ifAdded: options.ifAdded ?? "email_added" });
    if (freed.length > 0) await options.also?.(tx, freed);
    return freed;
  });
}

export async function ownersOfEmails(tx: ContactTransaction, emails: readonly string[]): Promise<readonly number[]> {
  const { rows } = await sql<{ user_id: number }>`
    select distinct user_id from user_email_addresses
    where lower(email) in (select lower(email) from unnest(${[...emails]}::text[]) as email)`.execute(tx);
  return rows.map(({ user_id }) => user_id);
}

export interface Unsubscription {
  readonly email: string;
  /** Where the person asked: a link of a touch, or the link of one mail. */
  readonly linkCode?: string;
  readonly emailUid?: string;
  readonly visitorId?: number;
  readonly scope?: EmailScope;
}

/** People who are not signed in ask for no more mail: each is suppressed and written down. Answers which were new. */
export async function unsubscribeEmails(
  ctx: ContactContext,
  asked: readonly Unsubscription[],
): Promise<readonly boolean[]> {
  if (asked.length === 0) return [];
  return changeContacts(ctx, async (tx, change) => {
    const now = ctx.clock.now();
    const wishes = asked.map(({ email, scope = "lists" }) => ({ email, scope, reason: "User" as const }));
    const done = await suppressEmailsIn(tx, change, now, wishes, "user");
    const fresh = done.map(({ outcome }) => outcome === "created");
    await noteUnsubscriptions(
      tx,
      now,
      asked.map((wish, index) => ({ ...wish, suppressed: fresh[index]! })),
    );
    return fresh;
  });
}

/** Writes down who asked, for support; nothing is decided by it. */
export async function noteUnsubscriptions(
  tx: ContactTransaction,
  now: number,
  asked: readonly (Unsubscription & { readonly suppressed: boolean })[],
): Promise<void> {
  await sql`
    insert into unsubscribed_emails_log
      (uid, link_code, email_uid, visitor_id, visitor_known, email_address, suppressed, created_at)
    select wish.uid, wish.link_code, wish.email_uid, wish.visitor_id, wish.visitor_id is not null, wish.email,
      wish.suppressed, to_timestamp(${now}::float8)
    from unnest(
      ${asked.map(() => newUid("uel"))}::text[], ${asked.map(({ linkCode = null }) => linkCode)}::text[],
      ${asked.map(({ emailUid = null }) => emailUid)}::text[],
      ${asked.map(({ visitorId = null }) => visitorId)}::bigint[], ${asked.map(({ email }) => email)}::text[],
      ${asked.map(({ suppressed }) => suppressed)}::boolean[]
    ) as wish (uid, link_code, email_uid, visitor_id, email, suppressed)`.execute(tx);
}

import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { ContactTransaction } from "./change.ts";
import type { Channel, EmailReason, EmailScope, PhoneReason, Platform } from "./tables.ts";

/**
 * Where a message to a user goes: every address of the channel that is verified, switched on and not suppressed, and
 * every push token that is switched on, the oldest first. Addresses that differ in case only are one destination.
 */
export interface Destination {
  readonly uid: string;
  /** The email address, the phone number or the push token. */
  readonly address: string;
  /** Of a push token. */
  readonly platform?: Platform;
}

type Row = { readonly user_id: number; readonly sub: string } & Destination;

/**
 * The usable addresses of some people. Whose is asked inside, where only their rows are read: around it, the planner may
 * sort the addresses of everybody first.
 */
const REACHABLE: Readonly<Record<Channel, (whose: RawBuilder<unknown>) => RawBuilder<unknown>>> = {
  email: (whose) => sql`
    select distinct on (method.user_id, lower(method.email)) method.id, method.user_id, method.uid,
      method.email as address, null::text as platform
    from user_email_addresses as method
    where method.user_id ${whose} and method.verified and method.receives_notifications and not exists (
      select 1 from suppressed_emails as held where lower(held.email_address) = lower(method.email))
    order by method.user_id, lower(method.email), method.id`,
  phone: (whose) => sql`
    select method.id, method.user_id, method.uid, method.phone_number as address, null::text as platform
    from user_phone_numbers as method
    where method.user_id ${whose} and method.verified and method.receives_notifications and not exists (
      select 1 from suppressed_phone_numbers as held where held.phone_number = method.phone_number)`,
  push: (whose) => sql`
    select method.id, method.user_id, method.uid, method.token as address, method.platform
    from user_push_tokens as method where method.user_id ${whose} and method.receives_notifications`,
};

/** For messages of a list: addresses whose owners left it are no destinations. */
export interface ForList {
  readonly list?: string;
}

const onList = ({ list }: ForList) =>
  list === undefined
    ? sql`true`
    : sql`not exists (select 1 from email_list_optouts as gone
        where lower(gone.email_address) = lower(usable.address) and gone.list = ${list})`;

/** The destinations of any number of users, by sub, with one query. A user without one has no entry. */
export async function destinationsOf(
  ctx: Pick<Context, "sql">,
  channel: Channel,
  subs: readonly string[],
  options: ForList = {},
): Promise<ReadonlyMap<string, readonly Destination[]>> {
  const found = new Map<string, Destination[]>();
  if (subs.length === 0) return found;
  const { rows } = await sql<Row>`
    with asked as materialized (select id, sub from users where sub = any(${[...subs]}::text[]))
    select asked.sub, usable.uid, usable.address, usable.platform
    from (${REACHABLE[channel](sql`= any(array(select id from asked))`)}) as usable
    join asked on asked.id = usable.user_id
    where ${onList(options)} order by asked.id, usable.id`.execute(ctx.sql.tables());
  for (const { sub, uid, address, platform } of rows) {
    const destination = platform ? { uid, address, platform } : { uid, address };
    const known = found.get(sub);
    if (known) known.push(destination);
    else found.set(sub, [destination]);
  }
  return found;
}

/** Which of these users have a destination on the channel, with one query, inside a transaction or out of it. */
export async function reachableAmong(
  db: ContactTransaction | Kysely<never>,
  channel: Channel,
  userIds: readonly number[],
  options: ForList = {},
): Promise<ReadonlySet<number>> {
  if (userIds.length === 0) return new Set();
  const { rows } = await sql<{ user_id: number }>`
    select distinct usable.user_id
    from (${REACHABLE[channel](sql`= any(${[...userIds]}::bigint[])`)}) as usable where ${onList(options)}`.execute(db);
  return new Set(rows.map(({ user_id }) => user_id));
}

export interface Person {
  readonly sub: string;
  readonly given_name: string | null;
}

/** A condition on a row of `users`, of a room that knows more of people. */
export type WhichPeople = RawBuilder<unknown>;
const ANYBODY: WhichPeople = sql`true`;

/** Who has a destination on the channel, of the people whose subs lie behind one and up to another, in their order. */
export async function reachableBetween(
  ctx: Pick<Context, "sql">,
  channel: Channel,
  { after, until, which = ANYBODY }: { readonly after: string; readonly until: string; readonly which?: WhichPeople },
): Promise<readonly Person[]> {
  const { rows } = await sql<Person>`
    select users.sub, users.given_name from users where users.sub > ${after} and users.sub <= ${until}
      and exists (select 1 from (${REACHABLE[channel](sql`= users.id`)}) as usable) and ${which}
    order by users.sub`.execute(ctx.sql.tables());
  return rows;
}

/** How many people have a destination on the channel, and how many there are. */
export async function countReachable(
  ctx: Pick<Context, "sql">,
  channel: Channel,
  which: WhichPeople = ANYBODY,
): Promise<{ readonly reachable: number; readonly everybody: number }> {
  const { rows } = await sql<{ reachable: number; everybody: number }>`
    select (select count(distinct usable.user_id)::int
        from (${REACHABLE[channel](sql`is not null`)}) as usable join users on users.id = usable.user_id
        where ${which}) as reachable,
      (select count(*)::int from users) as everybody`.execute(ctx.sql.tables());
  return rows[0]!;
}

/** The channels on which this user has a destination, with one query. */
export async function reachableChannels(ctx: Pick<Context, "sql">, sub: string): Promise<readonly Channel[]> {
  const has = (channel: Channel) => sql`exists (select 1 from (${REACHABLE[channel](sql`= users.id`)}) as usable)`;
  const { rows } = await sql<{ channel: Channel }>`
    select asked.channel from users, lateral (values
      ('email', ${has("email")}), ('phone', ${has("phone")}), ('push', ${has("push")})
    ) as asked (channel, reachable)
    where users.sub = ${sub} and asked.reachable`.execute(ctx.sql.tables());
  return rows.map(({ channel }) => channel);
}

/** Why an address is not written to, and with which mails. */
export interface HeldEmail {
  readonly reason: EmailReason;
  readonly scope: EmailScope;
  /** The lists that its owner left, where they stayed on others; absent, the scope says all. */
  readonly lists?: readonly string[];
}

/** Whether a mail of this list, or of none, must not go to the address. */
export function isHeldBack(held: HeldEmail | undefined, list: string | null): boolean {
  if (held === undefined) return false;
  return held.scope === "all" || (list !== null && (held.lists?.includes(list) ?? true));
}

export interface SuppressedAmong {
  /** By the address as it was asked for, whatever its case. */
  readonly emails: ReadonlyMap<string, HeldEmail>;
  readonly phones: ReadonlyMap<string, { readonly reason: PhoneReason }>;
}

/** Which of these addresses are suppressed: one query for any number of both kinds, for a channel about to send. */
export async function suppressedAmong(
  ctx: Pick<Context, "sql">,
  addresses: { readonly emails?: readonly string[]; readonly phones?: readonly string[] },
): Promise<SuppressedAmong> {
  const { emails = [], phones = [] } = addresses;
  const found = { emails: new Map<string, HeldEmail>(), phones: new Map<string, { reason: PhoneReason }>() };
  if (emails.length + phones.length === 0) return found;
  const { rows } = await sql<HeldRow>`
    with asked as (select distinct address from unnest(${[...emails]}::text[]) as asked (address))
    select 'suppressed' as kind, asked.address, held.reason, held.scope, null as list
    from asked join suppressed_emails as held on lower(held.email_address) = lower(asked.address)
    union all
    select 'left', asked.address, null, null, gone.list
    from asked join email_list_optouts as gone on lower(gone.email_address) = lower(asked.address)
    union all
    select 'phone', held.phone_number, held.reason, null, null from suppressed_phone_numbers as held
    where held.phone_number = any(${[...phones]}::text[])
    order by 1, 5`.execute(ctx.sql.tables());
  const left = new Map<string, string[]>();
  for (const { kind, address, reason, scope, list } of rows) {
    if (kind === "phone") found.phones.set(address, { reason: reason as PhoneReason });
    else if (kind === "suppressed") found.emails.set(address, { reason: reason as EmailReason, scope });
    else left.set(address, [...(left.get(address) ?? []), list]);
  }
  for (const [address, lists] of left)
    if (!found.emails.has(address)) found.emails.set(address, { reason: "User", scope: "lists", lists });
  return found;
}

interface HeldRow {
  readonly kind: "suppressed" | "left" | "phone";
  readonly address: string;
  readonly reason: string;
  readonly scope: EmailScope;
  readonly list: string;
}

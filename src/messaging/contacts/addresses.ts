import { sql } from "kysely";
import { newUid } from "../../kernel/ids.ts";
import { errors as userErrors } from "../../people/users/service.ts";
import {
  type ContactChange,
  type ContactContext,
  type ContactTransaction,
  changeContacts,
  lockUsers,
} from "./change.ts";
import { effects } from "./effects.ts";
import { parseEmailAddress } from "./email-address.ts";
import { errors } from "./errors.ts";
import { settings } from "./settings.ts";
import type { ContactWords } from "./stats.ts";

/** Email addresses and phone numbers of users: how they come, how they are verified. */
type AddressChannel = "email" | "phone";

const TABLES = {
  email: { table: "user_email_addresses", address: "email", prefix: "uea" },
  phone: { table: "user_phone_numbers", address: "phone_number", prefix: "upn" },
} as const;

interface NewAddress {
  readonly userSub: string;
  /** A claim that is not verified never takes away what was verified before. */
  readonly verified: boolean;
  /** Why a reminder begins with it, if one does, where that is not the address itself. */
  readonly begins?: "account_created" | "klaviyo" | undefined;
}

export interface NewEmail extends NewAddress {
  readonly email: string;
  readonly cause: "identity" | "migration";
}

export interface NewPhone extends NewAddress {
  /** E.164, from `parsePhoneNumber`. */
  readonly phoneNumber: string;
  readonly receivesNotifications: boolean;
  /** `verify`: the person proved the number and chose, so the choice also holds for a number that is known already. */
  readonly cause: "identity" | "verify" | "migration";
}

export type AddressOutcome = "created" | "changed" | "unchanged" | "unknown_user" | "invalid_address";

/** Addresses that a sign-in vouches for, or that an import brings; notifications are on. */
export async function addEmails(ctx: ContactContext, emails: readonly NewEmail[]): Promise<readonly AddressOutcome[]> {
  return addAddresses(
    ctx,
    "email",
    emails.map(({ email, ...item }) => ({
      ...item,
      address: parseEmailAddress(email),
      receivesNotifications: true,
      chosen: false,
    })),
  );
}

export async function addPhones(ctx: ContactContext, phones: readonly NewPhone[]): Promise<readonly AddressOutcome[]> {
  return addAddresses(
    ctx,
    "phone",
    phones.map(({ phoneNumber, ...phone }) => ({ ...phone, address: phoneNumber, chosen: phone.cause === "verify" })),
  );
}

/** A person adds an address of their own. It waits unverified until the person follows the link that is mailed to it. */
export async function addOwnEmail(
  ctx: ContactContext,
  userSub: string,
  email: string,
): Promise<{ readonly uid: string; readonly email: string; readonly created_at: number }> {
  return changeContacts(ctx, async (tx, change) => {
    const [user] = await lockUsers(tx, [userSub]);
    if (!user) throw userErrors.user_not_found();
    const { rows } = await sql<{ email: string; same: boolean }>`
      select email, lower(email) = lower(${email}::text) as same from user_email_addresses
      where user_id = ${user.id}`.execute(tx);
    if (rows.some(({ same }) => same)) throw errors.email_exists();
    if (rows.length >= ctx.config.get(settings.emailsPerUser)) throw errors.too_many_emails();
    const added = { userId: user.id, address: email, verified: false, receivesNotifications: true };
    const [uid] = await insert(tx, ctx.clock.now(), "email", [added]);
    noteCreated(change, "email", { ...added, cause: "user" });
    await effects().verificationMail.emailAdded(tx, { userId: user.id, sub: userSub, uid: uid!, email }, { ctx });
    return { uid: uid!, email, created_at: ctx.clock.now() };
  });
}

/** Their owners proved that these addresses are theirs. Answers what became of each uid. */
export async function verifyEmails(
  ctx: ContactContext,
  uids: readonly string[],
  cause: "identity" | "verify" = "verify",
): Promise<ReadonlyMap<string, "verified" | "unchanged">> {
  if (uids.length === 0) return new Map();
  return changeContacts(ctx, async (tx, change) => {
    const { rows } = await sql<{ uid: string; user_id: number; email: string; verified: boolean }>`
      select uid, user_id, email, verified from user_email_addresses
      where uid = any(${[...uids]}::text[]) order by id for update`.execute(tx);
    const fresh = rows.filter(({ verified }) => !verified);
    if (fresh.length > 0)
      await sql`
        update user_email_addresses set verified = true
        where uid = any(${fresh.map(({ uid }) => uid)}::text[])`.execute(tx);
    for (const { user_id: userId, email } of fresh) noteVerified(change, "email", userId, email, cause);
    return new Map(rows.map(({ uid, verified }) => [uid, verified ? "unchanged" : "verified"]));
  });
}

interface Wanted extends NewAddress {
  /** Absent where what was given is none. */
  readonly address: string | undefined;
  readonly receivesNotifications: boolean;
  readonly cause: "identity" | "verify" | "migration";
  readonly chosen: boolean;
}

interface Known {
  readonly id: number;
  readonly place: number;
  readonly address: string;
  readonly verified: boolean;
  readonly receives: boolean;
}

async function addAddresses(
  ctx: ContactContext,
  channel: AddressChannel,
  wanted: readonly Wanted[],
): Promise<readonly AddressOutcome[]> {
  if (wanted.length === 0) return [];
  return changeContacts(ctx, async (tx, change) => {
    const users = await lockUsers(
      tx,
      wanted.map(({ userSub }) => userSub),
    );
    const idBySub = new Map(users.map(({ id, sub }) => [sub, id]));
    const outcomes = wanted.map(({ userSub, address }): AddressOutcome => {
      if (address === undefined) return "invalid_address";
      return idBySub.has(userSub) ? "unchanged" : "unknown_user";
    });
    const asked = wanted.flatMap(({ address, ...item }, place) => {
      const userId = idBySub.get(item.userSub);
      return userId === undefined || address === undefined ? [] : [{ ...item, address, userId, place }];
    });
    const inserted = await insert(tx, ctx.clock.now(), channel, asked);
    for (const [index, item] of asked.entries()) {
      if (inserted[index] === undefined) continue;
      outcomes[item.place] = "created";
      noteCreated(change, channel, item);
    }
    const rest = asked.filter((_, index) => inserted[index] === undefined);
    for (const place of await raise(tx, change, channel, rest)) outcomes[place] = "changed";
    for (const { userId, begins } of asked) if (begins) change.reach(channel, [userId], { ifAdded: begins });
    return outcomes;
  });
}

/** One statement for all; answers the uid of each that was inserted, undefined where the user has the address. */
async function insert(
  tx: ContactTransaction,
  now: number,
  channel: AddressChannel,
  rows: readonly { userId: number; address: string; verified: boolean; receivesNotifications: boolean }[],
): Promise<readonly (string | undefined)[]> {
  const { table, address, prefix } = TABLES[channel];
  const uids = rows.map(() => newUid(prefix));
  const inserted = await sql<{ uid: string }>`
    insert into ${sql.table(table)} (uid, user_id, ${sql.ref(address)}, verified, receives_notifications, created_at)
    select fresh.*, to_timestamp(${now}::float8) from unnest(
      ${uids}::text[], ${rows.map(({ userId }) => userId)}::bigint[], ${rows.map((row) => row.address)}::text[],
      ${rows.map(({ verified }) => verified)}::boolean[],
      ${rows.map(({ receivesNotifications }) => receivesNotifications)}::boolean[]
    ) as fresh on conflict do nothing returning uid`.execute(tx);
  const done = new Set(inserted.rows.map(({ uid }) => uid));
  return uids.map((uid) => (done.has(uid) ? uid : undefined));
}

/** Known addresses become verified, or are switched as their owner chose; answers the places of those that changed. */
async function raise(
  tx: ContactTransaction,
  change: ContactChange,
  channel: AddressChannel,
  items: readonly (Wanted & { address: string; userId: number; place: number })[],
): Promise<readonly number[]> {
  if (items.length === 0) return [];
  const { table, address } = TABLES[channel];
  const column = sql.ref(address);
  const { rows } = await sql<Known>`
    select known.id, asked.place::integer as place, known.${column} as address, known.verified,
      known.receives_notifications as receives
    from ${sql.table(table)} as known join unnest(
      ${items.map(({ userId }) => userId)}::bigint[], ${items.map((item) => item.address)}::text[]
    ) with ordinality as asked (user_id, address, place)
      on known.user_id = asked.user_id and lower(known.${column}) = lower(asked.address)
    order by known.id for update of known`.execute(tx);
  const final = new Map<number, { verified: boolean; receives: boolean }>();
  const inOrder = [...rows].sort((one, other) => one.place - other.place);
  const changed = inOrder.flatMap((row) => {
    const item = items[row.place - 1]!;
    const before = final.get(row.id) ?? row;
    const after = {
      verified: before.verified || item.verified,
      receives: item.chosen ? item.receivesNotifications : before.receives,
    };
    if (after.verified === before.verified && after.receives === before.receives) return [];
    final.set(row.id, after);
    if (after.verified !== before.verified)
      noteVerified(change, channel, item.userId, row.address, item.cause === "migration" ? "identity" : item.cause);
    if (after.receives !== before.receives) noteChosen(change, item.userId, row.address, after.receives);
    return [item.place];
  });
  if (final.size > 0)
    await sql`
      update ${sql.table(table)} as known set verified = after.verified, receives_notifications = after.receives
      from unnest(
        ${[...final.keys()]}::bigint[], ${[...final.values()].map(({ verified }) => verified)}::boolean[],
        ${[...final.values()].map(({ receives }) => receives)}::boolean[]
      ) as after (id, verified, receives) where known.id = after.id`.execute(tx);
  return changed;
}

function noteCreated(
  change: ContactChange,
  channel: AddressChannel,
  item: {
    readonly userId: number;
    readonly address: string;
    readonly verified: boolean;
    readonly receivesNotifications: boolean;
    readonly cause: "identity" | "verify" | "migration" | "user";
  },
): void {
  const verified = item.verified ? "verified" : "unverified";
  const enabled = item.receivesNotifications ? "enabled" : "disabled";
  // Each channel's own types allow only the causes it has.
  change.count("created", `${channel}:${verified}:${enabled}:${item.cause}` as ContactWords["created"]);
  change.reach(channel, [item.userId]);
  change.note({
    userId: item.userId,
    channel,
    identifier: item.address,
    action: `create_${verified}`,
    reason: { source: item.cause, context: { receives_notifications: item.receivesNotifications } },
  });
}

export function noteVerified(
  change: ContactChange,
  channel: AddressChannel,
  userId: number,
  address: string,
  cause: "identity" | "verify",
): void {
  change.count("verified", `${channel}:${cause}`);
  change.reach(channel, [userId]);
  change.note({ userId, channel, identifier: address, action: "verify", reason: { source: cause } });
}

function noteChosen(change: ContactChange, userId: number, address: string, on: boolean): void {
  change.count(on ? "enabled_notifications" : "disabled_notifications", "phone:verify");
  change.reach("phone", [userId], on ? {} : { ifRemoved: "user" });
  change.note({
    userId,
    channel: "phone",
    identifier: address,
    action: on ? "enable_notifs" : "disable_notifs",
    reason: { source: "verify" },
  });
}

import { sql } from "kysely";
import { type ContactContext, type ContactTransaction, changeContacts } from "./change.ts";
import { errors } from "./errors.ts";
import type { ContactWords } from "./stats.ts";
import type { Channel } from "./tables.ts";

/** What can be done to a contact method by its uid, whichever channel it is of: switch it, remove it. */
const TABLES = {
  email: { table: "user_email_addresses", address: "email" },
  phone: { table: "user_phone_numbers", address: "phone_number" },
  push: { table: "user_push_tokens", address: "token" },
} as const;

const CHANNEL_BY_PREFIX: Readonly<Record<string, Channel>> = { uea: "email", upn: "phone", upt: "push" };

export const CONTACT_UID = /^crl_(uea|upn|upt)_[\w-]{22}$/;

function channelOf(uid: string): Channel | undefined {
  return CHANNEL_BY_PREFIX[CONTACT_UID.exec(uid)?.[1] ?? ""];
}

function byChannel<T extends { readonly uid: string }>(items: readonly T[]): ReadonlyMap<Channel, readonly T[]> {
  const groups = new Map<Channel, T[]>();
  for (const item of items) {
    const channel = channelOf(item.uid);
    if (channel) groups.set(channel, [...(groups.get(channel) ?? []), item]);
  }
  return groups;
}

export interface NotificationSwitch {
  readonly userSub: string;
  readonly uid: string;
  readonly enabled: boolean;
}

/**
 * Who switches: the owner, an administrator on their behalf, or the nightly job that keeps a development system from
 * texting people. What an administrator does counts as the owner's wish, and is logged with their name for it.
 */
export type SwitchCause = "user" | "admin" | "dev_auto_disable";

interface Method {
  readonly uid: string;
  readonly user_id: number;
  readonly address: string;
  readonly receives: boolean;
}

/** Switches contact methods on or off, one statement a channel. Answers the uids that their users have. */
export async function switchNotifications(
  ctx: ContactContext,
  switches: readonly NotificationSwitch[],
  cause: SwitchCause = "user",
): Promise<ReadonlySet<string>> {
  if (switches.length === 0) return new Set();
  return changeContacts(ctx, async (tx, change) => {
    const found = new Set<string>();
    for (const [channel, items] of byChannel(switches)) {
      const wanted = new Map(items.map(({ uid, enabled }) => [uid, enabled]));
      const methods = await lockMethods(tx, channel, items);
      for (const { uid } of methods) found.add(uid);
      const changed = methods.filter(({ uid, receives }) => receives !== wanted.get(uid));
      if (changed.length === 0) continue;
      await sql`
        update ${sql.table(TABLES[channel].table)} set receives_notifications = not receives_notifications
        where uid = any(${changed.map(({ uid }) => uid)}::text[])`.execute(tx);
      for (const { uid, user_id: userId, address, receives } of changed) {
        const isWish = cause !== "dev_auto_disable";
        if (receives && isWish)
          change.left({
            key: `${uid} ${ctx.clock.now()}`,
            channel,
            address,
            reason: "switched_off",
            scope: channel === "email" ? "all" : null,
            userId,
          });
        if (receives) change.count("disabled_notifications", disabledWord(channel, cause));
        else change.count("enabled_notifications", `${channel}:user`);
        change.reach(channel, [userId], receives && isWish ? { ifRemoved: "user" } : {});
        change.note({
          userId,
          channel,
          identifier: address,
          action: receives ? "disable_notifs" : "enable_notifs",
          reason: { source: cause },
        });
      }
    }
    return found;
  });
}

function disabledWord(channel: Channel, cause: SwitchCause): ContactWords["disabled_notifications"] {
  if (cause !== "dev_auto_disable") return `${channel}:unsubscribe`;
  if (channel !== "phone") throw new TypeError(`only phones are switched off in development, not ${channel}`);
  return "phone:dev_auto_disable";
}

/** Locks the methods among these that belong to the user who is named with them. */
async function lockMethods(
  tx: ContactTransaction,
  channel: Channel,
  items: readonly { readonly uid: string; readonly userSub: string }[],
): Promise<readonly Method[]> {
  const { table, address } = TABLES[channel];
  const { rows } = await sql<Method>`
    select method.uid, method.user_id, method.${sql.ref(address)} as address, method.receives_notifications as receives
    from ${sql.table(table)} as method
    join users on users.id = method.user_id
    join (select distinct * from unnest(
      ${items.map(({ uid }) => uid)}::text[], ${items.map(({ userSub }) => userSub)}::text[]
    )) as asked (uid, sub) on asked.uid = method.uid and asked.sub = users.sub
    order by method.id for update of method`.execute(tx);
  return rows;
}

/** The device asks for silence. Refused for a token that is not the caller's, as if it were not there. */
export async function disablePushToken(ctx: ContactContext, userSub: string, token: string): Promise<void> {
  const row = await ctx.sql
    .tables<{ user_push_tokens: { uid: string; token: string } }>()
    .selectFrom("user_push_tokens")
    .select("uid")
    .where("token", "=", token)
    .executeTakeFirst();
  const found = row ? await switchNotifications(ctx, [{ userSub, uid: row.uid, enabled: false }]) : new Set();
  if (found.size === 0) throw errors.token_not_found();
}

/** A contact method is taken away, one statement a channel. Answers the uids that are gone by it. */
export async function removeContactMethods(
  ctx: ContactContext,
  items: readonly { readonly userSub: string; readonly uid: string }[],
  source: "user" | "admin" = "user",
): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  return changeContacts(ctx, async (tx, change) => {
    const gone = new Set<string>();
    for (const [channel, asked] of byChannel(items)) {
      const { table, address } = TABLES[channel];
      const { rows } = await sql<Omit<Method, "receives">>`
        delete from ${sql.table(table)} as method
        using users, (select distinct * from unnest(
          ${asked.map(({ uid }) => uid)}::text[], ${asked.map(({ userSub }) => userSub)}::text[]
        )) as asked (uid, sub)
        where method.uid = asked.uid and users.id = method.user_id and users.sub = asked.sub
        returning method.uid, method.user_id, method.${sql.ref(address)} as address`.execute(tx);
      for (const { uid, user_id: userId, address: identifier } of rows) {
        gone.add(uid);
        change.count("deleted", `${channel}:user`);
        change.reach(channel, [userId]);
        change.note({ userId, channel, identifier, action: "delete", reason: { source } });
      }
    }
    return gone;
  });
}

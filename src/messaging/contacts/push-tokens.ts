import { type RawBuilder, sql } from "kysely";
import { newUid } from "../../kernel/ids.ts";
import {
  type ContactChange,
  type ContactContext,
  type ContactTransaction,
  changeContacts,
  lockUsers,
} from "./change.ts";
import { TOKENS_PER_USER } from "./settings.ts";
import type { Platform } from "./tables.ts";

/**
 * Push tokens. A token names one app on one device, so it belongs to one user at a time: whoever registered it last.
 *
 * A batch is decided in memory over locked rows, in the order of its entries, and written with one statement a kind of
 * change. Locks are taken in the order that deleting a user needs too, users by id and then tokens by id, so that
 * changes wait for each other without a deadlock. An unknown token cannot be locked: if somebody else inserts it first,
 * the unique index refuses ours, and the change begun again finds their row.
 */
export const PUSH_TOKEN = /^Expo(nent)?PushToken\[[A-Za-z0-9_-]+\]$/;

export interface TokenRegistration {
  readonly userSub: string;
  readonly token: string;
  readonly platform: Platform;
}

export type RegistrationOutcome = "created" | "refreshed" | "reassigned" | "unknown_user";

interface HeldToken {
  /** Absent for one that this batch inserts. */
  readonly id: number | undefined;
  readonly token: string;
  userId: number;
  platform: Platform;
  lastSeenAt: number;
  /** What the batch does to it, if anything. */
  fate?: "insert" | "move" | "refresh";
}

export async function registerPushTokens(
  ctx: ContactContext,
  registrations: readonly TokenRegistration[],
): Promise<readonly RegistrationOutcome[]> {
  if (registrations.length === 0) return [];
  return changeContacts(ctx, async (tx, change) => {
    const now = ctx.clock.now();
    const wanted = [...new Set(registrations.map(({ token }) => token))];
    const subs = registrations.map(({ userSub }) => userSub);
    const users = await lockUsers(
      tx,
      subs,
      sql`select user_id from user_push_tokens where token = any(${wanted}::text[])`,
    );
    const idBySub = new Map(users.map(({ id, sub }) => [sub, id]));
    const receivers = [...new Set(subs.flatMap((sub) => idBySub.get(sub) ?? []))];
    const held = await lockTokens(tx, sql`token = any(${wanted}::text[]) or user_id = any(${receivers}::bigint[])`);
    // Whoever got one of the tokens between the two looks is a party to this too.
    const late = held.filter(({ userId }) => !users.some(({ id }) => id === userId)).map(({ userId }) => userId);
    if (late.length > 0) await lockUsers(tx, [], sql`select unnest(${late}::bigint[])`);
    const plan = new TokenPlan(held, change, now);
    const outcomes = registrations.map((registration): RegistrationOutcome => {
      const userId = idBySub.get(registration.userSub);
      if (userId !== undefined) return plan.register(userId, registration);
      ctx.log.warn({ user_sub: registration.userSub }, "a push token was registered for a user that does not exist");
      return "unknown_user";
    });
    await plan.write(tx);
    return outcomes;
  });
}

/** What the rows will be when all registrations have had their effect. */
class TokenPlan {
  readonly #tokens = new Map<string, HeldToken>();
  readonly #evicted = new Set<number>();
  readonly #change: ContactChange;
  readonly #now: number;

  constructor(held: readonly HeldToken[], change: ContactChange, now: number) {
    for (const token of held) this.#tokens.set(token.token, token);
    this.#change = change;
    this.#now = now;
  }

  register(userId: number, { token, platform }: TokenRegistration): RegistrationOutcome {
    const held = this.#tokens.get(token);
    if (held?.userId === userId) {
      held.lastSeenAt = this.#now;
      held.fate ??= "refresh";
      this.#change.countTokens("refreshed");
      return "refreshed";
    }
    this.#makeRoom(userId);
    if (held) {
      this.#leave(held, "push:reassigned", "reassign");
      this.#change.countTokens("reassigned");
      Object.assign(held, {
        userId,
        platform,
        lastSeenAt: this.#now,
        fate: held.fate === "insert" ? "insert" : "move",
      });
    } else {
      this.#tokens.set(token, { id: undefined, token, userId, platform, lastSeenAt: this.#now, fate: "insert" });
      this.#change.countTokens("created");
    }
    this.#change.count("created", "push:enabled:app");
    this.#change.reach("push", [userId], { ifAdded: "push_token_added" });
    this.#change.note({
      userId,
      channel: "push",
      identifier: token,
      action: "create_unverified",
      reason: { source: "app", ...(held ? { reason: "reassign" } : {}), context: { platform } },
    });
    return held ? "reassigned" : "created";
  }

  /** The ones that were not seen for longest go until there is room for one more. */
  #makeRoom(userId: number): void {
    const own = [...this.#tokens.values()].filter((token) => token.userId === userId).sort(longestUnseenFirst);
    for (const token of own.slice(0, Math.max(0, own.length - TOKENS_PER_USER + 1))) {
      this.#tokens.delete(token.token);
      if (token.id !== undefined) this.#evicted.add(token.id);
      this.#leave(token, "push:excessive", "excessive");
      this.#change.countTokens("deleted_due_to_token_limit");
    }
  }

  #leave({ userId, token }: HeldToken, word: "push:reassigned" | "push:excessive", reason: string): void {
    this.#change.count("deleted", word);
    this.#change.reach("push", [userId]);
    this.#change.note({
      userId,
      channel: "push",
      identifier: token,
      action: "delete",
      reason: { source: "app", reason },
    });
  }

  async write(tx: ContactTransaction): Promise<void> {
    const now = sql`to_timestamp(${this.#now}::float8)`;
    const all = [...this.#tokens.values()];
    const inserted = all.filter(({ fate }) => fate === "insert");
    const moved = all.filter(({ fate }) => fate === "move");
    const refreshed = all.flatMap(({ fate, id }) => (fate === "refresh" ? [id!] : []));
    if (this.#evicted.size > 0)
      await sql`delete from user_push_tokens where id = any(${[...this.#evicted]}::bigint[])`.execute(tx);
    if (refreshed.length > 0)
      await sql`
        update user_push_tokens set last_seen_at = ${now}, updated_at = ${now}
        where id = any(${refreshed}::bigint[])`.execute(tx);
    if (moved.length > 0)
      await sql`
        update user_push_tokens set user_id = moved.user_id, platform = moved.platform, receives_notifications = true,
          created_at = ${now}, updated_at = ${now}, last_seen_at = ${now}
        from unnest(
          ${moved.map(({ id }) => id!)}::bigint[], ${moved.map(({ userId }) => userId)}::bigint[],
          ${moved.map(({ platform }) => platform)}::text[]
        ) as moved (id, user_id, platform)
        where user_push_tokens.id = moved.id`.execute(tx);
    if (inserted.length > 0)
      await sql`
        insert into user_push_tokens
          (uid, user_id, platform, token, receives_notifications, created_at, updated_at, last_seen_at)
        select fresh.*, true, ${now}, ${now}, ${now} from unnest(
          ${inserted.map(() => newUid("upt"))}::text[], ${inserted.map(({ userId }) => userId)}::bigint[],
          ${inserted.map(({ platform }) => platform)}::text[], ${inserted.map(({ token }) => token)}::text[]
        ) as fresh`.execute(tx);
  }
}

function longestUnseenFirst(one: HeldToken, other: HeldToken): number {
  return one.lastSeenAt - other.lastSeenAt || (one.id ?? Number.MAX_VALUE) - (other.id ?? Number.MAX_VALUE);
}

async function lockTokens(tx: ContactTransaction, condition: RawBuilder<unknown>): Promise<readonly HeldToken[]> {
  const { rows } = await sql<HeldToken>`
    select id, token, user_id as "userId", platform, last_seen_at as "lastSeenAt" from user_push_tokens
    where ${condition} order by id for update`.execute(tx);
  return rows;
}

export interface UnrecognizedToken {
  readonly token: string;
  /** Where the provider said so: in its answer to a message, or in a receipt. */
  readonly stage: "ticket" | "receipt";
}

/**
 * The provider no longer knows these devices. They go by value: whoever owns the token now loses it, because the device
 * is gone for everyone. Answers which were there.
 */
export async function deletePushTokens(
  ctx: ContactContext,
  unrecognized: readonly UnrecognizedToken[],
): Promise<ReadonlySet<string>> {
  if (unrecognized.length === 0) return new Set();
  const stages = new Map(unrecognized.map(({ token, stage }) => [token, stage]));
  return changeContacts(ctx, async (tx, change) => {
    const { rows } = await sql<{ token: string; user_id: number }>`
      delete from user_push_tokens where id in (
        select id from user_push_tokens where token = any(${[...stages.keys()]}::text[]) order by id for update)
      returning token, user_id`.execute(tx);
    for (const { token, user_id: userId } of rows) {
      const stage = stages.get(token)!;
      change.countTokens(`deleted_due_to_unrecognized_${stage}`);
      change.count("deleted", "push:device_not_registered");
      change.reach("push", [userId]);
      change.note({
        userId,
        channel: "push",
        identifier: token,
        action: "delete",
        reason: { source: "provider", reason: "DeviceNotRegistered", context: { stage } },
      });
    }
    return new Set(rows.map(({ token }) => token));
  });
}

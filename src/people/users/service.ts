import { type Kysely, sql as raw, type Selectable, type Transaction } from "kysely";
import type { Domain } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { errors } from "./errors.ts";
import { forgetUserKeys, removeKeys } from "./jobs.ts";
import { forgetStanding } from "./standing.ts";
import type { Role, UserRow, UserTables } from "./tables.ts";
import { changeTimezone, type TimezoneSource } from "./timezone-log.ts";
import { uuidAt } from "./uuid.ts";

export { errors } from "./errors.ts";
export {
  correctPreferences,
  notificationPreferenceCame,
  notificationPreferenceChanged,
  notificationPreferenceWent,
  PREFERENCES,
  type Preference,
  type PreferenceCounts,
  preferenceCounts,
} from "./preferences.ts";
export { readStanding, type Standing } from "./standing.ts";
export { ROLES, type Role } from "./tables.ts";
export { isTimezone, Timezone } from "./timezone.ts";
export { changeTimezone, type TimezoneSource } from "./timezone-log.ts";

export type User = Selectable<UserRow>;

/** The part of the floor plan that takes part in a user's life, in its order. */
export type UserHooks = readonly Pick<Domain, "name" | "onUserCreated" | "onUserDeleting" | "perUserKeys">[];

export interface NewUser {
  /** Made up unless given. */
  readonly sub?: string;
  readonly role?: Role;
  readonly timezone?: string | null;
  readonly given_name?: string | null;
  readonly family_name?: string | null;
}

export type UserChanges = Omit<NewUser, "sub">;

type UserTransaction = Transaction<UserTables>;

/** The user and everything that the rooms add for a new user, or nothing of it. */
export async function createUser(ctx: Context, hooks: UserHooks, input: NewUser = {}): Promise<User> {
  const now = ctx.clock.now();
  const user = await ctx.sql
    .tables<UserTables>()
    .transaction()
    .execute(async (tx) => {
      const created = await tx
        .insertInto("users")
        .values({ ...input, sub: input.sub ?? newUid("u"), uuid: uuidAt(now), created_at: timestamp(now) })
        .onConflict((conflict) => conflict.column("sub").doNothing())
        .returningAll()
        .executeTakeFirst();
      if (!created) throw errors.user_exists({ message: `A user with the sub ${input.sub} already exists.` });
      for (const room of hooks) await room.onUserCreated?.(ctx, tx, { id: created.id, sub: created.sub });
      return created;
    });
  forgetStanding(ctx.sql, user.sub);
  return user;
}

export async function getUser(ctx: Pick<Context, "sql">, sub: string): Promise<User | undefined> {
  return (await getUsers(ctx, [sub])).get(sub);
}

/** The users there are among these, by sub. */
export async function getUsers(ctx: Pick<Context, "sql">, subs: readonly string[]): Promise<Map<string, User>> {
  if (subs.length === 0) return new Map();
  const rows = await ctx.sql
    .tables<UserTables>()
    .selectFrom("users")
    .selectAll()
    .where("sub", "=", raw<string>`any(${[...subs]}::text[])`)
    .execute();
  return new Map(rows.map((row) => [row.sub, row]));
}

export interface UserPage {
  readonly users: readonly User[];
  /** Pass it as `after` for the next page; absent on the last. */
  readonly next: string | undefined;
}

/** In order of arrival. The uuid is the key of the pages, so a page is right even if its last user is gone by the next. */
export async function listUsers(
  ctx: Pick<Context, "sql">,
  options: { after?: string; limit: number; role?: Role },
): Promise<UserPage> {
  let query = ctx.sql
    .tables<UserTables>()
    .selectFrom("users")
    .selectAll()
    .orderBy("uuid")
    .limit(options.limit + 1);
  if (options.after) query = query.where("uuid", ">", options.after);
  if (options.role) query = query.where("role", "=", options.role);
  const rows = await query.execute();
  const users = rows.slice(0, options.limit);
  return { users, next: rows.length > options.limit ? users.at(-1)?.uuid : undefined };
}

/** A change of role also ends every token issued before it, so nobody keeps rights they no longer have. */
export async function updateUser(
  ctx: Context,
  sub: string,
  { timezone, ...changes }: UserChanges,
  source: TimezoneSource = { source: "admin" },
): Promise<User> {
  const user = await ctx.sql
    .tables<UserTables>()
    .transaction()
    .execute(async (tx) => {
      const before = await lockedUser(tx, sub);
      const roleChanges = changes.role !== undefined && changes.role !== before.role;
      if (timezone !== undefined)
        await changeTimezone(tx as unknown as Kysely<never>, ctx, before.id, timezone, source);
      if (Object.keys(changes).length === 0) return timezone === undefined ? before : { ...before, timezone };
      return await tx
        .updateTable("users")
        .set({ ...changes, ...(roleChanges ? { tokens_valid_after: timestamp(ctx.clock.now()) } : {}) })
        .where("id", "=", before.id)
        .returningAll()
        .executeTakeFirstOrThrow();
    });
  forgetStanding(ctx.sql, sub);
  return user;
}

export function setRole(ctx: Context, sub: string, role: Role): Promise<User> {
  return updateUser(ctx, sub, { role });
}

export function setTimezone(ctx: Context, sub: string, timezone: string): Promise<User> {
  return updateUser(ctx, sub, { timezone });
}

/** Every bearer token of the user issued until now stops working. */
export async function revokeTokens(ctx: Context, sub: string): Promise<void> {
  const { numUpdatedRows } = await ctx.sql
    .tables<UserTables>()
    .updateTable("users")
    .set({ tokens_valid_after: timestamp(ctx.clock.now()) })
    .where("sub", "=", sub)
    .executeTakeFirst();
  forgetStanding(ctx.sql, sub);
  if (numUpdatedRows === 0n) throw errors.user_not_found();
}

/**
 * A user's end. The rooms take leave in the order of the floor plan, inside the transaction that removes the row: a
 * refusal by any of them undoes all. The removal of Redis keys commits as a job with it and is also done right away; a
 * crash after the commit leaves it to the job.
 */
export async function deleteUser(ctx: Context, hooks: UserHooks, sub: string): Promise<void> {
  const keys = await ctx.sql
    .tables<UserTables>()
    .transaction()
    .execute(async (tx) => {
      const user = await lockedUser(tx, sub);
      for (const room of hooks) await room.onUserDeleting?.(ctx, tx, { id: user.id, sub });
      await tx.deleteFrom("users").where("id", "=", user.id).execute();
      const names = hooks.flatMap((room) => room.perUserKeys?.({ sub, uuid: user.uuid }) ?? []);
      if (names.length > 0) await ctx.jobs.enqueueIn(tx, forgetUserKeys, { sub, keys: names });
      return names;
    });
  forgetStanding(ctx.sql, sub);
  await removeKeys(ctx, keys).catch((error: unknown) =>
    ctx.log.warn({ reason: String(error) }, "keys of a deleted user are left to the job"),
  );
}

async function lockedUser(tx: UserTransaction, sub: string): Promise<User> {
  const user = await tx.selectFrom("users").selectAll().where("sub", "=", sub).forUpdate().executeTakeFirst();
  if (!user) throw errors.user_not_found();
  return user;
}

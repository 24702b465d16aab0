import { type Kysely, sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Stats } from "../../mechanisms/dated-counters/index.ts";
import { type AddedReason, type RemovedReason, reachableAmong, type WhichPeople } from "../contacts/service.ts";
import { METHOD_OF, type TouchChannel } from "../touch/service.ts";
import { countKeys } from "./keys.ts";
import { registrationStats } from "./stats.ts";
import { DEFAULT_ZONE, type ReminderTables } from "./tables.ts";
import { type Choice, type Choices, REMINDER_CHANNELS, type TimeRange, type Window, windowOf } from "./window.ts";

export type ReminderSql = Kysely<ReminderTables>;
export type Added = AddedReason | "update_notification_time";
export type Removed = RemovedReason | "update_notification_time";

/** Somebody's reminder on a channel may have to come or go, or to change its hours. */
export interface Wish {
  readonly userId: number;
  readonly channel: TouchChannel;
  readonly ifAdded: Added;
  readonly ifRemoved: Removed;
}

interface Registration extends Window {
  readonly userId: number;
  readonly channel: TouchChannel;
}

type Surroundings = Pick<KernelContext, "clock">;

const nameOf = ({ userId, channel }: { userId: number; channel: TouchChannel }) => `${userId} ${channel}`;

/**
 * Makes registrations agree with who can be reached and what they chose: one reminder for each channel on which somebody
 * can be reached on some day. Runs in the transaction of whatever changed, with a few statements however many people it
 * is about; what it counts commits with it.
 */
export async function reconcile(
  db: ReminderSql,
  ctx: Surroundings,
  wishes: readonly Wish[],
  stats: Stats,
): Promise<void> {
  if (wishes.length === 0) return;
  const userIds = [...new Set(wishes.map(({ userId }) => userId))];
  const held = await registrationsOf(db, userIds);
  const choices = await choicesOf(db, userIds);
  const reachable = await reach(db, wishes);
  const [added, changed, removed]: [Registration[], Registration[], Registration[]] = [[], [], []];
  for (const { userId, channel, ifAdded, ifRemoved } of new Map(wishes.map((wish) => [nameOf(wish), wish])).values()) {
    const window = windowOf(channel, choices.get(userId) ?? {});
    const before = held.get(nameOf({ userId, channel }));
    const wanted = window.mask !== 0 && reachable.has(nameOf({ userId, channel }));
    const registration = { userId, channel, ...window };
    if (wanted && !before) {
      added.push(registration);
      count(stats, "subscribed", channel, ifAdded);
    } else if (!wanted && before) {
      removed.push(registration);
      count(stats, "unsubscribed", channel, ifRemoved);
    } else if (wanted && before && !isSame(before, window)) changed.push(registration);
  }
  await insert(db, ctx, added);
  await update(db, changed);
  await remove(db, removed);
}

function count(stats: Stats, event: "subscribed" | "unsubscribed", channel: TouchChannel, reason: string): void {
  stats.incr(registrationStats, event, { extra: `${channel}:${reason}` });
  const by = event === "subscribed" ? 1 : -1;
  stats.add(registrationStats.family, { op: "hincr", key: countKeys.counts(), field: channel, by });
}

const isSame = (one: Window, other: Window) =>
  one.start === other.start && one.end === other.end && one.mask === other.mask;

async function reach(db: ReminderSql, wishes: readonly Wish[]): Promise<ReadonlySet<string>> {
  const reachable = new Set<string>();
  for (const channel of REMINDER_CHANNELS) {
    const asked = [...new Set(wishes.flatMap((wish) => (wish.channel === channel ? [wish.userId] : [])))];
    for (const userId of await reachableAmong(db as never, METHOD_OF[channel], asked))
      reachable.add(nameOf({ userId, channel }));
  }
  return reachable;
}

async function registrationsOf(db: ReminderSql, userIds: readonly number[]): Promise<ReadonlyMap<string, Window>> {
  const { rows } = await sql<Registration>`
    select user_id as "userId", channel, start_time as start, end_time as end, day_of_week_mask as mask
    from user_daily_reminders where user_id = any(${[...userIds]}::bigint[]) for update`.execute(db);
  return new Map(rows.map((row) => [nameOf(row), row]));
}

/** What people chose, by user. */
export async function choicesOf(db: ReminderSql, userIds: readonly number[]): Promise<ReadonlyMap<number, Choices>> {
  const { rows } = await sql<{ user_id: number; channel: TouchChannel; mask: number; range: TimeRange }>`
    select user_id, channel, day_of_week_mask as mask, time_range as range from user_daily_reminder_settings
    where user_id = any(${[...userIds]}::bigint[])`.execute(db);
  const choices = new Map<number, Partial<Record<TouchChannel, Choice>>>();
  for (const { user_id, channel, mask, range } of rows)
    choices.set(user_id, { ...choices.get(user_id), [channel]: { mask, range } });
  return choices;
}

/** That somebody gets reminders by text. */
export const TEXTED: WhichPeople = sql`exists (select 1 from user_daily_reminders as held
  where held.user_id = users.id and held.channel = 'sms' and held.day_of_week_mask <> 0)`;

const column = <V>(rows: readonly Registration[], of: (row: Registration) => V) => rows.map(of);

async function insert(db: ReminderSql, ctx: Surroundings, rows: readonly Registration[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    insert into user_daily_reminders (uid, user_id, channel, start_time, end_time, day_of_week_mask, timezone, created_at)
    select wish.uid, wish.user_id, wish.channel, wish.starts, wish.ends, wish.mask,
      coalesce(users.timezone, ${DEFAULT_ZONE}), to_timestamp(${ctx.clock.now()}::float8)
    from unnest(
      ${column(rows, () => newUid("udr"))}::text[], ${column(rows, ({ userId }) => userId)}::bigint[],
      ${column(rows, ({ channel }) => channel)}::text[], ${column(rows, ({ start }) => start)}::integer[],
      ${column(rows, ({ end }) => end)}::integer[], ${column(rows, ({ mask }) => mask)}::integer[]
    ) as wish (uid, user_id, channel, starts, ends, mask) join users on users.id = wish.user_id`.execute(db);
}

/** The uid stays, and with it the place in the day: who was reminded today is not reminded again for new hours. */
async function update(db: ReminderSql, rows: readonly Registration[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    update user_daily_reminders as held set start_time = wish.starts, end_time = wish.ends, day_of_week_mask = wish.mask
    from unnest(
      ${column(rows, ({ userId }) => userId)}::bigint[], ${column(rows, ({ channel }) => channel)}::text[],
      ${column(rows, ({ start }) => start)}::integer[], ${column(rows, ({ end }) => end)}::integer[],
      ${column(rows, ({ mask }) => mask)}::integer[]
    ) as wish (user_id, channel, starts, ends, mask)
    where held.user_id = wish.user_id and held.channel = wish.channel`.execute(db);
}

async function remove(db: ReminderSql, rows: readonly Registration[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    delete from user_daily_reminders as held
    using unnest(
      ${column(rows, ({ userId }) => userId)}::bigint[], ${column(rows, ({ channel }) => channel)}::text[]
    ) as wish (user_id, channel)
    where held.user_id = wish.user_id and held.channel = wish.channel`.execute(db);
}

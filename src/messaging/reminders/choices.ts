import { type Kysely, sql, type Transaction } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { applyDeltas, type Stats, stageDeltas, statsOf } from "../../mechanisms/dated-counters/index.ts";
import { changeTimezone, notificationPreferenceChanged, errors as userErrors } from "../../people/users/service.ts";
import type { Channel } from "../contacts/service.ts";
import type { TouchChannel } from "../touch/service.ts";
import { errors } from "./errors.ts";
import { preferenceOf } from "./preferences.ts";
import { type Added, choicesOf, type ReminderSql, type Removed, reconcile } from "./registrations.ts";
import type { ReminderTables } from "./tables.ts";
import { type Choice, daysOf, REMINDER_CHANNELS, type TimeRange, type WEEKDAYS, windowOf } from "./window.ts";

type ChoiceContext = Pick<Context, "sql" | "redis" | "clock" | "config" | "log" | "metrics">;

/** A change of reminders in a transaction of its own; what it counts is counted after the commit, once. */
async function change<T>(
  ctx: ChoiceContext,
  sub: string,
  reasons: { readonly ifAdded: Added; readonly ifRemoved: Removed },
  work: (tx: ReminderSql, userId: number, stats: Stats) => Promise<T>,
): Promise<T> {
  const { result, staged } = await ctx.sql
    .tables<ReminderTables>()
    .transaction()
    .execute(async (tx) => {
      const { rows } = await sql<{ id: number }>`
        select id from users where sub = ${sub} for no key update`.execute(tx);
      if (!rows[0]) throw userErrors.user_not_found();
      const userId = rows[0].id;
      const stats = statsOf(ctx);
      const done = await work(tx as unknown as ReminderSql, userId, stats);
      // What one channel does without a choice of its own follows the others.
      const wishes = REMINDER_CHANNELS.map((channel) => ({ userId, channel, ...reasons }));
      await reconcile(tx as unknown as ReminderSql, ctx, wishes, stats);
      return { result: done, staged: await stageDeltas(tx as unknown as Transaction<never>, ctx, stats) };
    });
  await applyDeltas(ctx, staged).catch((error: unknown) =>
    ctx.log.warn({ reason: String(error) }, "counts of reminders are left to the sweep"),
  );
  return result;
}

export interface NewChoice extends Choice {
  readonly channels: readonly TouchChannel[];
  readonly timezone?: string | undefined;
  readonly technique?: string | undefined;
}

const GUESSED = /-guessed$/;

/** Keeps when somebody wants to hear from us on some channels, and where they are. */
export async function choose(ctx: ChoiceContext, sub: string, choice: NewChoice): Promise<void> {
  const reasons = { ifAdded: "update_notification_time", ifRemoved: "update_notification_time" } as const;
  await change(ctx, sub, reasons, async (tx, userId, stats) => {
    const { timezone, technique } = choice;
    if (timezone !== undefined) {
      const style = technique?.replace(GUESSED, "");
      const source = { source: "update_notification_time", style, guessed: style !== technique };
      await changeTimezone(tx as unknown as Kysely<never>, ctx, userId, timezone, source);
    }
    await store(tx, ctx, userId, choice.channels, choice, { source: "user", technique: technique ?? null }, stats);
  });
}

/** Ends a reminder: its channel is chosen for no day. */
export async function endReminder(ctx: ChoiceContext, sub: string, uid: string): Promise<void> {
  await change(ctx, sub, { ifAdded: "update_notification_time", ifRemoved: "user" }, async (tx, userId, stats) => {
    const { rows } = await sql<{ channel: TouchChannel }>`
      select channel from user_daily_reminders where uid = ${uid} and user_id = ${userId}`.execute(tx);
    const channel = rows[0]?.channel;
    if (!channel) throw errors.reminder_not_found();
    const held = (await choicesOf(tx, [userId])).get(userId)?.[channel];
    const range: TimeRange = held?.range ?? { type: "preset", preset: "unspecified" };
    await store(tx, ctx, userId, [channel], { mask: 0, range }, { source: "user", unsubscribed: true }, stats);
  });
}

async function store(
  tx: ReminderSql,
  ctx: Pick<Context, "clock" | "config">,
  userId: number,
  channels: readonly TouchChannel[],
  { mask, range }: Choice,
  reason: Readonly<Record<string, unknown>>,
  stats: Stats,
): Promise<void> {
  const before = (await choicesOf(tx, [userId])).get(userId) ?? {};
  if (channels.includes("sms"))
    notificationPreferenceChanged(ctx, stats, preferenceOf(before.sms), preferenceOf({ mask, range }));
  const now = sql`to_timestamp(${ctx.clock.now()}::float8)`;
  const text = JSON.stringify(range);
  await sql`
    insert into user_daily_reminder_settings (uid, user_id, channel, day_of_week_mask, time_range, created_at, updated_at)
    select wish.uid, ${userId}::bigint, wish.channel, ${mask}::integer, ${text}::jsonb, ${now}, ${now}
    from unnest(${channels.map(() => newUid("udrs"))}::text[], ${[...channels]}::text[]) as wish (uid, channel)
    on conflict (user_id, channel) do update set day_of_week_mask = excluded.day_of_week_mask,
      time_range = excluded.time_range, updated_at = excluded.updated_at`.execute(tx);
  const reasons = channels.map((channel) => JSON.stringify({ ...reason, old: before[channel] ?? null }));
  await sql`
    insert into daily_reminder_settings_log (uid, user_id, channel, day_of_week_mask, time_range, reason, created_at)
    select wish.uid, ${userId}::bigint, wish.channel, ${mask}::integer, ${text}::jsonb, wish.reason, ${now}
    from unnest(${channels.map(() => newUid("drsl"))}::text[], ${[...channels]}::text[], ${reasons}::jsonb[])
      as wish (uid, channel, reason)`.execute(tx);
}

/** When reminders come on each channel, and whether that is the person's own choice of hours. */
export async function shownChoices(ctx: Pick<Context, "sql">, sub: string) {
  const db = ctx.sql.tables<ReminderTables>();
  const { rows } = await sql<{ id: number }>`select id from users where sub = ${sub}`.execute(db);
  const choices = (rows[0] && (await choicesOf(db, [rows[0].id])).get(rows[0].id)) ?? {};
  const shown = REMINDER_CHANNELS.map((channel) => {
    const { start, end, mask } = windowOf(channel, choices);
    const is_real = choices[channel]?.range.type === "explicit";
    return [channel, { start, end, days: daysOf(mask), is_real }] as const;
  });
  return Object.fromEntries(shown) as Record<
    TouchChannel,
    { start: number; end: number; days: readonly (typeof WEEKDAYS)[number][]; is_real: boolean }
  >;
}

/** Channels on which somebody gets reminders although they have not chosen since then. */
export async function chosenBefore(ctx: Pick<Context, "sql">, sub: string, since: number): Promise<readonly Channel[]> {
  const { rows } = await sql<{ channel: TouchChannel }>`
    select held.channel from user_daily_reminders as held join users on users.id = held.user_id
    where users.sub = ${sub} and not exists (
      select 1 from user_daily_reminder_settings as chosen where chosen.user_id = held.user_id
        and chosen.channel = held.channel and chosen.updated_at > to_timestamp(${since}::float8))
    order by held.channel`.execute(ctx.sql.tables<ReminderTables>() as Kysely<ReminderTables>);
  return rows.map(({ channel }) => (channel === "sms" ? "phone" : channel));
}

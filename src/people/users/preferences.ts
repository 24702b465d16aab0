import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import {
  calendarOf,
  isoDate,
  parseIsoDate,
  type RotatedCounters,
  type Stats,
} from "../../mechanisms/dated-counters/index.ts";
import { keys } from "./keys.ts";

/** When somebody wants to hear from us by text, as statistics name it; `unset` is never. */
export const PREFERENCES = ["unset", "text-any", "text-morning", "text-afternoon", "text-evening"] as const;
export type Preference = (typeof PREFERENCES)[number];

const FAMILY = "users";
const TABLE = "user_notification_setting_stats";
const DAY_SLOT = "day";

/** `unset:text-any`, of two that are different. */
export const isChange = (field: string): boolean => {
  const [before, after, ...rest] = field.split(":");
  const known = (name: string | undefined) => (PREFERENCES as readonly (string | undefined)[]).includes(name);
  return rest.length === 0 && known(before) && known(after) && before !== after;
};

/** How people changed their minds: one hash a day, one row for each of the twenty changes that happened. */
export const preferenceChanges: RotatedCounters = {
  name: "daily_user_notification_settings",
  table: TABLE,
  held: 1,
  earliest: () => keys.preferenceEarliest(),
  slots: [DAY_SLOT],
  counter: (date) => keys.preferenceDay({ unix_date: date }),
  examine(snapshot) {
    const unknown = Object.entries(dayOf(snapshot)).filter(([field]) => !isChange(field));
    return { mismatches: [], leftover: unknown.length > 0 ? Object.fromEntries(unknown) : null };
  },
  async store(tx, { date, snapshot, now }) {
    const changes = Object.entries(dayOf(snapshot)).filter(([field]) => isChange(field));
    const { rows } = await sql<{ inserted: boolean }>`
      insert into user_notification_setting_stats (retrieved_for, old_preference, new_preference, retrieved_at, total)
      select ${isoDate(date)}::date, split_part(asked.field, ':', 1), split_part(asked.field, ':', 2), ${timestamp(now)},
        asked.total
      from unnest(${changes.map(([field]) => field)}::text[], ${changes.map(([, total]) => total)}::integer[])
        as asked (field, total)
      on conflict (retrieved_for, old_preference, new_preference) do update set retrieved_at = excluded.retrieved_at,
        total = user_notification_setting_stats.total + excluded.total
      returning (xmax = 0) as inserted`.execute(tx);
    return rows.every(({ inserted }) => inserted) ? "inserted" : "added";
  },
};

function dayOf(snapshot: Parameters<RotatedCounters["examine"]>[0]): Readonly<Record<string, number>> {
  const held = snapshot[DAY_SLOT];
  return typeof held === "object" ? held : {};
}

type Counting = Pick<Context, "clock" | "config">;

const move = (stats: Stats, preference: Preference, by: 1 | -1) =>
  stats.add(FAMILY, { op: "hincr", key: keys.preferenceCounts(), field: preference, by });

/** Somebody wants texts at another time of day than before. Counted on `stats`, which commit with the change. */
export function notificationPreferenceChanged(
  ctx: Counting,
  stats: Stats,
  before: Preference,
  after: Preference,
): void {
  if (before === after) return;
  const { date } = calendarOf(ctx).dateFor(ctx.clock, ctx.clock.now(), preferenceChanges);
  move(stats, before, -1);
  move(stats, after, 1);
  stats.add(FAMILY, { op: "low", key: keys.preferenceEarliest(), value: date });
  stats.add(FAMILY, { op: "hincr", key: keys.preferenceDay({ unix_date: date }), field: `${before}:${after}`, by: 1 });
}

/** A user came with this preference, or went. */
export function notificationPreferenceCame(stats: Stats, preference: Preference): void {
  move(stats, preference, 1);
}

export function notificationPreferenceWent(stats: Stats, preference: Preference): void {
  move(stats, preference, -1);
}

export type PreferenceCounts = Record<Preference, number>;

/** How many users have each preference, as it is counted. */
export async function preferenceCounts({ redis }: Pick<Context, "redis">): Promise<PreferenceCounts> {
  const held = await redis.commands.hgetall(redis.topology.key(keys.preferenceCounts()));
  return Object.fromEntries(PREFERENCES.map((name) => [name, Number(held[name] ?? 0)])) as PreferenceCounts;
}

/** Corrects the counts by what they are wrong by, so that changes meanwhile stay counted. */
export async function correctPreferences(
  { redis: { commands, topology } }: Pick<Context, "redis">,
  drift: Readonly<Partial<PreferenceCounts>>,
): Promise<void> {
  for (const [preference, by] of Object.entries(drift))
    if (by !== 0) await commands.hincrby(topology.key(keys.preferenceCounts()), preference, by!);
}

/** The changes of finished days, by day: what SQL has of them. */
export async function preferenceHistory(
  ctx: Pick<Context, "sql" | "clock" | "config">,
  range: { readonly from: string; readonly to: string },
) {
  const { rows } = await sql<{ date: string; field: string; total: number }>`
    select retrieved_for::text as date, old_preference || ':' || new_preference as field, total
    from user_notification_setting_stats where retrieved_for between ${range.from}::date and ${range.to}::date`.execute(
    ctx.sql.tables(),
  );
  const first = parseIsoDate(range.from);
  const labels = Array.from({ length: Math.max(0, parseIsoDate(range.to) - first + 1) }, (_, at) =>
    isoDate(first + at),
  );
  const transitions: Record<string, number[]> = {};
  for (const { date, field, total } of rows) {
    transitions[field] ??= labels.map(() => 0);
    transitions[field][labels.indexOf(date)] = total;
  }
  return { labels, transitions };
}

import { type Kysely, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { stageDeltas, statsOf } from "../../mechanisms/dated-counters/index.ts";
import {
  notificationPreferenceCame,
  notificationPreferenceWent,
  PREFERENCES,
  type Preference,
  type PreferenceCounts,
} from "../../people/users/service.ts";
import { choicesOf, type ReminderSql } from "./registrations.ts";
import type { ReminderTables } from "./tables.ts";
import type { Choice } from "./window.ts";

/** What somebody's choice for texts comes to in the statistics of users: hours of their own count as any. */
export function preferenceOf(choice: Choice | undefined): Preference {
  if (!choice || choice.mask === 0) return "unset";
  if (choice.range.type === "explicit" || choice.range.preset === "unspecified") return "text-any";
  return `text-${choice.range.preset}`;
}

type HookUser = { readonly id: number };

/** Whoever comes has chosen nothing yet. The count commits with the user, and is applied by the sweep. */
export async function countNewUser(ctx: Context, tx: unknown): Promise<void> {
  const stats = statsOf(ctx);
  notificationPreferenceCame(stats, "unset");
  await stageDeltas(tx as Kysely<never>, ctx, stats);
}

export async function countLeavingUser(ctx: Context, tx: unknown, { id }: HookUser): Promise<void> {
  const stats = statsOf(ctx);
  notificationPreferenceWent(stats, preferenceOf((await choicesOf(tx as ReminderSql, [id])).get(id)?.sms));
  await stageDeltas(tx as Kysely<never>, ctx, stats);
}

/** How many users have each preference, as SQL has it. */
export async function truePreferences(ctx: Pick<Context, "sql">): Promise<PreferenceCounts> {
  const { rows } = await sql<{ mask: number | null; range: Choice["range"] | null; count: number }>`
    select chosen.day_of_week_mask as mask, chosen.time_range - 'start' - 'end' as range, count(*)::float8 as count
    from users left join user_daily_reminder_settings as chosen on chosen.user_id = users.id and chosen.channel = 'sms'
    group by 1, 2`.execute(ctx.sql.tables<ReminderTables>());
  const counts = Object.fromEntries(PREFERENCES.map((name) => [name, 0])) as PreferenceCounts;
  for (const { mask, range, count } of rows)
    counts[preferenceOf(mask === null || !range ? undefined : { mask, range })] += count;
  return counts;
}

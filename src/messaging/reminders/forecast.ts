import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { calendarIn, isoDate } from "../../mechanisms/dated-counters/index.ts";
import { isTimezone, errors as userErrors } from "../../people/users/service.ts";
import { destinationsOf } from "../contacts/service.ts";
import { DAILY_REMINDER, METHOD_OF, type TouchChannel } from "../touch/service.ts";
import { keys, queuedReminder } from "./keys.ts";
import { settings } from "./settings.ts";
import { DEFAULT_ZONE, type ReminderTables } from "./tables.ts";
import { REMINDER_CHANNELS, WEEKDAYS, weekdayBit } from "./window.ts";

export const FORECAST_DAYS = 14;

export interface Registration {
  readonly uid: string;
  readonly channel: TouchChannel;
  readonly start_time: number;
  readonly end_time: number;
  readonly day_of_week_mask: number;
  readonly last_unix_date: number | null;
  readonly created_at: number;
}

/** The reminders that somebody has. */
export async function registrationsOf(ctx: Pick<Context, "sql">, sub: string): Promise<readonly Registration[]> {
  const { rows } = await sql<Registration>`
    select held.uid, held.channel, held.start_time, held.end_time, held.day_of_week_mask, held.last_unix_date,
      extract(epoch from held.created_at)::float8 as created_at
    from user_daily_reminders as held join users on users.id = held.user_id where users.sub = ${sub}
    order by held.channel`.execute(ctx.sql.tables<ReminderTables>());
  return rows;
}

/** The reminders that somebody has, by channel, with the addresses that they go to. */
export async function shownRegistrations(ctx: Pick<Context, "sql">, sub: string) {
  const held = new Map((await registrationsOf(ctx, sub)).map((row) => [row.channel, row]));
  const shown = await Promise.all(
    REMINDER_CHANNELS.map(async (channel) => {
      const row = held.get(channel);
      if (!row) return [channel, null] as const;
      const { last_unix_date: _, channel: __, ...registration } = row;
      const found = (await destinationsOf(ctx, METHOD_OF[channel], [sub])).get(sub) ?? [];
      return [channel, { ...registration, destinations: found.map(({ address }) => address) }] as const;
    }),
  );
  return Object.fromEntries(shown);
}

export interface ComingReminder {
  readonly date: string;
  readonly weekday: (typeof WEEKDAYS)[number];
  readonly channel: TouchChannel;
  /** What it tells about. */
  readonly event_slug: string;
  /** It comes between these two instants. */
  readonly earliest_at: number;
  readonly latest_at: number;
  /** As clocks show it there and then, for instance `08:00`. */
  readonly earliest_local: string;
  readonly latest_local: string;
  /** The exact time, once it is assigned. */
  readonly assigned_at: number | null;
  /** Its day has another length than 24 hours, so that clocks show another time than usual. */
  readonly clocks_change: boolean;
}

/** What somebody would be reminded of in the next days, and when, if nothing changes. */
export async function forecast(ctx: Pick<Context, "sql" | "redis" | "clock" | "config">, sub: string) {
  const { rows } = await sql<{ timezone: string | null; since: number }>`
    select timezone, extract(epoch from created_at)::float8 as since from users where sub = ${sub}`.execute(
    ctx.sql.tables<ReminderTables>(),
  );
  if (!rows[0]) throw userErrors.user_not_found();
  const said = rows[0].timezone ?? DEFAULT_ZONE;
  const timezone = isTimezone(said) ? said : DEFAULT_ZONE;
  const quietUntil = rows[0].since + ctx.config.get(settings.quietFirst);
  const registrations = await registrationsOf(ctx, sub);
  const calendar = calendarIn(timezone);
  const today = calendar.unixDate(ctx.clock.now());
  const local = new Intl.DateTimeFormat("en-GB", { timeZone: timezone, hour: "2-digit", minute: "2-digit" });
  const days = Array.from({ length: FORECAST_DAYS }, (_, at) => {
    const date = today + at;
    const midnight = calendar.startOf(date);
    return { date, midnight, clocksChange: calendar.startOf(date + 1) - midnight !== 86_400 };
  });
  const coming = days.flatMap(({ date, midnight, clocksChange }) =>
    registrations.flatMap((registration) => {
      const { channel, start_time, end_time, day_of_week_mask, last_unix_date } = registration;
      const latest_at = midnight + end_time;
      if ((day_of_week_mask & weekdayBit(date)) === 0 || (last_unix_date ?? -1) >= date) return [];
      if (latest_at < Math.max(ctx.clock.now(), quietUntil)) return [];
      const reminder = {
        date: isoDate(date),
        weekday: WEEKDAYS[(date + 4) % 7]!,
        channel,
        event_slug: DAILY_REMINDER,
        earliest_at: Math.max(midnight + start_time, quietUntil),
        latest_at,
        earliest_local: local.format(Math.max(midnight + start_time, quietUntil) * 1000),
        latest_local: local.format(latest_at * 1000),
        clocks_change: clocksChange,
      };
      return [{ reminder, member: queuedReminder.encode({ uid: registration.uid, unix_date: date }) }];
    }),
  );
  const { commands, topology } = ctx.redis;
  const times =
    coming.length === 0
      ? []
      : await commands.zmscore(topology.key(keys.queued()), ...coming.map(({ member }) => member));
  const items = coming.map(
    ({ reminder }, at): ComingReminder => ({ ...reminder, assigned_at: times[at] == null ? null : Number(times[at]) }),
  );
  return { timezone, items };
}

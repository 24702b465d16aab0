import { sql } from "kysely";
import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { liveRoutes } from "../../jobs/live-routes.ts";
import type { Route } from "../../kernel/route.ts";
import { getUser, Timezone, errors as userErrors } from "../../people/users/service.ts";
import { noteSettingsImproved } from "../contacts/service.ts";
import { TOUCH_CHANNELS } from "../touch/service.ts";
import { choose, endReminder, shownChoices } from "./choices.ts";
import { readCounts } from "./counts.ts";
import { errors } from "./errors.ts";
import { FORECAST_DAYS, forecast, shownRegistrations } from "./forecast.ts";
import { keys } from "./keys.ts";
import type { ReminderTables } from "./tables.ts";
import { maskOf, REMINDER_CHANNELS, TimeRange, WEEKDAYS } from "./window.ts";

const NO_STORE = { "cache-control": "no-store" };
const Channel = z.enum(TOUCH_CHANNELS);
const Weekday = z.enum(WEEKDAYS);
const byChannel = <T extends z.ZodType>(value: T) => z.object({ email: value, sms: value, push: value });
const Registration = z.object({
  uid: z.string(),
  destinations: z.array(z.string()),
  start_time: z.int(),
  end_time: z.int(),
  day_of_week_mask: z.int(),
  created_at: z.number(),
});
const Choice = z.object({
  start: z.int().meta({ description: "Seconds after midnight" }),
  end: z.int(),
  days: z.array(Weekday),
  is_real: z.boolean().meta({ description: "False where the hours are a time of day, or follow another channel" }),
});
const Coming = z.object({
  timezone: z.string(),
  items: z.array(
    z.object({
      date: z.string(),
      weekday: Weekday,
      channel: Channel,
      event_slug: z.string(),
      earliest_at: z.number(),
      latest_at: z.number(),
      earliest_local: z.string(),
      latest_local: z.string(),
      assigned_at: z.number().nullable(),
      clocks_change: z.boolean(),
    }),
  ),
});

const people: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/users/me/daily_reminders",
    access: "user",
    summary: "Your daily reminders",
    responses: { 200: byChannel(Registration.nullable()) },
    handle: async (ctx, { caller }) => ({
      status: 200,
      headers: NO_STORE,
      body: await shownRegistrations(ctx, caller.sub ?? ""),
    }),
  }),
  route({
    method: "GET",
    path: "/api/1/users/me/daily_reminders/next",
    access: "user",
    summary: `What you would be reminded of in the next ${FORECAST_DAYS} days, and when`,
    description:
      "Each comes once, somewhere between its two times; `assigned_at` is the exact one as soon as it is known.",
    responses: { 200: Coming },
    handle: async (ctx, { caller }) => ({
      status: 200,
      headers: NO_STORE,
      body: await forecast(ctx, caller.sub ?? ""),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/users/me/daily_reminders",
    access: "user",
    summary: "End one of your daily reminders",
    schemas: { body: z.strictObject({ uid: z.string().min(1).max(200) }) },
    async handle(ctx, { caller, body }) {
      await endReminder(ctx, caller.sub ?? "", body.uid);
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/users/me/daily_reminder_settings",
    access: "user",
    summary: "When you want to be reminded, by channel",
    responses: { 200: byChannel(Choice) },
    handle: async (ctx, { caller }) => ({
      status: 200,
      headers: NO_STORE,
      body: await shownChoices(ctx, caller.sub ?? ""),
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/users/me/attributes/notification_time",
    access: "user",
    summary: "Say when you want to be reminded, and where you are",
    description: "No day at all ends the reminders of the channel.",
    schemas: {
      body: z.strictObject({
        channel: z.enum([...TOUCH_CHANNELS, "all"]),
        days_of_week: z.array(Weekday).max(7),
        time_range: TimeRange,
        timezone: Timezone,
        timezone_technique: z.enum(["browser", "app", "app-guessed"]),
      }),
    },
    responses: { 202: z.object({}) },
    async handle(ctx, { caller, body }) {
      await choose(ctx, caller.sub ?? "", {
        channels: body.channel === "all" ? REMINDER_CHANNELS : [body.channel],
        mask: maskOf(body.days_of_week),
        range: body.time_range,
        timezone: body.timezone,
        technique: body.timezone_technique,
      });
      return { status: 202, body: {} };
    },
  }),
];

const { live, lastRun } = liveRoutes({
  root: "/api/1/admin/daily_reminders",
  unit: "milliseconds",
  neverFinished: () => errors.reminders_run_not_finished(),
});

/** Every open day with its zones, and how far each is. */
async function progressOf({ redis: { commands, topology } }: Context) {
  const earliest = await commands.get(topology.key(keys.earliest()));
  const days: Record<string, Record<string, { start_time: number | null; uid: string | null; finished: boolean }>> = {};
  for (let date = Number(earliest ?? Number.NaN); ; date++) {
    const zones = Number.isNaN(date)
      ? []
      : await commands.zrange(topology.key(keys.zones({ unix_date: date })), 0, "-1");
    if (zones.length === 0) break;
    const held = await Promise.all(
      zones.map((tz) =>
        commands.hmget(topology.key(keys.progress({ tz, unix_date: date })), "start_time", "uid", "finished"),
      ),
    );
    days[date] = Object.fromEntries(
      zones.map((zone, at) => {
        const [start, uid, finished] = held[at]!;
        return [
          zone,
          { start_time: start === null ? null : Number(start), uid: uid ?? null, finished: finished === "1" },
        ];
      }),
    );
  }
  return { earliest_unix_date: earliest === null ? null : Number(earliest), progress_by_date_and_timezone: days };
}

const Count = z.int();
const Progress = z.object({ start_time: z.number().nullable(), uid: z.string().nullable(), finished: z.boolean() });

const admin: readonly Route<Context>[] = [
  live("counts", "How many people get reminders, by channel", byChannel(Count), readCounts),
  live(
    "queued_info",
    "How many reminders have a time and wait for it",
    z.object({ length: Count, oldest: z.number().nullable(), overdue: Count }),
    async ({ redis: { commands, topology }, clock }) => {
      const queued = topology.key(keys.queued());
      const [length, [, oldest], overdue] = await Promise.all([
        commands.zcard(queued),
        commands.zrange(queued, 0, "0", "WITHSCORES"),
        commands.zcount(queued, "-inf", clock.now()),
      ]);
      return { length, oldest: oldest === undefined ? null : Number(oldest), overdue };
    },
  ),
  live(
    "progress_info",
    "How far the times of each open day are assigned, by zone",
    z.object({
      earliest_unix_date: z.number().nullable(),
      progress_by_date_and_timezone: z.record(z.string(), z.record(z.string(), Progress)),
    }),
    progressOf,
  ),
  lastRun("last_assign_time_job", "assigning times", { report: keys.assignReport, lock: keys.assignLock() }),
  lastRun("last_send_job", "sending reminders", { report: keys.sendReport, lock: keys.sendLock() }),
  route({
    method: "POST",
    path: "/api/1/admin/daily_reminders/settings_improved",
    access: "admin",
    summary: "Have everybody asked for their times again",
    responses: { 200: z.object({ improved_at: z.number() }) },
    handle: async (ctx) => ({ status: 200, body: { improved_at: await noteSettingsImproved(ctx) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/users/{sub}/daily_reminders/next",
    access: "admin",
    summary: `What a person would be reminded of in the next ${FORECAST_DAYS} days, and when`,
    schemas: { params: z.object({ sub: z.string().min(1).max(255) }) },
    responses: { 200: Coming },
    handle: async (ctx, { params }) => ({ status: 200, headers: NO_STORE, body: await forecast(ctx, params.sub) }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/users/{sub}/daily_reminders",
    access: "admin",
    summary: "The daily reminders of a person, and when they want them",
    schemas: { params: z.object({ sub: z.string().min(1).max(255) }) },
    responses: { 200: z.object({ reminders: byChannel(Registration.nullable()), settings: byChannel(Choice) }) },
    async handle(ctx, { params }) {
      if (!(await getUser(ctx, params.sub))) throw userErrors.user_not_found();
      const [reminders, settings] = await Promise.all([
        shownRegistrations(ctx, params.sub),
        shownChoices(ctx, params.sub),
      ]);
      return { status: 200, headers: NO_STORE, body: { reminders, settings } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/users/{sub}/daily_reminder_settings_log",
    access: "admin",
    summary: "Every choice of times that a person made, the newest first",
    schemas: {
      params: z.object({ sub: z.string().min(1).max(255) }),
      query: z.object({
        before: z.coerce.number().int().optional(),
        limit: z.coerce.number().int().min(1).max(100).default(50),
      }),
    },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            uid: z.string(),
            channel: Channel,
            day_of_week_mask: z.int(),
            time_range: TimeRange,
            reason: z.record(z.string(), z.unknown()),
            created_at: z.number(),
          }),
        ),
        next: z.number().nullable(),
      }),
    },
    async handle(ctx, { params, query }) {
      const older = query.before === undefined ? sql`true` : sql`log.id < ${query.before}`;
      const { rows } = await sql<{ id: number }>`
        select log.id, log.uid, log.channel, log.day_of_week_mask, log.time_range, log.reason,
          extract(epoch from log.created_at)::float8 as created_at
        from daily_reminder_settings_log as log join users on users.id = log.user_id
        where users.sub = ${params.sub} and ${older} order by log.id desc limit ${query.limit}`.execute(
        ctx.sql.tables<ReminderTables>(),
      );
      const next = rows.length === query.limit ? rows.at(-1)!.id : null;
      return { status: 200, headers: NO_STORE, body: { items: rows.map(({ id: _, ...row }) => row), next } };
    },
  }),
];

export const routes: readonly Route<Context>[] = [...people, ...admin];

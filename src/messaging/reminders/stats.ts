import { dailyStats } from "../../mechanisms/dated-counters/index.ts";

/** What became of reminders, on the local day that each is for, whatever day it is where statistics are kept. */
export const reminderStats = dailyStats({
  family: "daily_reminders",
  keysFamily: "daily_reminders",
  title: "daily reminders",
  table: "daily_reminder_stats",
  held: 3,
  origin: "documented",
  cachePrefix: "daily_reminders",
  alias: {
    daily: "/daily_reminders/daily_reminders",
    partial: "/daily_reminders/partial_daily_reminder_stats",
  },
  events: {
    attempted: {},
    overdue: {},
    skipped_assigning_time: { by: "{channel}" },
    time_assigned: { by: "{channel}" },
    sends_attempted: {},
    sends_lost: {},
    skipped_sending: { by: "{channel}" },
    links: {},
    sent: { by: "{channel}" },
  },
  balances: [
    { sum: ["attempted"], equals: ["time_assigned", "skipped_assigning_time"] },
    { sum: ["sends_attempted"], equals: ["sends_lost", "skipped_sending", "sent"] },
  ],
});

/** Who began and who stopped to get reminders, and why. */
export const registrationStats = dailyStats({
  family: "daily_reminder_registrations",
  keysFamily: "contacts",
  title: "people who get reminders",
  table: "daily_reminder_registration_stats",
  held: 2,
  origin: "documented",
  cachePrefix: "daily_reminder_registrations",
  alias: {
    daily: "/daily_reminders/daily_reminder_registrations",
    partial: "/daily_reminders/partial_daily_reminder_registration_stats",
  },
  events: { subscribed: { by: "{channel}:{reason}" }, unsubscribed: { by: "{channel}:{reason}" } },
});

export const stats = [reminderStats, registrationStats];

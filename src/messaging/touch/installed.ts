import type { Messages } from "./point.ts";

/** The touch point of daily reminders, which every installation has from the beginning. Change its words as you like. */
export const DAILY_REMINDER = "daily_reminder";

const text = (example: string) => ({ type: "string", example });

export const dailyReminderSchema = {
  type: "object",
  properties: {
    name: text("Ana"),
    time_of_day: text("morning"),
    url: text("https://example.com/l/4Wq9"),
    unsubscribe_url: text("https://example.com/l/unsubscribe"),
  },
  required: ["name"],
  additionalProperties: true,
};

const WORDS = [
  "Take one minute for yourself before the day goes on.",
  "A short pause now makes the rest of the day lighter.",
  "You planned a moment for this. It is a good time.",
] as const;

export const dailyReminderMessages: Messages = {
  sms: WORDS.map((words, at) => ({
    priority: 1,
    uid: `crl_tpsms_daily_reminder_${at + 1}`,
    body_format: `Hi {name}! ${words} {url}`,
    body_parameters: ["name", "url"],
  })),
  push: WORDS.map((words, at) => ({
    priority: 1,
    uid: `crl_tppush_daily_reminder_${at + 1}`,
    title_format: "Good {time_of_day}, {name}",
    title_parameters: ["time_of_day", "name"],
    body_format: words,
    body_parameters: [],
    channel_id: DAILY_REMINDER,
  })),
  email: WORDS.map((words, at) => ({
    priority: 1,
    uid: `crl_tpem_daily_reminder_${at + 1}`,
    subject_format: "Your moment this {time_of_day}, {name}",
    subject_parameters: ["time_of_day", "name"],
    template: "dailyReminder",
    template_parameters_fixed: { message: words },
    template_parameters_substituted: [
      { key: ["name"], format: "{name}", parameters: ["name"] },
      { key: ["url"], format: "{url}", parameters: ["url"] },
      { key: ["unsubscribeUrl"], format: "{unsubscribe_url}", parameters: ["unsubscribe_url"] },
    ],
  })),
};

import { DAILY_REMINDER, type PointFields } from "../../messaging/touch/service.ts";

/**
 * What the demo's app says to people. The app is Stillwater: five minutes of guided breathing a day, alone or with a friend.
 */
export const APP = "Stillwater, five minutes of guided breathing a day";

const text = (example: string) => ({ type: "string", example });
const count = (example: number) => ({ type: "integer", example });
const LINKS = { url: text("https://example.com/l/4Wq9"), unsubscribe_url: text("https://example.com/l/k3Jd9sQ0") };

const schemaOf = (properties: Readonly<Record<string, unknown>>) => ({
  type: "object",
  properties: { name: text("Amara"), ...properties },
  required: ["name"],
  additionalProperties: true,
});

/** The words in braces, each once. */
const usedIn = (format: string) => [...new Set([...format.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!))];
const substituted = (key: readonly (string | number)[], format: string) => ({
  key: [...key],
  format,
  parameters: usedIn(format),
});

const sms = (slug: string, bodies: readonly string[]) =>
  bodies.map((body, at) => ({
    priority: at + 1,
    uid: `crl_tpsms_demo_${slug}_${at + 1}`,
    body_format: body,
    body_parameters: usedIn(body),
  }));
const push = (slug: string, words: readonly (readonly [title: string, body: string])[]) =>
  words.map(([title, body], at) => ({
    priority: at + 1,
    uid: `crl_tppush_demo_${slug}_${at + 1}`,
    title_format: title,
    title_parameters: usedIn(title),
    body_format: body,
    body_parameters: usedIn(body),
    channel_id: slug,
  }));
const mail = (slug: string, at: number, subject: string) => ({
  priority: at + 1,
  uid: `crl_tpem_demo_${slug}_${at + 1}`,
  subject_format: subject,
  subject_parameters: usedIn(subject),
});

/** A mail with a headline, a few paragraphs and one thing to do. */
const news = (slug: string, letters: readonly { subject: string; paragraphs: readonly string[]; todo: string }[]) =>
  letters.map(({ subject, paragraphs, todo }, at) => ({
    ...mail(slug, at, subject),
    template: "announcement",
    template_parameters_fixed: { paragraphs: paragraphs.map(() => ""), cta: { text: todo, url: "" } },
    template_parameters_substituted: [
      substituted(["headline"], subject),
      ...paragraphs.map((paragraph, line) => substituted(["paragraphs", line], paragraph)),
      substituted(["cta", "url"], "{url}"),
      substituted(["unsubscribeUrl"], "{unsubscribe_url}"),
    ],
  }));

const BREATHS = [
  "Five slow breaths before the day takes over.",
  "Your place by the water is free. Five minutes are enough.",
  "Shoulders down, jaw loose, breathe out longer than in.",
  "Yesterday is gone, and the next meeting can wait five minutes.",
  "You said this hour suits you. Shall we begin?",
] as const;

/** New words for the touch point that every house has from the beginning. */
export const REMINDER_WORDS: Pick<PointFields, "selection_strategy" | "messages"> = {
  selection_strategy: "random_with_replacement",
  messages: {
    sms: sms(
      DAILY_REMINDER,
      BREATHS.map((words) => `Hi {name}! ${words} {url}`),
    ),
    push: push(
      DAILY_REMINDER,
      BREATHS.map((words) => ["Good {time_of_day}, {name}", words] as const),
    ),
    email: BREATHS.map((words, at) => ({
      ...mail(DAILY_REMINDER, at, "Your five minutes this {time_of_day}, {name}"),
      template: "dailyReminder",
      template_parameters_fixed: { message: words },
      template_parameters_substituted: [
        substituted(["name"], "{name}"),
        substituted(["url"], "{url}"),
        substituted(["unsubscribeUrl"], "{unsubscribe_url}"),
      ],
    })),
  },
};

export const TOUCH_POINTS: readonly PointFields[] = [
  {
    event_slug: "welcome",
    event_schema: schemaOf(LINKS),
    selection_strategy: "fixed",
    messages: {
      sms: sms("welcome", ["Welcome to Stillwater, {name}. Your first breath is here: {url}"]),
      push: push("welcome", [["Welcome, {name}", "Your first five minutes are ready whenever you are."]]),
      email: [
        {
          ...mail("welcome", 0, "Welcome to Stillwater, {name}"),
          template: "welcome",
          template_parameters_fixed: {},
          template_parameters_substituted: [
            substituted(["name"], "{name}"),
            substituted(["url"], "{url}"),
            substituted(["unsubscribeUrl"], "{unsubscribe_url}"),
          ],
        },
      ],
    },
  },
  {
    event_slug: "session_finished",
    event_schema: schemaOf({ days: count(7), ...LINKS }),
    selection_strategy: "random_with_replacement",
    messages: {
      sms: sms("session_finished", [
        "Day {days}, {name}. Well breathed. {url}",
        "That was day {days}. See how calm you were: {url}",
      ]),
      push: push("session_finished", [
        ["Day {days}", "Well breathed, {name}. Same time tomorrow?"],
        ["{days} days in a row", "Your longest calm stretch this month, {name}."],
        ["Done for today", "Your pulse slowed down by eleven beats."],
      ]),
      email: news("session_finished", [
        {
          subject: "Day {days}, {name}",
          paragraphs: ["You have come back {days} days in a row.", "A friend would be good company tomorrow."],
          todo: "Invite somebody",
        },
      ]),
    },
  },
  {
    event_slug: "friend_joined",
    event_schema: schemaOf({ friend: text("Mateo"), ...LINKS }),
    selection_strategy: "random_with_replacement",
    messages: {
      sms: sms("friend_joined", ["{friend} has joined Stillwater. Breathe together, {name}? {url}"]),
      push: push("friend_joined", [
        ["{friend} is here", "Say hello with a shared session, {name}."],
        ["You have company, {name}", "{friend} has just finished a first session."],
      ]),
      email: news("friend_joined", [
        {
          subject: "{friend} has joined you, {name}",
          paragraphs: ["{friend} followed your invitation.", "People who breathe with a friend stay twice as long."],
          todo: "Breathe together",
        },
      ]),
    },
  },
  {
    event_slug: "weekly_summary",
    event_schema: schemaOf({ sessions: count(5), minutes: count(25), ...LINKS }),
    selection_strategy: "random_with_replacement",
    messages: {
      sms: [],
      push: push("weekly_summary", [["Your week", "{sessions} sessions, {minutes} calm minutes. Well done, {name}."]]),
      email: news("weekly_summary", [
        {
          subject: "Your week in {minutes} calm minutes",
          paragraphs: [
            "{name}, you breathed with us {sessions} times this week.",
            "Sundays are a good day to choose new hours.",
          ],
          todo: "See your week",
        },
        {
          subject: "{sessions} sessions this week, {name}",
          paragraphs: ["That makes {minutes} minutes that belonged to nobody but you."],
          todo: "Look back",
        },
      ]),
    },
  },
  {
    event_slug: "payment_receipt",
    event_schema: schemaOf({ amount: text("4.90 EUR"), number: text("2026-1042"), ...LINKS }),
    selection_strategy: "fixed",
    messages: {
      sms: [],
      push: [],
      email: news("payment_receipt", [
        {
          subject: "Your receipt {number}",
          paragraphs: ["Thank you, {name}. We received {amount} for one month of Stillwater."],
          todo: "See your plan",
        },
      ]),
    },
  },
  {
    event_slug: "ten_day_challenge",
    event_schema: schemaOf(LINKS),
    selection_strategy: "fixed",
    messages: {
      sms: sms("ten_day_challenge", ["{name}, ten days, ten breaths, one calm crowd. We begin tomorrow: {url}"]),
      push: push("ten_day_challenge", [["Ten days of calm", "Everybody begins tomorrow, {name}. Are you in?"]]),
      email: news("ten_day_challenge", [
        {
          subject: "Ten days of calm begin tomorrow",
          paragraphs: [
            "{name}, once a season we all breathe at the same hour, wherever we are.",
            "It costs five minutes a day.",
          ],
          todo: "I am in",
        },
      ]),
    },
  },
];

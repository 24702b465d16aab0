import { countOf } from "./statistics.ts";

/** What counts as which outcome of a message, channel by channel. */
export const CHANNELS = [
  {
    name: "push",
    label: "Push",
    path: "/push",
    sends: "push_tickets",
    ends: "push_receipts",
    sent: ["succeeded"],
    delivered: { sends: [], ends: ["succeeded"], less: [] },
    failed: {
      sends: [
        "abandoned",
        "failed_due_to_device_not_registered",
        "failed_due_to_client_error_other",
        "failed_due_to_internal_error",
      ],
      ends: [
        "abandoned",
        "failed_due_to_device_not_registered",
        "failed_due_to_message_too_big",
        "failed_due_to_message_rate_exceeded",
        "failed_due_to_mismatched_sender_id",
        "failed_due_to_invalid_credentials",
        "failed_due_to_client_error_other",
        "failed_due_to_internal_error",
      ],
    },
  },
  {
    name: "sms",
    label: "SMS",
    path: "/sms",
    sends: "sms_send",
    ends: "sms_events",
    sent: ["succeeded_pending", "succeeded_immediate"],
    // News of success come more than once of a text, its end comes once; those that failed are among the ends.
    delivered: { sends: ["succeeded_immediate"], ends: ["removed"], less: ["failed"] },
    failed: {
      sends: [
        "abandoned",
        "failed_due_to_application_error_other",
        "failed_due_to_client_error_other",
        "failed_due_to_internal_error",
      ],
      ends: ["failed"],
    },
  },
  {
    name: "email",
    label: "Email",
    path: "/email",
    sends: "email_send",
    ends: "email_events",
    sent: ["accepted"],
    delivered: { sends: [], ends: ["succeeded"], less: [] },
    failed: { sends: ["abandoned", "failed_permanently"], ends: ["bounced", "complaint"] },
  },
] as const;

export const FAMILIES = [
  ...CHANNELS.flatMap(({ sends, ends }) => [sends, ends]),
  "touch_links",
  "daily_reminders",
] as const;

export interface ChannelToday {
  readonly name: (typeof CHANNELS)[number]["name"];
  readonly label: string;
  readonly path: string;
  readonly queued: number;
  readonly sent: number;
  readonly delivered: number;
  readonly failed: number;
}

type Counts = Readonly<Record<string, unknown>>;
type Channel = (typeof CHANNELS)[number];
type Family = Channel["sends" | "ends"];
type Series = (family: Family, ...events: readonly string[]) => readonly number[];

/** What became of a channel's messages day by day, from what its families counted. */
export function outcomesOf({ sends, ends, delivered, failed }: Channel, series: Series) {
  const told = series(ends, ...delivered.ends);
  const atOnce = series(sends, ...delivered.sends);
  const less = series(ends, ...delivered.less);
  const sooner = series(sends, ...failed.sends);
  const later = series(ends, ...failed.ends);
  return {
    delivered: told.map((count, day) => Math.max(0, count + (atOnce[day] ?? 0) - (less[day] ?? 0))),
    failed: later.map((count, day) => count + (sooner[day] ?? 0)),
  };
}

/** The same of today alone, with what was queued and sent. */
export function todayOf(today: Readonly<Record<string, Counts | undefined>>): readonly ChannelToday[] {
  return CHANNELS.map((channel) => {
    const { name, label, path, sends, sent } = channel;
    const { delivered, failed } = outcomesOf(channel, (family, ...events) => [countOf(today[family], ...events)]);
    return {
      name,
      label,
      path,
      queued: countOf(today[sends], "queued"),
      sent: countOf(today[sends], ...sent),
      delivered: delivered[0] ?? 0,
      failed: failed[0] ?? 0,
    };
  });
}

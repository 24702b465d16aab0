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
    delivered: { sends: [], ends: ["succeeded"] },
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
    delivered: { sends: ["succeeded_immediate"], ends: ["succeeded"] },
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
    delivered: { sends: [], ends: ["succeeded"] },
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

/** What became of each channel's messages today, from what its families counted. */
export function todayOf(today: Readonly<Record<string, Counts | undefined>>): readonly ChannelToday[] {
  return CHANNELS.map(({ name, label, path, sends, ends, sent, delivered, failed }) => ({
    name,
    label,
    path,
    queued: countOf(today[sends], "queued"),
    sent: countOf(today[sends], ...sent),
    delivered: countOf(today[sends], ...delivered.sends) + countOf(today[ends], ...delivered.ends),
    failed: countOf(today[sends], ...failed.sends) + countOf(today[ends], ...failed.ends),
  }));
}

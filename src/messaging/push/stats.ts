import { dailyStats } from "../../mechanisms/dated-counters/index.ts";
import { pushTokensCreatedBefore } from "../contacts/service.ts";

const shared = { keysFamily: "push", origin: "documented", rotation: "quarter_past" } as const;

const DELETED = [
  "deleted_due_to_user_deletion",
  "deleted_due_to_unrecognized_ticket",
  "deleted_due_to_unrecognized_receipt",
  "deleted_due_to_token_limit",
] as const;

/** What happens to push tokens, dated by the moment it happens. */
export const pushTokenStats = dailyStats({
  ...shared,
  family: "push_tokens",
  title: "Push tokens",
  table: "push_token_stats",
  held: 1,
  plots: [
    { title: "How tokens come and go", type: "bars", series: ["created", "reassigned", "refreshed", ...DELETED] },
    { title: "Tokens there are", type: "line", series: ["total"] },
  ],
  alias: { daily: "/notifs/daily_push_tokens", partial: "/notifs/todays_push_token_stats" },
  events: {
    created: {},
    reassigned: {},
    refreshed: {},
    deleted_due_to_user_deletion: {},
    deleted_due_to_unrecognized_ticket: {},
    deleted_due_to_unrecognized_receipt: {},
    deleted_due_to_token_limit: {},
  },
  computed: {
    columns: ["total"],
    read: async (tx, date, calendar) => ({ total: await pushTokensCreatedBefore(tx, calendar.startOf(date + 1)) }),
  },
});

/** Tries that may pass: each of them is followed by another one, or by giving up. */
const PASSING = [
  "failed_due_to_client_error_429",
  "failed_due_to_server_error",
  "failed_due_to_network_error",
] as const;

/** Tries to send. Everything about one notification counts on the day it was queued. */
export const pushTicketStats = dailyStats({
  ...shared,
  family: "push_tickets",
  title: "Push tickets",
  table: "push_ticket_stats",
  held: 2,
  plots: [
    {
      title: "What became of tries",
      type: "stacked",
      series: [
        "succeeded",
        "abandoned",
        "failed_due_to_device_not_registered",
        "failed_due_to_client_error_other",
        "failed_due_to_internal_error",
        ...PASSING,
      ],
    },
    { title: "Queued and tried again", type: "line", series: ["queued", "retried"] },
  ],
  alias: { daily: "/notifs/daily_push_tickets", partial: "/notifs/partial_push_ticket_stats" },
  events: {
    queued: {},
    succeeded: {},
    abandoned: {},
    retried: {},
    failed_due_to_device_not_registered: {},
    failed_due_to_client_error_429: {},
    failed_due_to_client_error_other: {},
    failed_due_to_server_error: {},
    failed_due_to_internal_error: {},
    failed_due_to_network_error: {},
  },
  balances: [
    {
      sum: ["queued", "retried"],
      equals: [
        "succeeded",
        "failed_due_to_device_not_registered",
        "failed_due_to_client_error_other",
        "failed_due_to_internal_error",
        ...PASSING,
      ],
    },
    { sum: ["retried", "abandoned"], equals: PASSING },
  ],
});

const FAILED_RECEIPTS = [
  "failed_due_to_device_not_registered",
  "failed_due_to_message_too_big",
  "failed_due_to_message_rate_exceeded",
  "failed_due_to_mismatched_sender_id",
  "failed_due_to_invalid_credentials",
  "failed_due_to_not_ready_yet",
  "failed_due_to_client_error_other",
  "failed_due_to_internal_error",
  ...PASSING,
] as const;

/** Tries to learn what became of it, on the day that the notification was queued. */
export const pushReceiptStats = dailyStats({
  ...shared,
  family: "push_receipts",
  title: "Push receipts",
  table: "push_receipt_stats",
  held: 2,
  plots: [
    {
      title: "What became of notifications",
      type: "stacked",
      series: [
        "succeeded",
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
    { title: "Asked again", type: "line", series: ["retried", "failed_due_to_not_ready_yet", ...PASSING] },
  ],
  alias: { daily: "/notifs/daily_push_receipts", partial: "/notifs/partial_push_receipt_stats" },
  events: {
    succeeded: {},
    abandoned: {},
    retried: {},
    failed_due_to_device_not_registered: {},
    failed_due_to_message_too_big: {},
    failed_due_to_message_rate_exceeded: {},
    failed_due_to_mismatched_sender_id: {},
    failed_due_to_invalid_credentials: {},
    failed_due_to_not_ready_yet: {},
    failed_due_to_client_error_429: {},
    failed_due_to_client_error_other: {},
    failed_due_to_server_error: {},
    failed_due_to_internal_error: {},
    failed_due_to_network_error: {},
  },
  balances: [{ sum: ["retried", "abandoned"], equals: ["failed_due_to_not_ready_yet", ...PASSING] }],
  beside: {
    stats: pushTicketStats,
    balances: [{ sum: ["push_tickets.succeeded", "retried"], equals: ["succeeded", ...FAILED_RECEIPTS] }],
  },
});

export const stats = [pushTokenStats, pushTicketStats, pushReceiptStats];
export type TicketEvent = keyof (typeof pushTicketStats)["events"];
export type ReceiptEvent = keyof (typeof pushReceiptStats)["events"];

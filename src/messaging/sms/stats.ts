import { dailyStats } from "../../mechanisms/dated-counters/index.ts";

/** What became of texts, dated by the day on which they were queued first. */
export const smsSendStats = dailyStats({
  family: "sms_send",
  keysFamily: "sms",
  title: "sent texts",
  table: "sms_send_stats",
  held: 2,
  origin: "documented",
  channel: "sms_sends",
  cachePrefix: "daily_sms_sends",
  plots: [
    {
      title: "What became of tries",
      type: "stacked",
      series: [
        "succeeded_pending",
        "succeeded_immediate",
        "abandoned",
        "failed_due_to_application_error_ratelimit",
        "failed_due_to_application_error_other",
        "failed_due_to_client_error_other",
        "failed_due_to_server_error",
        "failed_due_to_client_error_429",
        "failed_due_to_internal_error",
        "failed_due_to_network_error",
      ],
    },
    { title: "Queued and tried again", type: "line", series: ["queued", "retried"] },
    { title: "Errors by the provider's code", type: "stacked", breakdown: "failed_due_to_application_error_other" },
  ],
  alias: { daily: "/sms/daily_sms_sends", partial: "/sms/partial_sms_send_stats" },
  events: {
    queued: {},
    retried: {},
    abandoned: {},
    succeeded_pending: { by: "{status}" },
    succeeded_immediate: { by: "{status}" },
    failed_due_to_application_error_ratelimit: { by: "{code}" },
    failed_due_to_application_error_other: { by: "{code}" },
    failed_due_to_client_error_other: { by: "{http_status}" },
    failed_due_to_server_error: { by: "{http_status}" },
    failed_due_to_client_error_429: {},
    failed_due_to_internal_error: {},
    failed_due_to_network_error: {},
  },
  balances: [
    // Every try ends in one way, and every failure that may pass is decided.
    {
      sum: ["queued", "retried"],
      equals: [
        "succeeded_pending",
        "succeeded_immediate",
        "failed_due_to_application_error_ratelimit",
        "failed_due_to_application_error_other",
        "failed_due_to_client_error_other",
        "failed_due_to_server_error",
        "failed_due_to_client_error_429",
        "failed_due_to_internal_error",
        "failed_due_to_network_error",
      ],
    },
    {
      sum: ["retried", "abandoned"],
      equals: [
        "failed_due_to_application_error_ratelimit",
        "failed_due_to_client_error_429",
        "failed_due_to_server_error",
        "failed_due_to_network_error",
      ],
    },
  ],
});

/** Silence and what was done about it: found and decided on the day of queueing, asking on the day of asking. */
export const smsPollingStats = dailyStats({
  family: "sms_polling",
  keysFamily: "sms",
  title: "silent texts",
  table: "sms_polling_stats",
  held: 2,
  origin: "documented",
  plots: [
    {
      title: "Silence, and what was done about it",
      type: "stacked",
      series: ["detected_stale", "queued_for_recovery", "abandoned"],
    },
    {
      title: "What asking brought",
      type: "stacked",
      series: [
        "received",
        "error_client_404",
        "error_client_429",
        "error_client_other",
        "error_server",
        "error_network",
        "error_internal",
      ],
    },
  ],
  alias: { daily: "/sms/daily_sms_polling", partial: "/sms/partial_sms_polling_stats" },
  events: {
    detected_stale: { by: "{status}" },
    queued_for_recovery: { by: "{previous_failures}" },
    abandoned: { by: "{previous_failures}" },
    attempted: {},
    received: { by: "{old_status}:{new_status}" },
    error_client_404: {},
    error_client_429: {},
    error_client_other: { by: "{http_status}" },
    error_server: { by: "{http_status}" },
    error_network: {},
    error_internal: {},
  },
  balances: [
    {
      sum: ["attempted"],
      equals: [
        "received",
        "error_client_404",
        "error_client_429",
        "error_client_other",
        "error_server",
        "error_network",
        "error_internal",
      ],
    },
  ],
});

/** News that was worked in, dated when it was. */
export const smsEventStats = dailyStats({
  family: "sms_events",
  keysFamily: "sms",
  title: "news of texts",
  table: "sms_event_stats",
  held: 2,
  origin: "documented",
  plots: [
    { title: "News of texts that are known, and of others", type: "line", series: ["found", "unknown"] },
    { title: "News by status", type: "stacked", breakdown: "attempted" },
  ],
  alias: { daily: "/sms/daily_sms_events", partial: "/sms/partial_sms_event_stats" },
  events: {
    attempted: { by: "{status}" },
    received_via_webhook: { by: "{status}" },
    received_via_polling: { by: "{status}" },
    pending: { by: "{status}" },
    succeeded: { by: "{status}" },
    failed: { by: "{status}" },
    found: {},
    updated: { by: "{old_status}:{new_status}" },
    duplicate: { by: "{status}" },
    out_of_order: { by: "{stored_status}:{event_status}" },
    removed: { by: "{old_status}:{new_status}" },
    unknown: { by: "{status}" },
  },
  balances: [
    { sum: ["attempted"], equals: ["received_via_webhook", "received_via_polling"] },
    { sum: ["attempted"], equals: ["pending", "succeeded", "failed"] },
    { sum: ["attempted"], equals: ["found", "unknown"] },
    { sum: ["found"], equals: ["updated", "duplicate", "out_of_order", "removed"] },
  ],
});

/** Status webhooks by how they were taken, dated at arrival. */
export const smsWebhookStats = dailyStats({
  family: "sms_webhooks",
  keysFamily: "sms",
  title: "webhooks about texts",
  table: "sms_webhook_stats",
  held: 2,
  // Whoever looks into an attack finds the last days as they were counted.
  keep: 604_800,
  origin: "documented",
  channel: false,
  plots: [
    { title: "How webhooks were taken", type: "line", series: ["received", "verified", "accepted"] },
    {
      title: "Why webhooks were refused",
      type: "stacked",
      series: [
        "unprocessable",
        "signature_missing",
        "signature_invalid",
        "body_read_error",
        "body_max_size_exceeded",
        "body_parse_error",
      ],
    },
  ],
  alias: { daily: "/sms/daily_sms_webhooks", partial: "/sms/partial_sms_webhook_stats" },
  events: {
    received: {},
    verified: {},
    accepted: {},
    unprocessable: {},
    signature_missing: {},
    signature_invalid: {},
    body_read_error: {},
    body_max_size_exceeded: {},
    body_parse_error: {},
  },
  balances: [
    {
      sum: ["received"],
      equals: [
        "verified",
        "signature_missing",
        "signature_invalid",
        "body_read_error",
        "body_max_size_exceeded",
        "body_parse_error",
      ],
    },
    { sum: ["verified"], equals: ["accepted", "unprocessable"] },
  ],
});

export const stats = [smsSendStats, smsPollingStats, smsEventStats, smsWebhookStats];

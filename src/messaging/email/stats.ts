import { dailyStats } from "../../mechanisms/dated-counters/index.ts";

/** Sums that hold at every moment, since what they count is counted in one step. */
export const atOnce = {
  send: [{ sum: ["attempted"], equals: ["accepted", "failed_permanently", "failed_transiently"] }],
  events: [{ sum: ["attempted"], equals: ["succeeded", "bounced", "complaint"] }],
  webhooks: [
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
} as const;

/** What became of mails, dated by the day on which they were queued first. */
export const emailSendStats = dailyStats({
  family: "email_send",
  keysFamily: "email",
  title: "sent mails",
  table: "email_send_stats",
  held: 2,
  origin: "documented",
  channel: "email_send",
  cachePrefix: "daily_email_send",
  plots: [
    { title: "From the queue to the provider", type: "line", series: ["queued", "attempted", "templated", "accepted"] },
    { title: "Mails by template", type: "stacked", breakdown: "accepted" },
    { title: "Failures that stay", type: "stacked", breakdown: "failed_permanently" },
    { title: "Failures that pass", type: "stacked", breakdown: "failed_transiently" },
  ],
  alias: { daily: "/email/daily_email_send", partial: "/email/partial_email_send_stats" },
  events: {
    queued: {},
    attempted: {},
    templated: {},
    accepted: { by: "{template}" },
    failed_permanently: { by: "{step}:{error}" },
    failed_transiently: { by: "{step}:{error}" },
    retried: {},
    abandoned: {},
  },
  // When a day is over, every failure that may pass is decided, too.
  balances: [...atOnce.send, { sum: ["failed_transiently"], equals: ["retried", "abandoned"] }],
});

/** News that was worked in: found ones on the day of queueing, others when they were worked in. */
export const emailEventStats = dailyStats({
  family: "email_events",
  keysFamily: "email",
  title: "news of mails",
  table: "email_event_stats",
  held: 2,
  origin: "documented",
  channel: "email_events",
  cachePrefix: "daily_email_events",
  plots: [
    { title: "What became of mails", type: "stacked", series: ["succeeded", "bounced", "complaint"] },
    { title: "Bounces by kind", type: "stacked", breakdown: "bounced" },
  ],
  alias: { daily: "/email/daily_email_events", partial: "/email/partial_email_event_stats" },
  events: {
    attempted: { by: "{found}" },
    succeeded: { by: "{found}" },
    bounced: { by: "{found}:{type}:{subtype}" },
    complaint: { by: "{found}:{type}" },
  },
  balances: atOnce.events,
});

/** Notifications by how they were taken, dated at arrival. */
export const emailWebhookStats = dailyStats({
  family: "email_webhooks",
  keysFamily: "email",
  title: "webhooks about mails",
  table: "email_webhook_stats",
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
  alias: { daily: "/email/daily_email_webhooks", partial: "/email/partial_email_webhook_stats" },
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
  balances: atOnce.webhooks,
});

export const stats = [emailSendStats, emailEventStats, emailWebhookStats];

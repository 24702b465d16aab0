import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import { ChartDesk } from "../../src/insight/statistics/chart-desk.ts";
import { migrate } from "../../src/kernel/sql/index.ts";
import { calendarOf, isoDate, rotate, statsOf } from "../../src/mechanisms/dated-counters/index.ts";
import { migrationPlan } from "../../src/surfaces/house.ts";
import { openTestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";

/**
 * The statistics of the channels as others know them: tables, channels and addresses are an interface. `*` marks an
 * event with a breakdown.
 */
const WEBHOOKS =
  "received verified accepted unprocessable signature_missing signature_invalid body_read_error body_max_size_exceeded body_parse_error";
const FAMILIES: Readonly<
  Record<
    string,
    {
      table: string;
      held: number;
      events: string;
      cache: string;
      path: string;
      channel?: string;
      keep?: number;
      early?: true;
    }
  >
> = {
  push_tokens: {
    table: "push_token_stats",
    held: 1,
    early: true,
    channel: "push_tokens",
    cache: "daily_push_tokens",
    path: "/notifs/daily_push_tokens",
    events:
      "created reassigned refreshed deleted_due_to_user_deletion deleted_due_to_unrecognized_ticket deleted_due_to_unrecognized_receipt deleted_due_to_token_limit",
  },
  push_tickets: {
    table: "push_ticket_stats",
    held: 2,
    early: true,
    channel: "push_tickets",
    cache: "daily_push_tickets",
    path: "/notifs/daily_push_tickets",
    events:
      "queued succeeded abandoned retried failed_due_to_device_not_registered failed_due_to_client_error_429 failed_due_to_client_error_other failed_due_to_server_error failed_due_to_internal_error failed_due_to_network_error",
  },
  push_receipts: {
    table: "push_receipt_stats",
    held: 2,
    early: true,
    channel: "push_receipts",
    cache: "daily_push_receipts",
    path: "/notifs/daily_push_receipts",
    events:
      "succeeded abandoned retried failed_due_to_device_not_registered failed_due_to_message_too_big failed_due_to_message_rate_exceeded failed_due_to_mismatched_sender_id failed_due_to_invalid_credentials failed_due_to_not_ready_yet failed_due_to_client_error_429 failed_due_to_client_error_other failed_due_to_server_error failed_due_to_internal_error failed_due_to_network_error",
  },
  sms_send: {
    table: "sms_send_stats",
    held: 2,
    // The keys say sms_send, the channel says sms_sends.
    channel: "sms_sends",
    cache: "daily_sms_sends",
    path: "/sms/daily_sms_sends",
    events:
      "queued retried abandoned succeeded_pending* succeeded_immediate* failed_due_to_application_error_ratelimit* failed_due_to_application_error_other* failed_due_to_client_error_429 failed_due_to_client_error_other* failed_due_to_server_error* failed_due_to_internal_error failed_due_to_network_error",
  },
  sms_polling: {
    table: "sms_polling_stats",
    held: 2,
    channel: "sms_polling",
    cache: "daily_sms_polling",
    path: "/sms/daily_sms_polling",
    events:
      "detected_stale* queued_for_recovery* abandoned* attempted received* error_client_404 error_client_429 error_client_other* error_server* error_network error_internal",
  },
  sms_events: {
    table: "sms_event_stats",
    held: 2,
    channel: "sms_events",
    cache: "daily_sms_events",
    path: "/sms/daily_sms_events",
    events:
      "attempted* received_via_webhook* received_via_polling* pending* succeeded* failed* found updated* duplicate* out_of_order* removed* unknown*",
  },
  sms_webhooks: {
    table: "sms_webhook_stats",
    held: 2,
    keep: 604_800,
    cache: "daily_sms_webhooks",
    path: "/sms/partial_sms_webhook_stats",
    events: WEBHOOKS,
  },
  email_send: {
    table: "email_send_stats",
    held: 2,
    channel: "email_send",
    cache: "daily_email_send",
    path: "/email/daily_email_send",
    events: "queued attempted templated accepted* failed_permanently* failed_transiently* retried abandoned",
  },
  email_events: {
    table: "email_event_stats",
    held: 2,
    channel: "email_events",
    cache: "daily_email_events",
    path: "/email/daily_email_events",
    events: "attempted* succeeded* bounced* complaint*",
  },
  email_webhooks: {
    table: "email_webhook_stats",
    held: 2,
    keep: 604_800,
    cache: "daily_email_webhooks",
    path: "/email/partial_email_webhook_stats",
    events: WEBHOOKS,
  },
  touch_send: {
    table: "touch_send_stats",
    held: 2,
    channel: "touch_send",
    cache: "daily_touch_send",
    path: "/touch/daily_touch_send",
    events: "queued attempted* reachable* unreachable* stale",
  },
  touch_stale: {
    table: "touch_stale_stats",
    held: 2,
    channel: "touch_stale",
    cache: "daily_touch_stale",
    path: "/touch/daily_touch_stale",
    events: "stale",
  },
  touch_links: {
    table: "touch_link_stats",
    held: 2,
    channel: "touch_links",
    cache: "daily_touch_links",
    path: "/touch/daily_touch_link_stats",
    events:
      "created persist_queue_attempts persist_queue_failed* persists_queued* persisted* persisted_in_failed_batch persists_failed* click_attempts clicks_buffered* clicks_direct_to_db* clicks_delayed* clicks_failed* persisted_clicks* persisted_clicks_in_failed_batch persist_click_failed delayed_clicks_attempted delayed_clicks_persisted* delayed_clicks_delayed delayed_clicks_failed* abandons_attempted abandoned* abandon_failed* leaked* robots*",
  },
  daily_reminders: {
    table: "daily_reminder_stats",
    held: 3,
    channel: "daily_reminders",
    cache: "daily_reminders",
    path: "/daily_reminders/daily_reminders",
    events:
      "attempted overdue skipped_assigning_time* time_assigned* sends_attempted sends_lost skipped_sending* links sent*",
  },
  daily_reminder_registrations: {
    table: "daily_reminder_registration_stats",
    held: 2,
    channel: "daily_reminder_registrations",
    cache: "daily_reminder_registrations",
    path: "/daily_reminders/daily_reminder_registrations",
    events: "subscribed* unsubscribed*",
  },
  contact_methods: {
    table: "contact_method_stats",
    held: 2,
    channel: "contact_methods",
    cache: "daily_contact_methods",
    path: "/contact_methods/contact_method_stats",
    events: "created* deleted* verified* enabled_notifications* disabled_notifications*",
  },
};

const declared = new Map(domains.flatMap(({ stats = [] }) => stats.map((family) => [family.name, family] as const)));

test.each(Object.entries(FAMILIES))(
  "the statistics %s have the events, the table, the channel and the addresses that others rely on",
  (name, wanted) => {
    const family = declared.get(name)!;
    const events = Object.entries(family.events).map(([event, { by }]) => (by === undefined ? event : `${event}*`));
    expect(events.sort()).toEqual(wanted.events.split(" ").sort());
    expect(family).toMatchObject({ table: wanted.table, held: wanted.held, cachePrefix: wanted.cache });
    expect(family.keep).toBe(wanted.keep);
    expect(family.rotation).toBe(wanted.early ? "quarter_past" : "nightly");
    expect(family.channel).toBe(wanted.channel && `ps:stats:${wanted.channel}:daily`);
    expect([...family.alias.daily, ...family.alias.partial]).toContain(wanted.path);
    expect(family.day(20_000)).toBe(`stats:${name}:daily:20000`);
    expect(family.earliest()).toBe(`stats:${name}:daily:earliest`);
    const [broken] = Object.keys(family.events).filter((event) => family.events[event]!.by !== undefined);
    if (broken) expect(family.extra(20_000, broken)).toBe(`stats:${name}:daily:20000:extra:${broken}`);
  },
);

test("every family that a room declares is counted, stored with all of its events, charted, and told to other instances", async () => {
  // Whether rooms count their families is not proven here.
  const house = await openTestContext({ sql: true, staged: true });
  try {
    await migrate(house.sql, migrationPlan());
    const families = [...declared.values()];
    const calendar = calendarOf(house);
    const today = calendar.unixDate(house.clock.now());
    for (const family of families) {
      const stats = statsOf(house);
      for (const [at, [event, { by }]] of Object.entries(family.events).entries())
        stats.incr(family, event, { by: at + 1, ...(by === undefined ? {} : { extra: "some:key" }) } as never);
      await stats.store();
    }
    const listener = new ChartDesk(house.process());
    await listener.listen(families);
    house.clock.jump(calendar.startOf(today + 4) + 3 * 3600 - house.clock.now());
    const desk = new ChartDesk(house);
    for (const family of families) {
      expect(await rotate(house, family, { calendar }), family.name).toMatchObject({ stop: "list_exhausted" });
      const { blob, provisional } = await desk.chart(family, 30);
      const chart = JSON.parse(gunzipSync(blob).toString()) as Record<string, number[]> & { labels: string[] };
      const place = chart.labels.indexOf(isoDate(today));
      expect(provisional, family.name).toBe(false);
      for (const [at, event] of Object.keys(family.events).entries())
        expect(chart[event]![place], `${family.name} ${event}`).toBe(at + 1);
    }
    const told = families.filter(({ channel }) => channel !== undefined);
    await eventually(() => listener.atHand === told.length, "a frame of every family");
    await listener.close();
  } finally {
    await house.close();
  }
}, 120_000);

import type { Answer } from "../../api/index.ts";

export type Knobs = Answer<"get", "/api/1/sandbox/knobs">;
export type Owner = keyof Knobs;

/** How a knob is turned. */
export type Control =
  | { readonly kind: "share" }
  | { readonly kind: "number"; readonly unit: string; readonly max: number }
  | { readonly kind: "limit"; readonly unit: string }
  | { readonly kind: "flag" }
  | { readonly kind: "times" }
  | { readonly kind: "choice"; readonly of: readonly string[]; readonly none?: string }
  | { readonly kind: "failNext" }
  | { readonly kind: "outage" }
  | { readonly kind: "shares"; readonly of: readonly string[] }
  /** Anything else, as JSON; the example says its shape. */
  | { readonly kind: "json"; readonly example: string };

export interface KnobPlan {
  readonly label: string;
  readonly doc: string;
  readonly control: Control;
  /** Its value while everything works. */
  readonly calm: unknown;
}

/** Every knob there is: one that is missing here does not compile. */
export type KnobPlans = { readonly [O in Owner]: { readonly [K in keyof Knobs[O]]-?: KnobPlan } };

const share = (label: string, doc: string): KnobPlan => ({ label, doc, control: { kind: "share" }, calm: 0 });
const flag = (label: string, doc: string): KnobPlan => ({ label, doc, control: { kind: "flag" }, calm: false });
const times = (label: string, doc: string): KnobPlan => ({ label, doc, control: { kind: "times" }, calm: false });
const limit = (label: string, doc: string, unit: string): KnobPlan => ({
  label,
  doc,
  control: { kind: "limit", unit },
  calm: null,
});
const seconds = (label: string, doc: string, calm: number): KnobPlan => ({
  label,
  doc,
  control: { kind: "number", unit: "s", max: 604_800 },
  calm,
});
const latency: KnobPlan = {
  label: "Latency",
  doc: "Every request takes this long",
  control: { kind: "number", unit: "ms", max: 600_000 },
  calm: 0,
};
const failNext: KnobPlan = {
  label: "Fail the next requests",
  doc: "So many requests are answered with this status",
  control: { kind: "failNext" },
  calm: null,
};
const outage: KnobPlan = {
  label: "Outage",
  doc: "Everything answers 503 until it is over",
  control: { kind: "outage" },
  calm: null,
};
const shares = (label: string, doc: string, of: readonly string[]): KnobPlan => ({
  label,
  doc,
  control: { kind: "shares", of },
  calm: {},
});
const map = (label: string, doc: string, example: string): KnobPlan => ({
  label,
  doc,
  control: { kind: "json", example },
  calm: {},
});

const REQUESTS = ["400", "429", "500", "503", "reset", "silence"];

export const KNOB_PLANS: KnobPlans = {
  expo: {
    failNext,
    errorRate: share("Error rate", "Share of requests that answer 500"),
    latencyMs: latency,
    outage,
    ratePerSecond: limit("Rate limit", "More notifications a second are answered 429", "a second"),
    dropConnectionAfterAccept: times("Cut after accepting", "Takes the messages, then cuts the answer"),
    receiptDelaySeconds: seconds("Receipts after", "How long receipts take to appear", 5),
    malformed: {
      label: "Malformed answers",
      doc: "What is wrong with good answers",
      control: { kind: "choice", of: ["json", "structure", "count", "errors", "item"], none: "nothing" },
      calm: null,
    },
    ticketErrors: map("Ticket errors by token", "Refused at once", '{"ExponentPushToken[…]": "DeviceNotRegistered"}'),
    receiptErrors: map("Receipt errors by token", "Refused later", '{"ExponentPushToken[…]": "MessageTooBig"}'),
    receiptNever: {
      label: "Receipts that never come",
      doc: "For these tokens",
      control: { kind: "json", example: '["ExponentPushToken[…]"]' },
      calm: [],
    },
    projects: map("Projects by token", "Several in one request are refused", '{"ExponentPushToken[…]": "@me/app"}'),
    faultRates: shares("Faults of requests", "Several kinds at once, each with its share", [
      ...REQUESTS,
      "cut_after_accept",
      "malformed_json",
      "malformed_structure",
      "malformed_count",
    ]),
    messageFaultRates: shares("Faults of messages", "Share of messages that meet each", [
      "ticket_error",
      "receipt_error",
      "receipt_never",
    ]),
  },
  twilio: {
    failNext,
    errorRate: share("Error rate", "Share of requests that answer 500"),
    latencyMs: latency,
    outage,
    ratePerSecond: limit("Rate limit", "More requests a second are answered 429", "a second"),
    dropConnectionAfterCreate: times("Cut after creating", "Takes the text, then cuts the answer"),
    stepSeconds: seconds("Seconds a step", "From accepted to queued, sending, sent, delivered", 1),
    stuckAt: {
      label: "Stuck at",
      doc: "The status that texts never leave",
      control: { kind: "choice", of: ["accepted", "queued", "sending", "sent", "delivered"], none: "nowhere" },
      calm: null,
    },
    callbacks: {
      label: "Callbacks",
      doc: "How the status is reported",
      control: {
        kind: "choice",
        of: ["on", "off", "delay", "duplicate", "reorder", "badSignature", "blankField"],
      },
      calm: "on",
    },
    callbackDelaySeconds: seconds("Delayed callbacks come after", "While callbacks are delayed", 30),
    malformed: {
      label: "Malformed answers",
      doc: "What is wrong with good answers",
      control: { kind: "choice", of: ["json", "structure"], none: "nothing" },
      calm: null,
    },
    finalStatus: map(
      "How texts to a number end",
      "By number",
      '{"+15551234567": {"status": "undelivered", "code": 30003}}',
    ),
    deleteResource: {
      label: "Texts that are gone",
      doc: "A sid, or several, that answer 404",
      control: { kind: "json", example: '["SM…"]' },
      calm: null,
    },
    faultRates: shares("Faults of requests", "Several kinds at once, each with its share", [
      ...REQUESTS,
      "cut_after_create",
      "malformed_json",
      "malformed_structure",
    ]),
    messageFaultRates: shares("Faults of texts", "Share of texts that end so", [
      "failed",
      "undelivered",
      "canceled",
      "stuck",
    ]),
    callbackFaultRates: shares("Faults of callbacks", "While callbacks are on", [
      "off",
      "delay",
      "duplicate",
      "reorder",
      "badSignature",
      "blankField",
    ]),
  },
  ses: {
    fail_next: {
      label: "Fail the next mails",
      doc: "So many meet the error chosen beside",
      control: { kind: "number", unit: "mails", max: 1_000_000 },
      calm: 0,
    },
    error_rate: share("Error rate", "Share of mails that meet the error"),
    error: {
      label: "The error",
      doc: "What failing mails meet",
      control: {
        kind: "choice",
        of: [
          "500",
          "503",
          "throttle",
          "credentials",
          "reset",
          "timeout-after-accept",
          "no-message-id",
          "MessageRejected",
        ],
      },
      calm: "500",
    },
    latency_ms: latency,
    outage,
    max_per_second: limit("Rate limit", "More mails a second are throttled", "a second"),
    quota_24h: limit("Quota", "More mails in 24 hours are refused", "in 24 h"),
    notify_delay_s: seconds("Notifications after", "How long reports take", 0),
    duplicate_notifications: {
      label: "Repeated notifications",
      doc: "Each comes so many times more",
      control: { kind: "number", unit: "times", max: 100 },
      calm: 0,
    },
    signature_version: {
      label: "Signature",
      doc: "1 is SHA-1, 2 is SHA-256",
      control: { kind: "choice", of: ["1", "2"] },
      calm: "1",
    },
    notify_before_response: flag("Notify before answering", "The report overtakes the answer"),
    drop_notifications: flag("Lose notifications", "No report arrives"),
    reorder: flag("Reorder", "Reports come in the wrong order"),
    bad_signature: flag("Bad signature", "Reports are forged"),
    wrong_topic: flag("Wrong topic", "Reports come from another topic"),
    foreign_cert_url: flag("Foreign certificate", "The certificate lies elsewhere"),
    oversized_body: flag("Oversized report", "Reports are too large"),
    unknown_type: flag("Unknown type", "Reports of a kind that nobody knows"),
    rules: {
      label: "Outcomes by address",
      doc: "The first pattern that fits decides",
      control: { kind: "json", example: '[{"pattern": "*@example.com", "outcome": "bounce"}]' },
      calm: [],
    },
    fault_rates: shares("Faults of sending", "Several errors at once, each with its share", [
      "500",
      "503",
      "throttle",
      "credentials",
      "reset",
      "timeout-after-accept",
      "no-message-id",
    ]),
    mail_fault_rates: shares("What becomes of mails", "Share of mails that end so", [
      "bounce",
      "ooto",
      "complaint",
      "silent",
    ]),
    notice_fault_rates: shares("Faults of notifications", "Share of reports that suffer so", [
      "dropped",
      "duplicated",
      "reordered",
      "bad_signature",
      "wrong_topic",
      "foreign_cert_url",
      "oversized_body",
      "unknown_type",
    ]),
  },
  recipients: {
    previewBots: {
      label: "Preview programs",
      doc: "So many programs fetch each link of each message",
      control: { kind: "number", unit: "a link", max: 100 },
      calm: 0,
    },
    deliver: map(
      "Fates by receiver",
      "What becomes of messages to an address, number or token",
      '{"ada@example.com": {"fail": "permanent"}, "+15551234567": "never"}',
    ),
    dropCallbacks: flag(
      "Lose callbacks",
      "Channels finish their messages, and touches never hear of it: they fail when they have waited for too long",
    ),
  },
};

export const OWNERS: readonly { readonly owner: Owner; readonly label: string; readonly doc: string }[] = [
  { owner: "expo", label: "Push", doc: "The simulated Expo" },
  { owner: "twilio", label: "Texts", doc: "The simulated Twilio" },
  { owner: "ses", label: "Mail", doc: "The simulated Amazon SES, and the mail server" },
  { owner: "recipients", label: "People", doc: "Those at the other end" },
];

/** How many knobs of an owner are not as they are while everything works. */
export function turnedOf(knobs: Knobs | undefined, owner: Owner): number {
  if (!knobs) return 0;
  const plans = KNOB_PLANS[owner] as Readonly<Record<string, KnobPlan>>;
  return Object.entries(knobs[owner]).filter(([name, value]) => isTurned(plans[name], value)).length;
}

export function isTurned(plan: KnobPlan | undefined, value: unknown): boolean {
  return plan !== undefined && JSON.stringify(value) !== JSON.stringify(plan.calm);
}

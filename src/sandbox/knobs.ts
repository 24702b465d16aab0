import { z } from "zod";
import { SES_ERRORS } from "./aws-errors.ts";
import { RecipientKnobs } from "./fates.ts";
import {
  EXPO_MESSAGE_FAULTS,
  EXPO_REQUEST_FAULTS,
  Outage,
  Rate,
  ratesOf,
  SES_MAIL_FAULTS,
  SES_NOTICE_FAULTS,
  TWILIO_CALLBACK_FAULTS,
  TWILIO_MESSAGE_FAULTS,
  TWILIO_REQUEST_FAULTS,
} from "./faults.ts";

const Milliseconds = z.number().min(0).max(600_000);
const Seconds = z.number().min(0).max(604_800);
const Count = z.int().min(0).max(1_000_000);
const Limit = z.int().min(1).max(1_000_000).nullable();
/** Always, or this many times more. */
const Times = z.union([z.boolean(), Count]);
const Status = z.int().min(300).max(599);

const EXPO_ERRORS = [
  "DeviceNotRegistered",
  "MessageTooBig",
  "MessageRateExceeded",
  "MismatchSenderId",
  "InvalidCredentials",
] as const;
const ExpoError = z.union([z.enum(EXPO_ERRORS), z.string().min(1).max(64)]);

export const ExpoKnobs = z.strictObject({
  failNext: z.strictObject({ status: Status, count: Count }).nullable(),
  errorRate: Rate,
  latencyMs: Milliseconds,
  dropConnectionAfterAccept: Times,
  ticketErrors: z.record(z.string(), ExpoError),
  receiptErrors: z.record(z.string(), ExpoError),
  receiptNever: z.array(z.string()),
  receiptDelaySeconds: Seconds,
  malformed: z.enum(["json", "structure", "count", "errors", "item"]).nullable(),
  /** The project that a token belongs to; messages to several of them in one request are refused. */
  projects: z.record(z.string(), z.string().min(1).max(100)),
  ratePerSecond: Limit,
  outage: Outage,
  faultRates: ratesOf(EXPO_REQUEST_FAULTS),
  messageFaultRates: ratesOf(EXPO_MESSAGE_FAULTS),
});

export const TWILIO_WALK = ["accepted", "queued", "sending", "sent", "delivered"] as const;
export const TWILIO_ENDS = ["sent", "delivered", "read", "failed", "undelivered", "canceled"] as const;
export const CALLBACK_MODES = ["on", ...TWILIO_CALLBACK_FAULTS] as const;

export const TwilioKnobs = z.strictObject({
  /** `code` null leaves the provider's own code out of the answer. */
  failNext: z.strictObject({ status: Status, count: Count, code: z.int().nullable().optional() }).nullable(),
  errorRate: Rate,
  latencyMs: Milliseconds,
  dropConnectionAfterCreate: Times,
  stepSeconds: Seconds,
  finalStatus: z.record(z.string(), z.strictObject({ status: z.enum(TWILIO_ENDS), code: z.int().optional() })),
  stuckAt: z.enum(TWILIO_WALK).nullable(),
  callbacks: z.enum(CALLBACK_MODES),
  callbackDelaySeconds: Seconds,
  deleteResource: z.union([z.string(), z.array(z.string())]).nullable(),
  malformed: z.enum(["json", "structure"]).nullable(),
  ratePerSecond: Limit,
  outage: Outage,
  faultRates: ratesOf(TWILIO_REQUEST_FAULTS),
  messageFaultRates: ratesOf(TWILIO_MESSAGE_FAULTS),
  callbackFaultRates: ratesOf(TWILIO_CALLBACK_FAULTS),
});

export const EMAIL_OUTCOMES = ["success", "bounce", "ooto", "complaint", "suppressionlist", "silent"] as const;

export const SesKnobs = z.strictObject({
  latency_ms: Milliseconds,
  error_rate: Rate,
  error: z.enum(SES_ERRORS),
  fail_next: Count,
  max_per_second: Limit,
  quota_24h: Limit,
  notify_delay_s: Seconds,
  notify_before_response: z.boolean(),
  drop_notifications: z.boolean(),
  duplicate_notifications: z.int().min(0).max(100),
  reorder: z.boolean(),
  bad_signature: z.boolean(),
  wrong_topic: z.boolean(),
  foreign_cert_url: z.boolean(),
  oversized_body: z.boolean(),
  unknown_type: z.boolean(),
  signature_version: z.enum(["1", "2"]),
  /** The first rule whose pattern (with `*` for anything) fits an address decides its outcome. */
  rules: z.array(z.strictObject({ pattern: z.string().min(1).max(320), outcome: z.enum(EMAIL_OUTCOMES) })).max(100),
  outage: Outage,
  fault_rates: ratesOf(SES_ERRORS),
  mail_fault_rates: ratesOf(SES_MAIL_FAULTS),
  notice_fault_rates: ratesOf(SES_NOTICE_FAULTS),
});

export type ExpoKnobs = z.output<typeof ExpoKnobs>;
export type TwilioKnobs = z.output<typeof TwilioKnobs>;
export type SesKnobs = z.output<typeof SesKnobs>;

export const KnobSettings = z.object({
  expo: ExpoKnobs,
  twilio: TwilioKnobs,
  ses: SesKnobs,
  recipients: RecipientKnobs,
});
export type KnobSettings = z.output<typeof KnobSettings>;

export const KnobPatch = z.strictObject({
  expo: ExpoKnobs.partial().optional(),
  twilio: TwilioKnobs.partial().optional(),
  ses: SesKnobs.partial().optional(),
  recipients: RecipientKnobs.partial().optional(),
});
export type KnobPatch = z.input<typeof KnobPatch>;

const CALM: KnobSettings = {
  expo: {
    failNext: null,
    errorRate: 0,
    latencyMs: 0,
    dropConnectionAfterAccept: false,
    ticketErrors: {},
    receiptErrors: {},
    receiptNever: [],
    receiptDelaySeconds: 5,
    malformed: null,
    projects: {},
    ratePerSecond: null,
    outage: null,
    faultRates: {},
    messageFaultRates: {},
  },
  twilio: {
    failNext: null,
    errorRate: 0,
    latencyMs: 0,
    dropConnectionAfterCreate: false,
    stepSeconds: 1,
    finalStatus: {},
    stuckAt: null,
    callbacks: "on",
    callbackDelaySeconds: 30,
    deleteResource: null,
    malformed: null,
    ratePerSecond: null,
    outage: null,
    faultRates: {},
    messageFaultRates: {},
    callbackFaultRates: {},
  },
  ses: {
    latency_ms: 0,
    error_rate: 0,
    error: "500",
    fail_next: 0,
    max_per_second: null,
    quota_24h: null,
    notify_delay_s: 0,
    notify_before_response: false,
    drop_notifications: false,
    duplicate_notifications: 0,
    reorder: false,
    bad_signature: false,
    wrong_topic: false,
    foreign_cert_url: false,
    oversized_body: false,
    unknown_type: false,
    signature_version: "1",
    rules: [],
    outage: null,
    fault_rates: {},
    mail_fault_rates: {},
    notice_fault_rates: {},
  },
  recipients: { previewBots: 0, deliver: {}, dropCallbacks: false },
};

/** Whose knobs there are. */
export const KNOB_OWNERS = ["expo", "twilio", "ses", "recipients"] as const;

/** How the simulators misbehave right now. Everything may be changed at any time and counts from the next request on. */
export class Knobs {
  #settings: KnobSettings = structuredClone(CALM);

  get expo(): ExpoKnobs {
    return this.#settings.expo;
  }

  get twilio(): TwilioKnobs {
    return this.#settings.twilio;
  }

  get ses(): SesKnobs {
    return this.#settings.ses;
  }

  get recipients(): RecipientKnobs {
    return this.#settings.recipients;
  }

  get(): KnobSettings {
    return structuredClone(this.#settings);
  }

  /** Changes what is named and leaves the rest; refuses names and values that are none. */
  patch(changes: KnobPatch): KnobSettings {
    const checked = KnobPatch.parse(changes);
    for (const provider of KNOB_OWNERS) {
      const named = Object.entries(checked[provider] ?? {}).filter(([, value]) => value !== undefined);
      Object.assign(this.#settings[provider], structuredClone(Object.fromEntries(named)));
    }
    return this.get();
  }

  /** Sets one provider's knobs: what is not named becomes calm. */
  replace(changes: KnobPatch): KnobSettings {
    const checked = KnobPatch.parse(changes);
    for (const provider of KNOB_OWNERS)
      if (checked[provider]) Object.assign(this.#settings[provider], structuredClone(CALM[provider]));
    return this.patch(checked);
  }

  reset(): KnobSettings {
    this.#settings = structuredClone(CALM);
    return this.get();
  }
}

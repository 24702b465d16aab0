import { z } from "zod";

const Rate = z.number().min(0).max(1);
const Milliseconds = z.number().min(0).max(600_000);
const Seconds = z.number().min(0).max(604_800);
const Count = z.int().min(0).max(1_000_000);
const Limit = z.int().min(1).max(1_000_000).nullable();
/** Always, or this many times more. */
const Times = z.union([z.boolean(), Count]);
/** Between these unix seconds everything answers 503. */
const Outage = z.strictObject({ from: z.number(), until: z.number() }).nullable();
const Status = z.int().min(400).max(599);

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
  malformed: z.enum(["json", "structure", "count"]).nullable(),
  ratePerSecond: Limit,
  outage: Outage,
});

export const TWILIO_WALK = ["accepted", "queued", "sending", "sent", "delivered"] as const;
export const TWILIO_ENDS = ["sent", "delivered", "read", "failed", "undelivered", "canceled"] as const;
export const CALLBACK_MODES = ["on", "off", "delay", "duplicate", "reorder", "badSignature", "blankField"] as const;

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
  ratePerSecond: Limit,
  outage: Outage,
});

export const SES_ERRORS = [
  "throttle",
  "500",
  "503",
  "reset",
  "timeout-after-accept",
  "MessageRejected",
  "SendingPausedException",
  "credentials",
] as const;
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
});

export type ExpoKnobs = z.output<typeof ExpoKnobs>;
export type TwilioKnobs = z.output<typeof TwilioKnobs>;
export type SesKnobs = z.output<typeof SesKnobs>;

export const KnobSettings = z.object({ expo: ExpoKnobs, twilio: TwilioKnobs, ses: SesKnobs });
export type KnobSettings = z.output<typeof KnobSettings>;

export const KnobPatch = z.strictObject({
  expo: ExpoKnobs.partial().optional(),
  twilio: TwilioKnobs.partial().optional(),
  ses: SesKnobs.partial().optional(),
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
    ratePerSecond: null,
    outage: null,
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
    ratePerSecond: null,
    outage: null,
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
  },
};

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

  get(): KnobSettings {
    return structuredClone(this.#settings);
  }

  /** Changes what is named and leaves the rest; refuses names and values that are none. */
  patch(changes: KnobPatch): KnobSettings {
    const checked = KnobPatch.parse(changes);
    for (const provider of ["expo", "twilio", "ses"] as const) {
      const named = Object.entries(checked[provider] ?? {}).filter(([, value]) => value !== undefined);
      Object.assign(this.#settings[provider], structuredClone(Object.fromEntries(named)));
    }
    return this.get();
  }

  reset(): KnobSettings {
    this.#settings = structuredClone(CALM);
    return this.get();
  }
}

/** The status that the next request fails with, if `failNext` says so; counts it down. */
export function takeFailure<F extends { count: number }>(knobs: { failNext: F | null }): F | undefined {
  const failure = knobs.failNext;
  if (!failure || failure.count <= 0) return undefined;
  failure.count -= 1;
  return failure;
}

/** Whether a knob of the kind "always, or so many times more" strikes now; counts it down. */
export function takeTime<Name extends string>(knobs: { [key in Name]: boolean | number }, name: Name): boolean {
  const left: boolean | number = knobs[name];
  if (typeof left === "boolean") return left;
  if (left > 0) knobs[name] = left - 1;
  return left > 0;
}

export function isOut(outage: { from: number; until: number } | null, now: number): boolean {
  return outage !== null && now >= outage.from && now < outage.until;
}

import { z } from "zod";
import type { Codec } from "../../kernel/keyspace/index.ts";
import { decimal, fields, integer, json, literal, matching, undecodable } from "../../kernel/keyspace/index.ts";

/** A plus sign, the country code, the number: the only form that is ever queued. */
export const E164 = /^\+[1-9]\d{1,14}$/;
export const SID = /^(SM|MM)[0-9a-f]{32}$/;
export const LONGEST_BODY = 1_600;

/** A job to queue when something has happened to a message; `data_raw` is added then, and must not be there before. */
export const CallbackJob = z.strictObject({
  name: z.string().min(1),
  kwargs: z
    .record(z.string(), z.unknown())
    .refine((kwargs) => !("data_raw" in kwargs), "must not have data_raw: it is what the callback gets added"),
});
export type CallbackJob = z.output<typeof CallbackJob>;

/** A text that waits to be sent. Fields that others added are kept from try to try. */
export const SmsEntry = z.looseObject({
  aud: z.literal("send"),
  uid: z.string().min(1),
  initially_queued_at: z.number(),
  /** How many tries failed before. */
  retry: z.int().min(0),
  last_queued_at: z.number(),
  phone_number: z.string().regex(E164),
  body: z.string().min(1),
  failure_job: CallbackJob,
  success_job: CallbackJob,
  /** Since when the provider may have this text without our knowing: an earlier try was not answered. */
  unanswered_since: z.number().optional(),
});
export type SmsEntry = z.output<typeof SmsEntry>;

/** News of a message, from the provider's webhook or because it was asked. */
export const SmsEvent = z.strictObject({
  sid: z.string().min(1),
  status: z.string().min(1),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  /** By the provider's clock; webhooks do not say it. */
  date_updated: z.number().nullable(),
  information_received_at: z.number(),
  received_via: z.enum(["webhook", "poll"]),
});
export type SmsEvent = z.output<typeof SmsEvent>;

const words = matching(/[\s\S]/, "text");

/** Absent values are written as empty text, so that every hash has the same fields. */
function orEmpty<T>(codec: Codec<T>): Codec<T | null> {
  return {
    shape: `${codec.shape}, empty for none`,
    encode: (value) => (value === null ? "" : codec.encode(value)),
    decode: (raw) => (raw.length === 0 ? null : codec.decode(raw)),
  };
}

const count: Codec<number> = {
  ...integer,
  decode(raw) {
    const value = integer.decode(raw);
    if (value < 0) throw undecodable("a count", `${value} is below zero`);
    return value;
  },
};

/** A message that the provider took and whose end is not known. */
export const pendingHash = fields({
  aud: literal("pending"),
  uid: words,
  send_initially_queued_at: decimal,
  message_resource_created_at: decimal,
  message_resource_last_updated_at: decimal,
  message_resource_sid: words,
  message_resource_status: words,
  message_resource_error_code: orEmpty(words),
  message_resource_date_updated: orEmpty(decimal),
  failure_job_last_called_at: orEmpty(decimal),
  num_failures: count,
  num_changes: count,
  phone_number: words,
  body: words,
  failure_job: json(CallbackJob, { shape: "JSON of a job" }),
  success_job: json(CallbackJob, { shape: "JSON of a job" }),
});
export type PendingSms = ReturnType<typeof pendingHash.decode>;

export const smsEntry = json(SmsEntry, { shape: "JSON of a text to send" });
export const smsEvent = json(SmsEvent, { shape: "JSON of news about a text" });
export const smsSid = matching(SID, "the sid of a message");

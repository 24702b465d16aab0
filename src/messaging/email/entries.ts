import { z } from "zod";
import { decimal, fields, json, literal, matching } from "../../kernel/keyspace/index.ts";
import { isEmailAddress } from "../contacts/service.ts";

export const LONGEST_ENTRY = 262_144;
const SLUG = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** An address in the form in which addresses are kept. */
export const MailAddress = z.string().max(254).refine(isEmailAddress, "is not an email address");
export const Subject = z
  .string()
  .min(1)
  .max(250)
  .regex(/^[^\r\n\0]*$/, "must be one line");
export const Slug = z.string().regex(SLUG);

/** A job to queue when something has happened to a mail; `data_raw` is added then, and must not be there before. */
export const CallbackJob = z.strictObject({
  name: z.string().min(1),
  kwargs: z
    .record(z.string(), z.unknown())
    .refine((kwargs) => !("data_raw" in kwargs), "must not have data_raw: it is what the callback gets added"),
});
export type CallbackJob = z.output<typeof CallbackJob>;

/** How many tries may have failed before the last one. */
const MOST_RETRIES = 4;

/** A mail that waits to be sent. Fields that others added are kept from try to try. */
export const Attempt = z
  .looseObject({
    aud: z.literal("send"),
    uid: z.string().min(1),
    email: MailAddress,
    subject: Subject,
    template: Slug,
    template_parameters: z.record(z.string(), z.unknown()),
    initially_queued_at: z.number(),
    /** How many tries failed before. */
    retry: z.int().min(0).max(MOST_RETRIES),
    last_queued_at: z.number(),
    failure_job: CallbackJob,
    success_job: CallbackJob,
  })
  .refine(
    ({ initially_queued_at: first, last_queued_at: last, retry }) => (retry === 0 ? last === first : last >= first),
    {
      message: "last_queued_at and initially_queued_at contradict each other",
    },
  );
export type Attempt = z.output<typeof Attempt>;

const words = matching(/[\s\S]/, "text");

/** A mail that the provider took and whose receipt is awaited. */
export const pendingHash = fields({
  aud: literal("pending"),
  uid: words,
  message_id: words,
  email: words,
  subject: words,
  template: words,
  template_parameters: json(z.record(z.string(), z.unknown()), { shape: "JSON of the parameters" }),
  send_initially_queued_at: decimal,
  send_accepted_at: decimal,
  failure_job: json(CallbackJob, { shape: "JSON of a job" }),
  success_job: json(CallbackJob, { shape: "JSON of a job" }),
});
export type PendingMail = ReturnType<typeof pendingHash.decode>;

const typed = <T extends string>(type: T) =>
  z
    .string()
    .refine((found) => found.toLowerCase() === type.toLowerCase())
    .transform((): T => type);
const Recipients = z.array(z.string()).default([]);

export const Bounce = z.object({
  type: typed("Bounce"),
  reason: z.object({
    primary: z.enum(["Permanent", "Transient", "Undetermined"]),
    secondary: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  }),
  destination: Recipients,
  bounced_recipients: Recipients,
});
export const Complaint = z.object({
  type: typed("Complaint"),
  feedback_type: z.string().max(64).nullable(),
  destination: Recipients,
  complained_recipients: Recipients,
});
const Delivery = z.object({ type: typed("Delivery") });

/** News of a mail. Writers spell the types with a capital; readers take any case. */
export const MailNews = z.object({
  message_id: z.string().min(1),
  notification: z.union([Delivery, Bounce, Complaint]),
  received_at: z.number(),
});
export type MailNews = z.output<typeof MailNews>;

export const attemptEntry = json(Attempt, { shape: "JSON of a mail to send" });
export const newsEntry = json(MailNews, { shape: "JSON of news about a mail" });
export const messageId = matching(/[\s\S]/, "the provider's id of a mail");

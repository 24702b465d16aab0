import { z } from "zod";
import { encodeCallback } from "../../jobs/entry.ts";
import { isObject } from "../../kernel/keyspace/index.ts";
import { dataRawErrors, decodeDataRaw, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { extraOf } from "../../providers/failure.ts";
import { Attempt, CallbackJob, isCallbackJob, type PendingMail } from "./entries.ts";

/** Mails may carry large parameters, so their stories may be larger than those of other channels. */
const LIMIT = { maxBytes: 1_048_576 };

const PendingObject = z.object({
  aud: z.literal("pending"),
  uid: z.string(),
  message_id: z.string(),
  email: z.string(),
  subject: z.string(),
  template: z.string(),
  template_parameters: z.record(z.string(), z.unknown()),
  send_initially_queued_at: z.number(),
  send_accepted_at: z.number(),
  failure_job: CallbackJob,
  success_job: CallbackJob,
});

const PENDING_FIELDS = Object.keys(PendingObject.shape).length;

const FailureStory = z.object({
  email: z.discriminatedUnion("aud", [Attempt, PendingObject]),
  info: z.object({
    step: z.enum(["template", "send", "receipt"]),
    error_identifier: z.string(),
    retryable: z.boolean(),
    /** For logs only, except for bounces: `Permanent/General`. */
    extra: z.string().nullable(),
  }),
});
export type FailureStory = z.output<typeof FailureStory>;
/** Why a mail failed, as its failure job hears it. */
export type FailureInfo = FailureStory["info"];

const SuccessStory = z.object({ email: PendingObject, info: z.object({ delivery_received_at: z.number() }) });
export type SuccessStory = z.output<typeof SuccessStory>;

/** The arguments of a callback: its own, and the story. */
export const CallbackKwargs = z.looseObject({ data_raw: z.string() });

/** The text of the failure job, ready for the queue. */
export function failureJob(email: Attempt | PendingMail, info: FailureInfo, now: number): string {
  const extra = info.extra === null ? null : extraOf(info.extra);
  return jobText(email.failure_job, { email, info: { ...info, extra } }, now);
}

/** The text of the success job, ready for the queue. */
export function successJob(email: PendingMail, receivedAt: number, now: number): string {
  return jobText(email.success_job, { email, info: { delivery_received_at: receivedAt } }, now);
}

export const readFailure = (data_raw: string): FailureStory => read(FailureStory, data_raw);

/** Most stories are as they were written here, which is seen faster than a schema sees it. */
export function readSuccess(data_raw: string): SuccessStory {
  const story = decodeDataRaw(data_raw, LIMIT);
  return isPlainSuccess(story) ? story : checked(SuccessStory, story);
}

function isPlainSuccess(story: unknown): story is SuccessStory {
  if (!isObject(story) || Object.keys(story).length !== 2 || !isObject(story.info)) return false;
  if (Object.keys(story.info).length !== 1 || !Number.isFinite(story.info.delivery_received_at)) return false;
  const mail = story.email;
  return (
    isObject(mail) &&
    Object.keys(mail).length === PENDING_FIELDS &&
    mail.aud === "pending" &&
    typeof mail.uid === "string" &&
    typeof mail.message_id === "string" &&
    typeof mail.email === "string" &&
    typeof mail.subject === "string" &&
    typeof mail.template === "string" &&
    isObject(mail.template_parameters) &&
    !Object.hasOwn(mail.template_parameters, "__proto__") &&
    Number.isFinite(mail.send_initially_queued_at) &&
    Number.isFinite(mail.send_accepted_at) &&
    isCallbackJob(mail.failure_job) &&
    isCallbackJob(mail.success_job)
  );
}

interface Story {
  readonly email: object;
  readonly info: object;
}

const jobText = (job: CallbackJob, story: Story, now: number): string => encodeCallback(job, packed(story), now);

/** Numbers may be written longer than they were read: a story that grew too large does without the mail's parameters. */
function packed(story: Story): string {
  try {
    return encodeDataRaw(story, LIMIT);
  } catch (error) {
    if (!dataRawErrors.bad_data_raw.matches(error)) throw error;
    return encodeDataRaw({ ...story, email: { ...story.email, template_parameters: {} } }, LIMIT);
  }
}

const read = <T>(schema: z.ZodType<T>, data_raw: string): T => checked(schema, decodeDataRaw(data_raw, LIMIT));

function checked<T>(schema: z.ZodType<T>, story: unknown): T {
  const parsed = schema.safeParse(story);
  if (parsed.success) return parsed.data;
  throw dataRawErrors.bad_data_raw({ message: `data_raw is not about a mail: ${z.prettifyError(parsed.error)}` });
}

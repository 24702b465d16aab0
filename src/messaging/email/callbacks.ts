import { z } from "zod";
import { encodeJob } from "../../jobs/entry.ts";
import { dataRawErrors, decodeDataRaw, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { extraOf } from "../../providers/failure.ts";
import { Attempt, CallbackJob, type PendingMail } from "./entries.ts";

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
export const readSuccess = (data_raw: string): SuccessStory => read(SuccessStory, data_raw);

interface Story {
  readonly email: object;
  readonly info: object;
}

function jobText({ name, kwargs }: CallbackJob, story: Story, now: number): string {
  return encodeJob({ name, kwargs: { ...kwargs, data_raw: packed(story) }, queued_at: now });
}

/** Numbers may be written longer than they were read: a story that grew too large does without the mail's parameters. */
function packed(story: Story): string {
  try {
    return encodeDataRaw(story, LIMIT);
  } catch (error) {
    if (!dataRawErrors.bad_data_raw.matches(error)) throw error;
    return encodeDataRaw({ ...story, email: { ...story.email, template_parameters: {} } }, LIMIT);
  }
}

function read<T>(schema: z.ZodType<T>, data_raw: string): T {
  const parsed = schema.safeParse(decodeDataRaw(data_raw, LIMIT));
  if (parsed.success) return parsed.data;
  throw dataRawErrors.bad_data_raw({ message: `data_raw is not about a mail: ${z.prettifyError(parsed.error)}` });
}

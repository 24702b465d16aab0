import { z } from "zod";
import { encodeCallback } from "../../jobs/entry.ts";
import { isObject } from "../../kernel/keyspace/index.ts";
import { dataRawErrors, decodeDataRaw, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import type { SmsIdentifier, SmsResource } from "../../providers/sms.ts";
import { CallbackJob, explanation, type PendingSms, placeable, SmsEntry, shortWord } from "./entries.ts";

/** Why a text failed, as its failure job hears it. */
export interface FailureInfo {
  readonly action: "send" | "pending";
  readonly identifier: SmsIdentifier | "StuckPending";
  readonly subidentifier: string | null;
  readonly retryable: boolean;
  readonly extra: string | null;
}

const Resource = z.object({
  sid: z.string(),
  status: z.string(),
  error_code: z.string().nullable(),
  date_updated: z.number().nullable(),
});

/** A pending message as callbacks see it: the four facts of the provider in one place, real nulls and numbers. */
const PendingObject = z.object({
  aud: z.literal("pending"),
  uid: z.string(),
  send_initially_queued_at: z.number(),
  message_resource_created_at: z.number(),
  message_resource_last_updated_at: z.number(),
  message_resource: Resource,
  failure_job_last_called_at: z.number().nullable(),
  num_failures: z.int(),
  num_changes: z.int(),
  phone_number: z.string(),
  body: z.string(),
  failure_job: CallbackJob,
  success_job: CallbackJob,
});
export type PendingObject = z.output<typeof PendingObject>;

const FailureStory = z.object({
  sms: z.discriminatedUnion("aud", [SmsEntry, PendingObject]),
  failure_info: z.object({
    action: z.enum(["send", "pending"]),
    identifier: z.string(),
    subidentifier: z.string().nullable(),
    retryable: z.boolean(),
    extra: z.string().nullable(),
  }),
});
export type FailureStory = z.output<typeof FailureStory>;

const SuccessStory = z.object({
  sms: z.object({
    aud: z.literal("success"),
    uid: z.string(),
    initially_queued_at: z.number(),
    phone_number: z.string(),
    body: z.string(),
  }),
  result: z.object({
    message_resource_created_at: z.number(),
    message_resource_succeeded_at: z.number(),
    message_resource: Resource,
  }),
});
export type SuccessStory = z.output<typeof SuccessStory>;

/** As much of a broken story as says whose it is. */
const Named = z.object({ sms: z.object({ uid: z.string().max(200) }) });

/** The arguments of a callback: its own, and the story. */
export const CallbackKwargs = z.looseObject({ data_raw: z.string() });

export function pendingObject(pending: PendingSms): PendingObject {
  const {
    message_resource_sid: sid,
    message_resource_status: status,
    message_resource_error_code: error_code,
    message_resource_date_updated: date_updated,
    ...rest
  } = pending;
  return { ...rest, message_resource: { sid, status, error_code, date_updated } };
}

/** The text of the failure job, ready for the queue. */
export function failureJob(sms: SmsEntry | PendingSms, failure_info: FailureInfo, now: number): string {
  const story = sms.aud === "send" ? (sms as SmsEntry) : pendingObject(sms as PendingSms);
  const { subidentifier } = failure_info;
  const info: FailureInfo = {
    ...failure_info,
    subidentifier: subidentifier === null ? null : shortWord(subidentifier),
    extra: explanation(failure_info.extra),
  };
  return jobText(sms.failure_job, { sms: story, failure_info: info }, now);
}

/** The text of the success job, ready for the queue. */
export function successJob(
  sms: Pick<SmsEntry, "uid" | "initially_queued_at" | "phone_number" | "body" | "success_job">,
  result: { readonly createdAt: number; readonly succeededAt: number; readonly resource: z.output<typeof Resource> },
  now: number,
): string {
  const { uid, initially_queued_at, phone_number, body } = sms;
  const story: SuccessStory = {
    sms: { aud: "success", uid, initially_queued_at, phone_number, body },
    result: {
      message_resource_created_at: result.createdAt,
      message_resource_succeeded_at: result.succeededAt,
      message_resource: result.resource,
    },
  };
  return jobText(sms.success_job, story, now);
}

/** What the provider says of a message, each part at a length that is kept. */
export function resourceOf({ sid, status, errorCode, dateUpdated }: SmsResource): z.output<typeof Resource> {
  return {
    sid: shortWord(sid),
    status: shortWord(status),
    error_code: errorCode === null ? null : shortWord(errorCode),
    date_updated: placeable(dateUpdated),
  };
}

export const readFailure = (data_raw: string): FailureStory => read(FailureStory, data_raw);

/** Most stories are as they were written here, which is seen faster than a schema sees it. */
export function readSuccess(data_raw: string): SuccessStory {
  const story = decodeDataRaw(data_raw);
  return isPlainSuccess(story) ? story : checked(SuccessStory, story);
}

function isPlainSuccess(story: unknown): story is SuccessStory {
  if (!isObject(story) || !hasFields(story.sms, 5) || !hasFields(story.result, 3)) return false;
  const { sms, result } = story;
  const { message_resource: resource } = result;
  return (
    Object.keys(story).length === 2 &&
    sms.aud === "success" &&
    typeof sms.uid === "string" &&
    Number.isFinite(sms.initially_queued_at) &&
    typeof sms.phone_number === "string" &&
    typeof sms.body === "string" &&
    Number.isFinite(result.message_resource_created_at) &&
    Number.isFinite(result.message_resource_succeeded_at) &&
    hasFields(resource, 4) &&
    typeof resource.sid === "string" &&
    typeof resource.status === "string" &&
    (resource.error_code === null || typeof resource.error_code === "string") &&
    (resource.date_updated === null || Number.isFinite(resource.date_updated))
  );
}

const hasFields = (value: unknown, count: number): value is Readonly<Record<string, unknown>> =>
  isObject(value) && Object.keys(value).length === count;

const jobText = (job: CallbackJob, story: object, now: number): string =>
  encodeCallback(job, encodeDataRaw(story), now);

const read = <T>(schema: z.ZodType<T>, data_raw: string): T => checked(schema, decodeDataRaw(data_raw));

function checked<T>(schema: z.ZodType<T>, story: unknown): T {
  const parsed = schema.safeParse(story);
  if (parsed.success) return parsed.data;
  const named = Named.safeParse(story);
  const whose = named.success ? ` of ${named.data.sms.uid}` : "";
  throw dataRawErrors.bad_data_raw({
    message: `data_raw${whose} is not about a text: ${z.prettifyError(parsed.error)}`,
  });
}

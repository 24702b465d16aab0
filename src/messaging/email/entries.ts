import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { kernelErrors } from "../../kernel/errors.ts";
import {
  type Codec,
  decimal,
  fields,
  isHarmless,
  isObject,
  json,
  literal,
  matching,
  readable,
  readableHash,
} from "../../kernel/keyspace/index.ts";
import { LONGEST_KIND, LONGEST_MESSAGE_ID } from "../../providers/ses-notification.ts";
import { isEmailAddress } from "../contacts/service.ts";

export const LONGEST_ENTRY = 262_144;
/** The end of the year 9999: what lies behind it is no time, and calendars do not know it. */
const LAST_TIME = 253_402_300_799;
const SLUG = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

const Time = z.number().min(0).max(LAST_TIME);
/** What a mail is called here, in its headers and in the provider's tags. */
const UID = /^[A-Za-z0-9_-]{1,128}$/;
export const MailUid = z.string().regex(UID, "may have letters, digits, _ and - only");
/** An address in the form in which addresses are kept. */
export const MailAddress = z.string().max(254).refine(isEmailAddress, "is not an email address");
const LONGEST_SUBJECT = 250;
const ONE_LINE = /^[^\r\n\0]*$/;
export const Subject = z.string().min(1).max(LONGEST_SUBJECT).regex(ONE_LINE, "must be one line");
export const Slug = z.string().regex(SLUG);

/** A job to queue when something has happened to a mail; `data_raw` is added then, and must not be there before. */
export const CallbackJob = z.strictObject({
  name: z.string().min(1),
  kwargs: z
    .record(z.string(), z.unknown())
    .refine((kwargs) => !("data_raw" in kwargs), "must not have data_raw: it is what the callback gets added"),
});
export type CallbackJob = z.output<typeof CallbackJob>;

/** The same by hand, and only for what the schema leaves as it is. */
export function isCallbackJob(value: unknown): value is CallbackJob {
  return (
    isObject(value) &&
    Object.keys(value).length === 2 &&
    typeof value.name === "string" &&
    value.name !== "" &&
    isObject(value.kwargs) &&
    !("data_raw" in value.kwargs) &&
    !Object.hasOwn(value.kwargs, "__proto__")
  );
}

/** How many tries may have failed before the last one. */
export const MOST_RETRIES = 4;

/** A mail that waits to be sent. Fields that others added are kept from try to try. */
export const Attempt = z
  .looseObject({
    aud: z.literal("send"),
    uid: MailUid,
    email: MailAddress,
    subject: Subject,
    template: Slug,
    template_parameters: z.record(z.string(), z.unknown()),
    initially_queued_at: Time,
    /** How many tries failed before. */
    retry: z.int().min(0).max(MOST_RETRIES),
    last_queued_at: Time,
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

const isTime = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 && value <= LAST_TIME;
const isUid = (value: unknown): value is string => typeof value === "string" && UID.test(value);

/** An attempt to which nobody added anything, and which has not failed yet. */
function isFirstAttempt(value: unknown): value is Attempt {
  return (
    isObject(value) &&
    value.aud === "send" &&
    value.retry === 0 &&
    Object.keys(value).length === 11 &&
    isUid(value.uid) &&
    typeof value.email === "string" &&
    isEmailAddress(value.email) &&
    typeof value.subject === "string" &&
    value.subject.length > 0 &&
    value.subject.length <= LONGEST_SUBJECT &&
    ONE_LINE.test(value.subject) &&
    typeof value.template === "string" &&
    SLUG.test(value.template) &&
    isObject(value.template_parameters) &&
    isTime(value.initially_queued_at) &&
    value.last_queued_at === value.initially_queued_at &&
    isCallbackJob(value.failure_job) &&
    isCallbackJob(value.success_job)
  );
}

/**
 * JSON of a queue that may hold codes. What cannot be read is refused without repeating any of it, since the reason ends up
 * in alerts; and what is larger than an entry may be is not even parsed.
 */
function discreetJson<T>(schema: z.ZodType<T>, shape: string, isPlain: (value: unknown) => value is T): Codec<T> {
  const read = (written: string): T => {
    let value: unknown;
    try {
      value = JSON.parse(written);
    } catch {
      throw unreadable(shape, "not JSON");
    }
    if (isPlain(value) && isHarmless(written)) return value;
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "the whole"}: ${message}`);
    throw unreadable(shape, faults.join("; "));
  };
  const codec: Codec<T> = {
    ...json(schema, { shape }),
    decode(raw) {
      if (raw.length > LONGEST_ENTRY) throw unreadable(shape, `${raw.length} bytes are too many`);
      if (!isUtf8(raw)) throw unreadable(shape, "not UTF-8");
      return read(raw.toString("utf8"));
    },
  };
  return readable(codec, (written) => {
    const bytes = sizeOf(written);
    if (bytes > LONGEST_ENTRY) throw unreadable(shape, `${bytes} bytes are too many`);
    return read(written);
  });
}

/** A unit of a string has at most three bytes: what is short enough anyway is not measured. */
const sizeOf = (written: string): number =>
  written.length * 3 <= LONGEST_ENTRY ? written.length : Buffer.byteLength(written);

const unreadable = (shape: string, why: string) => kernelErrors.undecodable({ message: `expected ${shape}: ${why}` });

const words = matching(/[\s\S]/, "text");
const within = (time: number): number => {
  if (time < 0 || time > LAST_TIME) throw unreadable("a unix time", `${time} is none`);
  return time;
};
const moment: Codec<number> = readable(
  { ...decimal, decode: (raw: Buffer) => within(decimal.decode(raw)) },
  (written) => within(decimal.read!(written)),
);

const knownFields = fields({
  aud: literal("pending"),
  uid: words,
  message_id: words,
  email: words,
  subject: words,
  template: words,
  template_parameters: discreetJson(z.record(z.string(), z.unknown()), "JSON of the parameters", isObject),
  send_initially_queued_at: moment,
  send_accepted_at: moment,
  failure_job: discreetJson(CallbackJob, "JSON of a job", isCallbackJob),
  success_job: discreetJson(CallbackJob, "JSON of a job", isCallbackJob),
});
export type PendingMail = ReturnType<typeof knownFields.decode>;

/** What the provider's id and time add to an entry. */
const PENDING_EXTRA = 1024;

/** A mail that the provider took and whose receipt is awaited: as large as the entry that it was made from. */
export const pendingHash: typeof knownFields = readableHash(
  {
    ...knownFields,
    decode(raw: Readonly<Record<string, Buffer>>) {
      bounded(Object.values(raw).reduce((sum, value) => sum + value.length, 0));
      return knownFields.decode(raw);
    },
  },
  (texts) => {
    let bytes = 0;
    for (const name in texts) bytes += sizeOf(texts[name]!);
    // Where the sum is far from the limit it does not matter that short texts were not measured.
    if (bytes * 3 > LONGEST_ENTRY)
      bounded(Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text), 0));
    return knownFields.read!(texts);
  },
);

function bounded(bytes: number): void {
  if (bytes > LONGEST_ENTRY + PENDING_EXTRA) throw unreadable("what is known of a mail", `${bytes} bytes are too many`);
}

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
    secondary: z
      .string()
      .max(LONGEST_KIND)
      .regex(/^[A-Za-z0-9_-]+$/),
  }),
  destination: Recipients,
  bounced_recipients: Recipients,
});
export const Complaint = z.object({
  type: typed("Complaint"),
  feedback_type: z.string().max(LONGEST_KIND).nullable(),
  destination: Recipients,
  complained_recipients: Recipients,
});
const Delivery = z.object({ type: typed("Delivery") });

/** News of a mail. Writers spell the types with a capital; readers take any case. */
export const MailNews = z.object({
  message_id: z.string().min(1).max(LONGEST_MESSAGE_ID),
  /** Which mail it is about, where the provider repeats our tag: it finds mails whose acceptance was never written down. */
  uid: MailUid.optional(),
  notification: z.union([Delivery, Bounce, Complaint]),
  received_at: Time,
});
export type MailNews = z.output<typeof MailNews>;

/** News of a mail that arrived: what nearly all news is. */
function isDelivery(value: unknown): value is MailNews {
  if (!isObject(value) || typeof value.message_id !== "string" || !isTime(value.received_at)) return false;
  if (value.message_id === "" || value.message_id.length > LONGEST_MESSAGE_ID) return false;
  if (Object.keys(value).length !== (value.uid === undefined ? 3 : 4)) return false;
  if (value.uid !== undefined && !isUid(value.uid)) return false;
  const { notification } = value;
  return isObject(notification) && notification.type === "Delivery" && Object.keys(notification).length === 1;
}

export const attemptEntry = discreetJson(Attempt, "JSON of a mail to send", isFirstAttempt);
export const newsEntry = discreetJson(MailNews, "JSON of news about a mail", isDelivery);
export const messageId = matching(/[\s\S]/, "the provider's id of a mail");

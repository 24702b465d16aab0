import { z } from "zod";
import type { Codec } from "../../kernel/keyspace/index.ts";
import {
  decimal,
  fields,
  type HashCodec,
  integer,
  isObject,
  json,
  literal,
  matching,
  readable,
  readableHash,
  undecodable,
} from "../../kernel/keyspace/index.ts";

/** A plus sign, the country code, the number: the only form that is ever queued. */
export const E164 = /^\+[1-9]\d{1,14}$/;
export const SID = /^(SM|MM)[0-9a-f]{32}$/;
export const LONGEST_BODY = 1_600;
/**
 * The most bytes of an entry. A callback's story holds the entry and what the provider said about it, and has a limit of
 * 65,536 bytes: whatever is larger here could be queued, but never told of again.
 */
export const LARGEST_ENTRY = 32_768;
/** The most bytes of a new entry: what later tries note in it must fit too. */
export const LARGEST_NEW_ENTRY = LARGEST_ENTRY - 256;
/** Words of a provider are kept up to these lengths, so that no entry grows without bound. */
const LONGEST_WORD = 100;
const LONGEST_EXPLANATION = 1_000;

const LATEST_TIME = 1e11;
/** Unix seconds that a calendar can place: from 1970 to the year 5138. */
const Time = z.number().min(0).max(LATEST_TIME);
const isTime = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 && value <= LATEST_TIME;
const isShort = (value: unknown, most: number): value is string => typeof value === "string" && value.length <= most;

/** A time of the provider's clock, or nothing where it is none that a calendar can place. */
export const placeable = (time: number | null): number | null => (isTime(time) ? time : null);

const cut = (text: string, most: number) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/** A code or status of the provider, at a length that is kept. */
export const shortWord = (word: string): string => cut(word, LONGEST_WORD);
/** What the provider says to people, at a length that is kept. */
export const explanation = (text: string | null): string | null =>
  text === null ? null : cut(text, LONGEST_EXPLANATION);

/** A job to queue when something has happened to a message; `data_raw` is added then, and must not be there before. */
export const CallbackJob = z.strictObject({
  name: z.string().min(1),
  kwargs: z
    .record(z.string(), z.unknown())
    .refine((kwargs) => !("data_raw" in kwargs), "must not have data_raw: it is what the callback gets added"),
});
export type CallbackJob = z.output<typeof CallbackJob>;

/** The same by hand, and only for what the schema leaves as it is. */
function isCallbackJob(value: unknown): value is CallbackJob {
  return (
    isObject(value) &&
    Object.keys(value).length === 2 &&
    typeof value.name === "string" &&
    value.name !== "" &&
    isObject(value.kwargs) &&
    !("data_raw" in value.kwargs)
  );
}

/** A text that waits to be sent. Fields that others added are kept from try to try. */
export const SmsEntry = z.looseObject({
  aud: z.literal("send"),
  uid: z.string().min(1).max(200),
  initially_queued_at: Time,
  /** How many tries failed before. */
  retry: z.int().min(0),
  last_queued_at: Time,
  phone_number: z.string().regex(E164),
  body: z.string().min(1).max(LONGEST_BODY),
  failure_job: CallbackJob,
  success_job: CallbackJob,
  /** Since when the provider may have this text without our knowing: an earlier try was not answered, or its run died. */
  unanswered_since: Time.optional(),
});
export type SmsEntry = z.output<typeof SmsEntry>;

/** A text to which nobody added anything, and which was not tried yet. */
function isFirstTry(value: unknown): value is SmsEntry {
  return (
    isObject(value) &&
    value.aud === "send" &&
    value.retry === 0 &&
    Object.keys(value).length === 9 &&
    isShort(value.uid, 200) &&
    value.uid !== "" &&
    isTime(value.initially_queued_at) &&
    isTime(value.last_queued_at) &&
    typeof value.phone_number === "string" &&
    E164.test(value.phone_number) &&
    isShort(value.body, LONGEST_BODY) &&
    value.body !== "" &&
    isCallbackJob(value.failure_job) &&
    isCallbackJob(value.success_job)
  );
}

/** News of a message, from the provider's webhook or because it was asked. */
export const SmsEvent = z.strictObject({
  sid: z.string().min(1).max(LONGEST_WORD),
  status: z.string().min(1).max(LONGEST_WORD),
  error_code: z.string().max(LONGEST_WORD).nullable(),
  error_message: z.string().max(LONGEST_EXPLANATION).nullable(),
  /** By the provider's clock; webhooks do not say it. */
  date_updated: Time.nullable(),
  information_received_at: Time,
  received_via: z.enum(["webhook", "poll"]),
  /** Whom a failed text was for, where the report says it: a carrier may refuse long after the text has ended here. */
  to: z.string().regex(E164).optional(),
});
export type SmsEvent = z.output<typeof SmsEvent>;

/** News without a word of failure. */
function isPlainEvent(value: unknown): value is SmsEvent {
  return (
    isObject(value) &&
    Object.keys(value).length === 7 &&
    isShort(value.sid, LONGEST_WORD) &&
    value.sid !== "" &&
    isShort(value.status, LONGEST_WORD) &&
    value.status !== "" &&
    value.error_code === null &&
    value.error_message === null &&
    (value.date_updated === null || isTime(value.date_updated)) &&
    isTime(value.information_received_at) &&
    (value.received_via === "webhook" || value.received_via === "poll")
  );
}

const words = matching(/[\s\S]/, "text");

/** Absent values are written as empty text, so that every hash has the same fields. */
function orEmpty<T>(codec: Codec<T>): Codec<T | null> {
  const orNone: Codec<T | null> = {
    shape: `${codec.shape}, empty for none`,
    encode: (value) => (value === null ? "" : codec.encode(value)),
    decode: (raw) => (raw.length === 0 ? null : codec.decode(raw)),
  };
  return readable(orNone, (written) => (written === "" ? null : codec.read!(written)));
}

const notNegative = (value: number): number => {
  if (value < 0) throw undecodable("a count", `${value} is below zero`);
  return value;
};
const count: Codec<number> = readable(
  { ...integer, decode: (raw: Buffer) => notNegative(integer.decode(raw)) },
  (written) => notNegative(integer.read!(written)),
);

const placed = (value: number): number => {
  if (!isTime(value)) throw undecodable("a unix time", `no calendar reaches ${value}`);
  return value;
};
const time: Codec<number> = readable(
  { ...decimal, shape: "unix time", decode: (raw: Buffer) => placed(decimal.decode(raw)) },
  (written) => placed(decimal.read!(written)),
);

/** From here on it is worth looking whether JSON grows when it is written anew: `1e20` becomes 21 digits. */
const MAY_GROW_FROM = 8_192;

/**
 * An entry of bounded size. What cannot be read is not quoted in the reason either: bodies hold codes, and reasons go into
 * logs and alerts.
 */
function bounded<T>(codec: Codec<T>): Codec<T> {
  const tooLarge = (bytes: number) =>
    undecodable(codec.shape, `it has ${bytes} bytes; at most ${LARGEST_ENTRY} are read`);
  return {
    ...codec,
    decode(raw) {
      if (raw.length > LARGEST_ENTRY) throw tooLarge(raw.length);
      const value = codec.decode(raw);
      if (raw.length <= MAY_GROW_FROM) return value;
      const bytes = Buffer.byteLength(codec.encode(value));
      if (bytes > LARGEST_ENTRY) throw tooLarge(bytes);
      return value;
    },
  };
}

/** JSON whose content is nobody's business: where it is not even JSON, the reason says so without quoting it. */
function privateJson<T>(schema: z.ZodType<T>, shape: string, isPlain: (value: unknown) => value is T): Codec<T> {
  const codec = json(schema, { shape, isPlain });
  const read = (written: string): T => {
    try {
      return codec.read!(written);
    } catch (error) {
      const { message } = error as Error;
      throw message.includes("not JSON") ? undecodable(shape, "it is not JSON") : error;
    }
  };
  return readable({ ...codec, decode: (raw: Buffer) => read(raw.toString("utf8")) }, read);
}

/** What a pending message has beside the parts of its entry. */
const LARGEST_HASH = LARGEST_ENTRY + 2_048;

/** The same for the fields of a hash taken together. */
function boundedHash<T>(codec: HashCodec<T>): HashCodec<T> {
  const check = (values: readonly (string | Buffer)[]) => {
    const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(value), 0);
    if (bytes > LARGEST_HASH)
      throw undecodable("a pending text", `it has ${bytes} bytes; at most ${LARGEST_HASH} are read`);
    return bytes;
  };
  const bounded = <Raw extends string | Buffer>(
    raw: Readonly<Record<string, Raw>>,
    decode: (raw_: typeof raw) => T,
  ) => {
    const bytes = check(Object.values(raw));
    const value = decode(raw);
    if (bytes > MAY_GROW_FROM) check(codec.encode(value).filter((_, at) => at % 2 === 1));
    return value;
  };
  return readableHash(
    { ...codec, decode: (raw: Readonly<Record<string, Buffer>>) => bounded(raw, codec.decode) },
    (texts) => {
      let units = 0;
      for (const name in texts) units += texts[name]!.length;
      // A unit of a string has at most three bytes: what is short enough anyway is not measured.
      return units * 3 <= MAY_GROW_FROM ? codec.read!(texts) : bounded(texts, codec.read!);
    },
  );
}

const pendingFields = fields({
  aud: literal("pending"),
  uid: words,
  send_initially_queued_at: time,
  message_resource_created_at: time,
  message_resource_last_updated_at: time,
  message_resource_sid: words,
  message_resource_status: words,
  message_resource_error_code: orEmpty(words),
  message_resource_date_updated: orEmpty(time),
  failure_job_last_called_at: orEmpty(time),
  num_failures: count,
  num_changes: count,
  phone_number: words,
  body: words,
  failure_job: privateJson(CallbackJob, "JSON of a job", isCallbackJob),
  success_job: privateJson(CallbackJob, "JSON of a job", isCallbackJob),
});
export type PendingSms = ReturnType<typeof pendingFields.decode>;

/** A message that the provider took and whose end is not known. */
export const pendingHash = boundedHash(pendingFields);

export const smsEntry = bounded(privateJson(SmsEntry, "JSON of a text to send", isFirstTry));
export const smsEvent = bounded(privateJson(SmsEvent, "JSON of news about a text", isPlainEvent));
export const smsSid = matching(SID, "the sid of a message");

/** What a person said by text and was not followed yet. */
export const heldWish = json(z.strictObject({ wish: z.enum(["stop", "start"]), said_at: Time }), {
  shape: "JSON of a wish",
});

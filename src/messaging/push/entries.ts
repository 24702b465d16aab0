import { isUtf8 } from "node:buffer";
import { RUNNER_NAME } from "../../jobs/runner.ts";
import { type Codec, undecodable } from "../../kernel/keyspace/index.ts";
import { PUSH_TOKEN } from "../contacts/service.ts";

/** The job that hears of a message's end. Its arguments are its own; `data_raw` is added when it is queued. */
export interface Callback {
  readonly name: string;
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** What the device shows: the provider's message without its receiver. */
export interface Contents {
  readonly title: string;
  readonly body: string;
  /** The Android channel it is shown in. */
  readonly channel_id: string | null;
}

interface Waiting {
  readonly uid: string;
  /** When it first joined the place where it waits: the send queue, or the cold set. */
  readonly initially_queued_at: number;
  /** Earlier passing failures of this stage. */
  readonly retry: number;
  readonly last_queued_at: number;
  readonly push_token: string;
  readonly contents: Contents;
  readonly failure_job: Callback;
  readonly success_job: Callback;
}

/** A notification that waits to be sent. Fields that others add are kept. */
export interface SendEntry extends Waiting {
  readonly aud: "send";
}

/** A notification that the provider took, and whose receipt is awaited. */
export interface CheckEntry extends Waiting {
  readonly aud: "check";
  /** When it first joined the send queue: the day that all of its events count on. */
  readonly attempt_initially_queued_at: number;
  readonly push_ticket: { readonly status: "ok"; readonly id: string };
  readonly push_ticket_created_at: number;
  /** Which provider took it, since only that one knows its ticket. */
  readonly provider?: string | null;
}

/**
 * How large an entry may be, from the first queue to the last callback. Each stage adds to what the one before left (a
 * ticket, longer times, a provider's words), and has room for it: an entry that was let in can never become one that
 * cannot be read, nor a story that is longer than `data_raw` may be.
 */
export const LARGEST_NEW_ENTRY = 40_960;
const LARGEST_SEND_ENTRY = 45_056;
const LARGEST_CHECK_ENTRY = 53_248;
export const LONGEST_TICKET_ID = 512;
const LARGEST_MESSAGE = 4_096;
/** JSON writes some numbers at most five times as long as they were: `1e20`. Below this, that does not matter. */
const MAY_GROW_FROM = 8_192;

/** It becomes part of key names, and must not break them. */
const MESSAGE_UID = /^[A-Za-z0-9_-]{1,128}$/;
/** The year 10000: a time beyond it is a mistake of whoever wrote it, and no calendar could date it. */
const LATEST_TIME = 253_402_300_800;

type Fields = Readonly<Record<string, unknown>>;

/**
 * What is wrong with a value that should be an entry; nothing, if it is one. Checked by hand: every notification is read
 * at every stage, and a schema would cost more than all the rest. No value is repeated, since it may be somebody's.
 */
export function flawOfSendEntry(value: unknown): string | undefined {
  if (!isObject(value)) return "it is no object";
  return value.aud === "send" ? flawOfWaiting(value) : 'aud is not "send"';
}

export function flawOfCheckEntry(value: unknown): string | undefined {
  if (!isObject(value)) return "it is no object";
  if (value.aud !== "check") return 'aud is not "check"';
  const { push_ticket: ticket, provider } = value;
  if (!isTime(value.attempt_initially_queued_at)) return "attempt_initially_queued_at is no time";
  if (!isTime(value.push_ticket_created_at)) return "push_ticket_created_at is no time";
  if (!isObject(ticket) || ticket.status !== "ok" || !isText(ticket.id, LONGEST_TICKET_ID) || ticket.id === "")
    return "push_ticket is no ticket";
  if (provider !== undefined && provider !== null && !isText(provider, 100)) return "provider is no name";
  return flawOfWaiting(value);
}

function flawOfWaiting(entry: Fields): string | undefined {
  if (typeof entry.uid !== "string" || !MESSAGE_UID.test(entry.uid)) return "uid is no uid";
  if (!isTime(entry.initially_queued_at)) return "initially_queued_at is no time";
  if (!isTime(entry.last_queued_at)) return "last_queued_at is no time";
  if (!Number.isSafeInteger(entry.retry) || (entry.retry as number) < 0) return "retry is no count";
  return (
    flawOfMessage(entry.push_token, entry.contents) ??
    flawOfCallback("failure_job", entry.failure_job) ??
    flawOfCallback("success_job", entry.success_job)
  );
}

/** A request carries a hundred of these, and one that the provider cannot read would fail the others too. */
function flawOfMessage(token: unknown, contents: unknown): string | undefined {
  if (typeof token !== "string" || token.length < 20 || token.length > 63 || !PUSH_TOKEN.test(token))
    return "push_token is no push token";
  if (!isObject(contents)) return "contents is no object";
  const { title, body, channel_id: channel } = contents;
  if (typeof title !== "string") return "contents.title is no text";
  if (typeof body !== "string") return "contents.body is no text";
  if (typeof channel !== "string" && channel !== null) return "contents.channel_id is neither text nor null";
  // A character has six bytes at most; only what could be too large is measured.
  if ((title.length + body.length + (channel?.length ?? 0)) * 6 < LARGEST_MESSAGE - 200) return undefined;
  const size = Buffer.byteLength(JSON.stringify({ to: token, title, body, channelId: channel }));
  return size > LARGEST_MESSAGE ? `the message has ${size} bytes; at most ${LARGEST_MESSAGE}` : undefined;
}

function flawOfCallback(field: string, value: unknown): string | undefined {
  if (!isObject(value)) return `${field} is no object`;
  if (!isText(value.name, 200) || !RUNNER_NAME.test(value.name as string)) return `${field}.name names no job`;
  if (!isObject(value.kwargs)) return `${field}.kwargs is no object`;
  return "data_raw" in value.kwargs ? `${field}.kwargs has data_raw, which is added when it is queued` : undefined;
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown, longest: number): boolean {
  return typeof value === "string" && value.length <= longest;
}

export function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < LATEST_TIME;
}

function entry<T>(flawOf: (value: unknown) => string | undefined, largest: number, shape: string): Codec<T> {
  return {
    shape,
    encode: (value) => JSON.stringify(value),
    decode(raw) {
      if (raw.length > largest) throw undecodable(shape, `${raw.length} bytes; at most ${largest}`);
      if (!isUtf8(raw)) throw undecodable(shape, "the bytes are not UTF-8");
      const value = parsed(raw, shape);
      const flaw = flawOf(value);
      if (flaw !== undefined) throw undecodable(shape, flaw);
      if (raw.length > MAY_GROW_FROM && Buffer.byteLength(JSON.stringify(value)) > largest)
        throw undecodable(shape, `written out it has more than ${largest} bytes`);
      return value as T;
    },
  };
}

function parsed(raw: Buffer, shape: string): unknown {
  try {
    return JSON.parse(raw.toString("utf8"));
  } catch {
    throw undecodable(shape, "it is not JSON");
  }
}

export const sendEntry = entry<SendEntry>(
  flawOfSendEntry,
  LARGEST_SEND_ENTRY,
  'JSON of a notification to send, `"aud":"send"`',
);
export const checkEntry = entry<CheckEntry>(
  flawOfCheckEntry,
  LARGEST_CHECK_ENTRY,
  'JSON of a notification with a ticket, `"aud":"check"`',
);

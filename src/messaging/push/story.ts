import type { Context } from "../../jobs/context.ts";
import { encodeCallback } from "../../jobs/entry.ts";
import { dataRawErrors, decodeDataRaw, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import type { PushReceipt, PushReceiptIdentifier, PushTicket } from "../../providers/push.ts";
import {
  type Callback,
  type CheckEntry,
  type Contents,
  flawOfCheckEntry,
  flawOfSendEntry,
  isObject,
  isTime,
  type SendEntry,
} from "./entries.ts";

/** What a failure job is told in `data_raw`: the entry as it was tried, and what came of it. */
export interface FailureStory {
  readonly attempt: SendEntry | CheckEntry;
  readonly failure_info: {
    readonly action: "send" | "check";
    readonly ticket: PushTicket | null;
    readonly receipt: PushReceipt | null;
    readonly identifier: string;
    /** True: the job must try again or give up, exactly one of the two. False: neither. */
    readonly retryable: boolean;
    readonly extra: string | null;
  };
}

/** What a success job is told. */
export interface SuccessStory {
  readonly attempt: {
    readonly aud: "success";
    readonly uid: string;
    readonly initially_queued_at: number;
    readonly push_token: string;
    readonly contents: Contents;
  };
  readonly result: {
    readonly ticket_created_at: number;
    readonly ticket: PushTicket;
    readonly receipt_checked_at: number;
    readonly receipt: PushReceipt;
  };
}

/** Bytes of JSON that a provider's words may have in a story: its answers have no limit, and `data_raw` has one. */
const LONGEST_WORDS = 2_000;
const LARGEST_DETAILS = 4_096;

/** Reads what a callback was given; raises `bad_data_raw` for anything else. */
export function readFailure(dataRaw: string): FailureStory {
  const story = decodeDataRaw(dataRaw);
  const flaw = flawOfFailure(story);
  if (flaw !== undefined) throw noStory(flaw, story);
  return story as FailureStory;
}

export function readSuccess(dataRaw: string): SuccessStory {
  const story = decodeDataRaw(dataRaw);
  const flaw = flawOfSuccess(story);
  if (flaw !== undefined) throw noStory(flaw, story);
  return story as SuccessStory;
}

function noStory(flaw: string, story: unknown): Error {
  const uid = isObject(story) && isObject(story.attempt) ? story.attempt.uid : undefined;
  const whose = typeof uid === "string" ? ` ${uid.slice(0, 128)}` : "";
  return dataRawErrors.bad_data_raw({ message: `data_raw tells no story of a notification${whose}: ${flaw}.` });
}

function flawOfFailure(story: unknown): string | undefined {
  if (!isObject(story) || !isObject(story.failure_info)) return "failure_info is no object";
  const { attempt, failure_info: info } = story;
  if (info.action !== "send" && info.action !== "check") return "action is neither send nor check";
  if (typeof info.identifier !== "string") return "identifier is no text";
  if (typeof info.retryable !== "boolean") return "retryable is neither true nor false";
  const flaw = info.action === "send" ? flawOfSendEntry(attempt) : flawOfCheckEntry(attempt);
  return flaw === undefined ? undefined : `attempt: ${flaw}`;
}

function flawOfSuccess(story: unknown): string | undefined {
  if (!isObject(story) || !isObject(story.attempt) || !isObject(story.result)) return "attempt or result is no object";
  const { attempt, result } = story;
  if (attempt.aud !== "success") return 'aud is not "success"';
  if (typeof attempt.uid !== "string" || typeof attempt.push_token !== "string") return "uid or push_token is no text";
  if (!isTime(attempt.initially_queued_at) || !isTime(result.ticket_created_at) || !isTime(result.receipt_checked_at))
    return "a time is none";
  return isObject(attempt.contents) && isObject(result.ticket) && isObject(result.receipt)
    ? undefined
    : "contents, ticket or receipt is no object";
}

type Now = Pick<Context, "clock">;

/** The text of the job that hears of a failed try. */
export function failureJob(
  ctx: Now,
  attempt: SendEntry | CheckEntry,
  failure: {
    readonly identifier: PushReceiptIdentifier;
    readonly retryable: boolean;
    readonly extra: string | null;
    readonly ticket?: PushTicket | null;
    readonly receipt?: PushReceipt | null;
  },
): string {
  const { identifier, retryable, ticket, receipt } = failure;
  const story: FailureStory = {
    attempt,
    failure_info: {
      action: attempt.aud,
      ticket: ticket ? { ...shortened(ticket), id: shorter(ticket.id) } : null,
      receipt: receipt ? shortened(receipt) : null,
      identifier,
      retryable,
      extra: shorter(failure.extra),
    },
  };
  return callback(ctx, attempt.failure_job, story);
}

/** The text of the job that hears of a notification's success. */
export function successJob(ctx: Now, entry: CheckEntry, receipt: PushReceipt): string {
  const { uid, attempt_initially_queued_at, push_token, contents, push_ticket, push_ticket_created_at } = entry;
  const story: SuccessStory = {
    attempt: { aud: "success", uid, initially_queued_at: attempt_initially_queued_at, push_token, contents },
    result: {
      ticket_created_at: push_ticket_created_at,
      ticket: { status: push_ticket.status, id: push_ticket.id, message: null, details: null },
      receipt_checked_at: ctx.clock.now(),
      receipt: shortened(receipt),
    },
  };
  return callback(ctx, entry.success_job, story);
}

function callback(ctx: Now, job: Callback, story: FailureStory | SuccessStory): string {
  return encodeCallback(job, encodeDataRaw(story), ctx.clock.now());
}

/** A provider's answer with as much of its words as a story has room for. */
function shortened<Answer extends PushReceipt>(answer: Answer): Answer {
  const { message, details } = answer;
  if (message === null && details === null) return answer;
  return { ...answer, message: shorter(message), details: sizeOf(details) > LARGEST_DETAILS ? null : details };
}

function shorter<Words extends string | null>(words: Words): Words {
  // A character has six bytes at most, written as JSON.
  if (words === null || words.length * 6 <= LONGEST_WORDS || sizeOf(words) <= LONGEST_WORDS) return words;
  return `${words.slice(0, LONGEST_WORDS / 6 - 1)}…` as Words;
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "");
}

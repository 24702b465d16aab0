import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { encodeJob } from "../../jobs/entry.ts";
import { dataRawErrors, decodeDataRaw, encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import type { PushReceipt, PushReceiptIdentifier, PushTicket } from "../../providers/push.ts";
import { type Callback, CheckEntry, Contents, SendEntry } from "./entries.ts";

/** What a callback is told in `data_raw`: the whole story of one notification. */

const Ticket = z.object({
  status: z.string(),
  id: z.string().nullable(),
  message: z.string().nullable(),
  details: z.unknown(),
});
const Receipt = Ticket.omit({ id: true });

export const FailureStory = z.object({
  attempt: z.discriminatedUnion("aud", [SendEntry, CheckEntry]),
  failure_info: z.object({
    action: z.enum(["send", "check"]),
    ticket: Ticket.nullable(),
    receipt: Receipt.nullable(),
    identifier: z.string(),
    /** True: the job must try again or give up, exactly one of the two. False: neither. */
    retryable: z.boolean(),
    extra: z.string().nullable(),
  }),
});
export type FailureStory = z.infer<typeof FailureStory>;

export const SuccessStory = z.object({
  attempt: z.object({
    aud: z.literal("success"),
    uid: z.string(),
    initially_queued_at: z.number(),
    push_token: z.string(),
    contents: Contents,
  }),
  result: z.object({ ticket_created_at: z.number(), ticket: Ticket, receipt_checked_at: z.number(), receipt: Receipt }),
});
export type SuccessStory = z.infer<typeof SuccessStory>;

/** Reads what a callback was given; raises `bad_data_raw` for anything else. */
export function readFailure(dataRaw: string): FailureStory {
  return checked(FailureStory, dataRaw);
}

export function readSuccess(dataRaw: string): SuccessStory {
  return checked(SuccessStory, dataRaw);
}

function checked<T>(schema: z.ZodType<T>, dataRaw: string): T {
  const parsed = schema.safeParse(decodeDataRaw(dataRaw));
  if (parsed.success) return parsed.data;
  throw dataRawErrors.bad_data_raw({
    message: `data_raw tells no story of a notification: ${z.prettifyError(parsed.error)}`,
  });
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
  const { identifier, retryable, extra, ticket = null, receipt = null } = failure;
  const action = attempt.aud;
  return callback(ctx, attempt.failure_job, [
    { attempt, failure_info: { action, ticket, receipt, identifier, retryable, extra } },
    // A provider's answer has no limit, and must not be what keeps the callback from being queued.
    { attempt, failure_info: { action, ticket: null, receipt: null, identifier, retryable, extra } },
  ]);
}

/** The text of the job that hears of a notification's success. */
export function successJob(ctx: Now, entry: CheckEntry, receipt: PushReceipt): string {
  const { uid, attempt_initially_queued_at, push_token, contents, push_ticket, push_ticket_created_at } = entry;
  const attempt = {
    aud: "success",
    uid,
    initially_queued_at: attempt_initially_queued_at,
    push_token,
    contents,
  };
  const result = {
    ticket_created_at: push_ticket_created_at,
    ticket: { status: push_ticket.status, id: push_ticket.id, message: null, details: null },
    receipt_checked_at: ctx.clock.now(),
    receipt,
  };
  const shortReceipt = { status: receipt.status, message: null, details: null };
  return callback(ctx, entry.success_job, [
    { attempt, result },
    { attempt, result: { ...result, receipt: shortReceipt } },
  ]);
}

function callback(ctx: Now, { name, kwargs }: Callback, stories: readonly [whole: object, shorter: object]): string {
  return encodeJob({ name, kwargs: { ...kwargs, data_raw: encodeShorter(stories) }, queued_at: ctx.clock.now() });
}

function encodeShorter([whole, shorter]: readonly [object, object]): string {
  try {
    return encodeDataRaw(whole);
  } catch (error) {
    if (!dataRawErrors.bad_data_raw.matches(error)) throw error;
    return encodeDataRaw(shorter);
  }
}

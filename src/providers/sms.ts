import type { Failure } from "./failure.ts";

/** A text message as the provider keeps it. */
export interface SmsResource {
  readonly sid: string;
  readonly status: string;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  /** Unix seconds by the provider's clock. */
  readonly dateUpdated: number | null;
}

export interface ListedSms extends SmsResource {
  readonly to: string;
  readonly body: string;
  /** Unix seconds by the provider's clock. */
  readonly dateCreated: number | null;
}

export type SmsIdentifier =
  | "ApplicationErrorRatelimit"
  | "ApplicationErrorOther"
  | "ClientError404"
  | "ClientError429"
  | "ClientErrorOther"
  | "ServerError"
  | "InternalError"
  | "NetworkError";

export type SmsFailure = Failure<SmsIdentifier>;

export type SmsOutcome =
  /** `succeeded`: already handed on, nothing more is waited for. `pending`: its status will change. */
  { readonly ok: true; readonly state: "pending" | "succeeded"; readonly resource: SmsResource } | SmsFailure;

export type SmsFetchOutcome = { readonly ok: true; readonly resource: SmsResource } | SmsFailure;
export type SmsListOutcome = { readonly ok: true; readonly messages: readonly ListedSms[] } | SmsFailure;

/** Hands text messages to carriers. None of the calls throws for what the provider or the network does. */
export interface SmsProvider {
  readonly name: string;
  create(message: {
    readonly to: string;
    readonly body: string;
    /** Where the provider posts each change of the status. */
    readonly statusCallback?: string;
  }): Promise<SmsOutcome>;
  fetch(sid: string): Promise<SmsFetchOutcome>;
  /** Messages to a number that were created at `since` (unix seconds) or later, newest first. */
  list(query: { readonly to: string; readonly since: number }): Promise<SmsListOutcome>;
}

export type SmsCategory = "pending" | "success" | "failure";

const PENDING = new Set(["queued", "accepted", "scheduled", "sending"]);
const SUCCESS = new Set(["sent", "delivered", "read"]);
/** `lost` is our own: the provider knows the message no more. */
const FAILURE = new Set(["failed", "undelivered", "canceled", "lost"]);

/** What a status means. One that was never seen before counts as pending, so that nothing is given up for a new word. */
export function smsCategory(status: string): SmsCategory {
  if (SUCCESS.has(status)) return "success";
  return FAILURE.has(status) ? "failure" : "pending";
}

/** True for the statuses that a provider may report. */
export const isKnownSmsStatus = (status: string): boolean =>
  status !== "lost" && (PENDING.has(status) || SUCCESS.has(status) || FAILURE.has(status));

/** Stands where a code would, when a message failed and nobody said why. */
export const NO_ERROR_CODE = "failure_status_without_error_code";

/** Codes that speak of our pace, not of the message. */
const RATE_LIMIT_CODES = new Set(["14107", "20429", "30022", "31206", "45010", "51002", "54009", "63017"]);
export const isRateLimitCode = (code: string): boolean => RATE_LIMIT_CODES.has(code);

/** Codes after which a number is not worth another message. */
export const UNREACHABLE_CODES: readonly string[] = [
  ..."21211 21408 21606 21610 21614".split(" "),
  ..."30004 30005 30006 30007 30010 30011".split(" "),
  ..."63032 63033".split(" "),
];

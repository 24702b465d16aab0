import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import { extraOf } from "./failure.ts";
import { type Answer, exchange, isRecord, jsonOf, textOrNull } from "./http-exchange.ts";
import {
  isKnownSmsStatus,
  isRateLimitCode,
  type ListedSms,
  NO_ERROR_CODE,
  type SmsFailure,
  type SmsFetchOutcome,
  type SmsIdentifier,
  type SmsListOutcome,
  type SmsOutcome,
  type SmsProvider,
  type SmsResource,
  smsCategory,
} from "./sms.ts";

export interface TwilioOptions {
  /** Of the account, where there are several. */
  readonly name?: string;
  readonly baseUrl: string;
  readonly accountSid: string;
  readonly authToken: string;
  readonly messagingServiceSid: string;
  /** Seconds. */
  readonly timeout: number;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly log: Log;
}

type Received = Answer & { readonly ok: true };
type Body = Readonly<Record<string, unknown>>;

const SID = /^(SM|MM)[0-9a-f]{32}$/;
/** Codes about the account and its keys; every other code is about a message. */
const ACCOUNT_CODE = /^20\d{3}$/;
const PAGE_SIZE = 100;
/** Nobody gets a thousand texts between a crash and the restart after it. */
const MAX_PAGES = 10;

/** The messages API of Twilio. */
export class TwilioSms implements SmsProvider {
  readonly name: string;
  readonly #options: TwilioOptions;
  readonly #origin: string;
  readonly #messages: string;

  constructor(options: TwilioOptions) {
    this.name = options.name ?? "twilio";
    this.#options = options;
    this.#origin = options.baseUrl.replace(/\/+$/, "");
    this.#messages = `/2010-04-01/Accounts/${encodeURIComponent(options.accountSid)}/Messages`;
  }

  async create(message: { to: string; body: string; statusCallback?: string }): Promise<SmsOutcome> {
    const form = new URLSearchParams({
      MessagingServiceSid: this.#options.messagingServiceSid,
      To: message.to,
      Body: message.body,
    });
    if (message.statusCallback !== undefined) form.set("StatusCallback", message.statusCallback);
    const answer = await this.#ask("POST", `${this.#messages}.json`, form);
    if (!answer.ok) return unanswered(answer);
    const body = jsonOf(answer.body);
    if (answer.status >= 300) return refused(answer, body);
    const resource = resourceOf(body);
    if (!resource) return failed("InternalError", null, false, extraOf(answer.body.toString("utf8")));
    const category = this.#categoryOf(resource);
    if (resource.errorCode !== null || category === "failure")
      return withCode(resource.errorCode ?? NO_ERROR_CODE, resource.errorMessage ?? resource.status);
    return { ok: true, state: category === "success" ? "succeeded" : "pending", resource };
  }

  async fetch(sid: string): Promise<SmsFetchOutcome> {
    if (!SID.test(sid)) return failed("InternalError", null, false, "not the sid of a message");
    const answer = await this.#ask("GET", `${this.#messages}/${sid}.json`);
    const failure = lookupFailure(answer);
    if (failure) return failure;
    const { body } = answer as Received;
    const resource = resourceOf(jsonOf(body));
    if (!resource) return failed("InternalError", null, false, extraOf(body.toString("utf8")));
    this.#categoryOf(resource);
    return { ok: true, resource };
  }

  /**
   * Pages run from the newest message back. The filter by date that the API has leaves out messages that still wait to
   * be sent, which are the very ones that somebody looks for after a crash; so dates are compared here.
   */
  async list(query: { to: string; since: number }): Promise<SmsListOutcome> {
    const messages: ListedSms[] = [];
    let path: string | null =
      `${this.#messages}.json?${new URLSearchParams({ To: query.to, PageSize: String(PAGE_SIZE) })}`;
    for (let page = 0; path !== null && page < MAX_PAGES; page++) {
      const answer = await this.#ask("GET", path);
      const failure = lookupFailure(answer);
      if (failure) return failure;
      const body = jsonOf((answer as Received).body);
      if (!isRecord(body) || !Array.isArray(body.messages))
        return failed("InternalError", null, false, "the answer is not a list of messages");
      const listed = body.messages.flatMap((item) => listedOf(item) ?? []);
      messages.push(...listed.filter(({ dateCreated }) => dateCreated === null || dateCreated >= query.since));
      const older = listed.some(({ dateCreated }) => dateCreated !== null && dateCreated < query.since);
      path = older ? null : nextPage(body);
    }
    return { ok: true, messages };
  }

  #categoryOf({ sid, status }: SmsResource) {
    if (!isKnownSmsStatus(status))
      this.#options.log.warn({ sid, status }, "Twilio reported a status that is not known; it counts as pending");
    return smsCategory(status);
  }

  #ask(method: "GET" | "POST", path: string, form?: URLSearchParams): Promise<Answer> {
    const { accountSid, authToken, timeout, userAgent, clock } = this.#options;
    const headers: Record<string, string> = {
      accept: "application/json",
      authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`,
      "user-agent": userAgent,
    };
    if (form) headers["content-type"] = "application/x-www-form-urlencoded; charset=utf-8";
    return exchange({ method, url: `${this.#origin}${path}`, headers, body: form?.toString(), timeout }, { clock });
  }
}

function failed(
  identifier: SmsIdentifier,
  subidentifier: string | null,
  retryable: boolean,
  extra: string | null,
  flags: Pick<SmsFailure, "credentials" | "backoff" | "outage" | "untaken"> = {},
): SmsFailure {
  return { ok: false, identifier, subidentifier, retryable, extra, ...flags };
}

function unanswered({ error, unreached }: Answer & { readonly ok: false }): SmsFailure {
  const untaken = unreached ? { untaken: true as const } : {};
  return failed("NetworkError", null, true, error, { backoff: true, outage: true, ...untaken });
}

const serverError = (status: number) =>
  failed("ServerError", String(status), true, null, { backoff: true, outage: true });

function withCode(code: string, message: string | null, status = 0): SmsFailure {
  const extra = message === null ? null : extraOf(message);
  if (status === 429 || isRateLimitCode(code))
    return failed("ApplicationErrorRatelimit", code, true, extra, { backoff: true });
  return failed("ApplicationErrorOther", code, false, extra);
}

/** A create that was not taken. */
function refused({ status }: Received, body: unknown): SmsFailure {
  if (status >= 500) return serverError(status);
  const code = isRecord(body) ? (codeOf(body.code) ?? codeOf(body.error_code)) : null;
  const credentials = refusesUs(status, code) ? { credentials: true as const } : {};
  if (code !== null) return { ...withCode(code, textOrNull((body as Body).message), status), ...credentials };
  if (status === 429) return failed("ClientError429", null, true, null, { backoff: true });
  return failed("ClientErrorOther", String(status), false, null, { backoff: true, ...credentials });
}

/** Reading a message or a list: by the status alone, because codes there speak of the request. */
function lookupFailure(answer: Answer): SmsFailure | undefined {
  if (!answer.ok) return unanswered(answer);
  const { status } = answer;
  if (status >= 200 && status < 300) return undefined;
  if (status >= 500) return serverError(status);
  if (status === 404) return failed("ClientError404", null, false, null);
  if (status === 429) return failed("ClientError429", null, true, null, { backoff: true });
  const body = jsonOf(answer.body);
  const code = isRecord(body) ? codeOf(body.code) : null;
  return failed("ClientErrorOther", String(status), false, code, refusesUs(status, code) ? { credentials: true } : {});
}

/** A 403 may also forbid one recipient; treating that as wrong keys would stop the whole queue for one number. */
function refusesUs(status: number, code: string | null): boolean {
  return status === 401 || (status === 403 && (code === null || ACCOUNT_CODE.test(code)));
}

function resourceOf(body: unknown): SmsResource | undefined {
  if (!isRecord(body)) return undefined;
  const { sid, status } = body;
  if (typeof sid !== "string" || sid === "" || typeof status !== "string" || status === "") return undefined;
  return {
    sid,
    status,
    errorCode: codeOf(body.error_code),
    errorMessage: textOrNull(body.error_message),
    dateUpdated: timeOf(body.date_updated),
  };
}

function listedOf(item: unknown): ListedSms | undefined {
  const resource = resourceOf(item);
  if (!resource) return undefined;
  const { to, body, date_created } = item as Body;
  return { ...resource, to: textOrNull(to) ?? "", body: textOrNull(body) ?? "", dateCreated: timeOf(date_created) };
}

/** Codes come as numbers or as text; in this house they are text. */
function codeOf(value: unknown): string | null {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  return typeof value === "string" && value !== "" ? value : null;
}

/** `Thu, 24 Aug 2023 05:01:45 +0000` as unix seconds. */
function timeOf(value: unknown): number | null {
  const milliseconds = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(milliseconds) ? null : milliseconds / 1000;
}

/** Only a path: the next page is asked of the same server, whatever the answer says. */
function nextPage({ next_page_uri }: Body): string | null {
  return typeof next_page_uri === "string" && /^\/[^/]/.test(next_page_uri) ? next_page_uri : null;
}

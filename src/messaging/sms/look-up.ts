import type { Context } from "../../jobs/context.ts";
import {
  isRateLimitCode,
  type ListedSms,
  NO_ERROR_CODE,
  type SmsFailure,
  type SmsOutcome,
  smsCategory,
} from "../../providers/sms.ts";
import type { SmsEntry } from "./entries.ts";
import { pendingMessages } from "./line.ts";

/** Seconds that our clock and the provider's may differ. */
const SKEW = 5;

type LookUpContext = Pick<Context, "redis" | "clock" | "alerts" | "log" | "providers">;

/**
 * Finds out whether the provider has a text already, for those that a dead run or an unanswered request left in doubt. A
 * message to the number with the same words, made since the text was queued, and not known to be another text, is it.
 * Two texts with the same words to the same number are the same to the person who gets them, so taking one for the
 * other is better than sending twice.
 */
export class LookUp {
  readonly #ctx: LookUpContext;
  readonly #taken = new Set<string>();

  constructor(ctx: LookUpContext) {
    this.#ctx = ctx;
  }

  /** How the text fared, a failure when the provider cannot be asked, or nothing when it does not have it. */
  async find(entry: SmsEntry): Promise<SmsOutcome | undefined> {
    const since = Math.floor(entry.unanswered_since ?? entry.last_queued_at) - SKEW;
    const listed = await this.#ctx.providers.sms.list({ to: entry.phone_number, since });
    // What will not go better later is no reason to hold the text back.
    if (!listed.ok) return listed.retryable || listed.credentials ? listed : undefined;
    const equal = listed.messages.filter(({ body, sid }) => body === entry.body && !this.#taken.has(sid));
    if (equal.length === 0) return undefined;
    const sids = equal.slice(0, 500).map(({ sid }) => sid);
    const { results } = await pendingMessages.get(this.#ctx, sids);
    const found = equal.find(({ sid }, at) => results[at] === undefined && !this.#taken.has(sid));
    if (!found) return undefined;
    this.#taken.add(found.sid);
    return outcomeOf(found);
  }
}

function outcomeOf(message: ListedSms): SmsOutcome {
  const category = smsCategory(message.status);
  const { sid, status, errorCode, errorMessage, dateUpdated } = message;
  const resource = { sid, status, errorCode, errorMessage, dateUpdated };
  if (category === "failure") return failureOf(errorCode ?? NO_ERROR_CODE, errorMessage ?? status);
  return { ok: true, state: category === "success" ? "succeeded" : "pending", resource };
}

function failureOf(code: string, extra: string): SmsFailure {
  const busy = isRateLimitCode(code);
  return {
    ok: false,
    identifier: busy ? "ApplicationErrorRatelimit" : "ApplicationErrorOther",
    subidentifier: code,
    retryable: busy,
    extra,
  };
}

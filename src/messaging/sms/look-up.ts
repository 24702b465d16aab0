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
import { keys } from "./keys.ts";

/** Seconds that our clock and the provider's may differ. */
const SKEW = 5;

type LookUpContext = Pick<Context, "redis" | "providers">;

/** What came of a text: from the provider, or from looking it up there. */
export interface Delivery {
  readonly outcome: SmsOutcome;
  /** Who was given the text. */
  readonly provider?: string | null;
  /** The message that this text became, as soon as one is known. */
  readonly sid?: string;
  /** Since when the provider may have the text without our knowing: it could not be asked. */
  readonly unansweredSince?: number;
}

/**
 * Finds out whether the provider has a text already, for those that a dead run or an unanswered request left in doubt. A
 * message to the number with the same words, made since the text was handed over, is that text, unless it is known to be
 * another one: whatever the provider took is remembered in `sms:recent_sids` from the moment that is written down, and in
 * `#answered` until then. So each message is taken for one text only, however many have the same words.
 */
export class LookUp {
  readonly #ctx: LookUpContext;
  readonly #answered = new Set<string>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(ctx: LookUpContext) {
    this.#ctx = ctx;
  }

  /** How a text in doubt fared, a failure when the provider cannot be asked, or nothing when it does not have it. */
  async find(entry: SmsEntry): Promise<Delivery | undefined> {
    const unansweredSince = entry.unanswered_since ?? entry.last_queued_at;
    const since = Math.floor(unansweredSince) - SKEW;
    const listed = await this.#ctx.providers.sms.list({ to: entry.phone_number, since });
    // What will not go better later is no reason to hold the text back; anything else leaves the doubt as it was.
    if (!listed.ok) return listed.retryable || listed.credentials ? { outcome: listed, unansweredSince } : undefined;
    const words = entry.body.trim();
    const free = listed.messages.filter(({ body, sid }) => body.trim() === words && !this.#answered.has(sid));
    const found = await this.#oldestUnknown(free);
    return found && { outcome: outcomeOf(found), provider: found.provider, sid: found.sid };
  }

  /** Has equal texts to one number go one after the other, so that none is looked up while another is under way. */
  inTurn<A extends Delivery | "held">(entry: SmsEntry, deliver: () => Promise<A>): Promise<A> {
    const name = `${entry.phone_number} ${entry.body}`;
    const before = this.#turns.get(name);
    const delivery = (before ? before.then(deliver) : deliver()).then((done) => {
      if (done !== "held" && done.sid !== undefined) this.#answered.add(done.sid);
      return done;
    });
    const ended = delivery.then(
      () => {},
      () => {},
    );
    this.#turns.set(name, ended);
    void ended.then(() => {
      if (this.#turns.get(name) === ended) this.#turns.delete(name);
    });
    return delivery;
  }

  /** These are written down now, or will never be. */
  settled(sids: Iterable<string | undefined>): void {
    for (const sid of sids) if (sid !== undefined) this.#answered.delete(sid);
  }

  async #oldestUnknown<M extends ListedSms>(messages: readonly M[]): Promise<M | undefined> {
    if (messages.length === 0) return undefined;
    const { commands, topology } = this.#ctx.redis;
    const known = await commands.zmscore(topology.key(keys.recentSids()), ...messages.map(({ sid }) => sid));
    return messages.findLast((_, at) => known[at] === null);
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

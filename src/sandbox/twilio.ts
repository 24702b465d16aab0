import type { Clock } from "../kernel/clock.ts";
import type { Agenda } from "./agenda.ts";
import type { Answer, Asked } from "./exchange.ts";
import { type Met, meetFate } from "./fates.ts";
import { isOut, strike, TWILIO_MESSAGE_FAULTS, TWILIO_REQUEST_FAULTS, takeFailure, takeTime } from "./faults.ts";
import { Gauge } from "./gauge.ts";
import type { Inbox, Moment, SandboxMessage } from "./inbox.ts";
import { type Knobs, TWILIO_WALK, type TwilioKnobs } from "./knobs.ts";
import { seededHex } from "./seeded-random.ts";
import { type Form, TwilioCallbacks } from "./twilio-callbacks.ts";
import { codeOfStatus, MAGIC_NUMBERS, twilioError } from "./twilio-errors.ts";

const E164 = /^\+[1-9]\d{6,14}$/;
const LONGEST_BODY = 1600;
const STOP_WORDS = /^(stop|stopall|unsubscribe|cancel|end|quit|optout|revoke)$/;
const START_WORDS = /^(start|yes|unstop)$/;
const MALFORMED: Readonly<Record<string, TwilioKnobs["malformed"]>> = {
  malformed_json: "json",
  malformed_structure: "structure",
};
/** How texts end that a share of failures strikes. */
const DRAWN_ENDS = {
  failed: { status: "failed", code: 30_008 },
  undelivered: { status: "undelivered", code: 30_003 },
  canceled: { status: "canceled", code: undefined },
} as const;
const MOST_LISTED = 1000;
/** Resources outlive the inbox, which is short and may be emptied. */
const MOST_KEPT = 50_000;

export interface TwilioAccount {
  readonly accountSid: string;
  readonly authToken: string;
}

export interface InboundText {
  /** The person's number. */
  readonly from: string;
  /** The service's number. */
  readonly to?: string;
  readonly body: string;
}

/**
 * Twilio's messaging: create, fetch and list, the walk of a message through its statuses, status callbacks and inbound
 * texts.
 *
 * A created message gets its whole walk as steps ahead, one each `stepSeconds`; fetch and list answer the step that the
 * clock has reached, and a callback is entered for every step after the first. Whether it ends well is settled at creation
 * by `finalStatus` and `stuckAt`; an action of the inbox replaces the steps still ahead.
 */
export class TwilioSimulator {
  /** The number that texts come from. */
  readonly number = "+15005550006";
  readonly account: TwilioAccount;
  /** Numbers that have said STOP. */
  readonly stopped = new Set<string>();
  readonly #clock: Clock;
  readonly #agenda: Agenda;
  readonly #knobs: Knobs;
  readonly #inbox: Inbox;
  readonly #random: () => number;
  readonly #inboundUrl: () => string;
  readonly #statusUrl: () => string | undefined;
  readonly #gauge: Gauge;
  readonly #callbacks: TwilioCallbacks;
  readonly #path: string;
  readonly #resources = new Map<string, SandboxMessage>();

  constructor(plan: {
    clock: Clock;
    agenda: Agenda;
    knobs: Knobs;
    inbox: Inbox;
    random: () => number;
    account: TwilioAccount;
    inboundUrl: () => string;
    /** Where the messaging service reports texts that name no address of their own. */
    statusUrl: () => string | undefined;
  }) {
    this.account = plan.account;
    this.#clock = plan.clock;
    this.#agenda = plan.agenda;
    this.#knobs = plan.knobs;
    this.#inbox = plan.inbox;
    this.#random = plan.random;
    this.#inboundUrl = plan.inboundUrl;
    this.#statusUrl = plan.statusUrl;
    this.#gauge = new Gauge(plan.clock, 1);
    this.#callbacks = new TwilioCallbacks({ ...plan, authToken: plan.account.authToken });
    this.#path = `/2010-04-01/Accounts/${plan.account.accountSid}/Messages`;
    // What an earlier process took can still be looked up, and who had said STOP is still left alone.
    for (const message of plan.inbox.all()) {
      if (message.provider !== "twilio") continue;
      if (message.direction === "in") this.#heed(message.from ?? "", message.text);
      else this.#resources.set(message.provider_id, message);
    }
  }

  async answer(asked: Asked): Promise<Answer> {
    if (!asked.path.startsWith("/2010-04-01/")) return undefined;
    const knobs = this.#knobs.twilio;
    if (knobs.latencyMs > 0) await this.#agenda.pause(knobs.latencyMs / 1000);
    if (isOut(knobs.outage, this.#clock.now())) return twilioError(503, 20503);
    const failure = takeFailure(knobs);
    if (failure)
      return twilioError(failure.status, failure.code === undefined ? codeOfStatus(failure.status) : failure.code);
    if (knobs.errorRate > 0 && this.#random() < knobs.errorRate) return twilioError(500, 20500);
    const fault = strike(knobs.faultRates, TWILIO_REQUEST_FAULTS, this.#random);
    if (fault === "reset") return "cut";
    if (fault === "silence") return fault;
    if (/^\d/.test(fault ?? "")) return twilioError(Number(fault), codeOfStatus(Number(fault)));
    if (asked.headers.authorization !== this.#credentials()) return twilioError(401, 20003);
    if (!this.#gauge.admit(1, knobs.ratePerSecond)) return twilioError(429, 20429);
    const malformed = knobs.malformed ?? MALFORMED[fault ?? ""] ?? null;
    if (asked.path === `${this.#path}.json`) {
      if (asked.method !== "POST") return garbled(malformed) ?? this.#list(asked);
      const created = this.#create(asked);
      if (fault === "cut_after_create") return "cut";
      return (typeof created === "object" && created.status < 300 ? garbled(malformed, 201) : undefined) ?? created;
    }
    const sid = asked.path.startsWith(`${this.#path}/`)
      ? /^((SM|MM)[0-9a-f]{32})\.json$/.exec(asked.path.slice(this.#path.length + 1))?.[1]
      : undefined;
    const message = sid === undefined ? undefined : this.#find(sid);
    if (!message || asked.method !== "GET") return twilioError(404, 20404);
    return garbled(malformed) ?? { status: 200, json: this.#resource(message) };
  }

  /** A text from a person to the house, with a valid signature. Answers what the webhook answered. */
  async inbound({ from, to = this.number, body }: InboundText): Promise<number | null> {
    this.#heed(from, body);
    const sid = `SM${seededHex(this.#random, 32)}`;
    const at = this.#clock.now();
    const message = this.#inbox.add({
      channel: "sms",
      direction: "in",
      provider: "twilio",
      provider_id: sid,
      to,
      from,
      subject: null,
      text: body,
      moments: [{ status: "received", at }],
      fields: {},
    });
    const url = this.#inboundUrl();
    const answered = await this.#callbacks.post(url, {
      ...this.#identity(sid, { from, to }),
      SmsStatus: "received",
      Body: body,
      NumMedia: "0",
      NumSegments: "1",
    });
    this.#inbox.heard(message, { kind: "inbound", url, at, answered });
    return answered;
  }

  /** Leads a message on to another end than it was on the way to. */
  settle(message: SandboxMessage, plan: { afterSeconds?: number; status: string; code?: number }): void {
    const at = this.#clock.now() + (plan.afterSeconds ?? 0);
    const moment: Moment = { status: plan.status, at, error: plan.code?.toString() };
    this.#inbox.redirect(message, [moment]);
    this.#announce(message, [moment]);
  }

  /** Repeats the last status callback. */
  repeat(message: SandboxMessage): void {
    const moment = this.#inbox.statusOf(message);
    this.#announce(message, [moment]);
  }

  #heed(from: string, body: string): void {
    const word = body
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s]/gu, "");
    if (STOP_WORDS.test(word)) this.stopped.add(from);
    if (START_WORDS.test(word)) this.stopped.delete(from);
  }

  #credentials(): string {
    const { accountSid, authToken } = this.account;
    return `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`;
  }

  #create(asked: Asked): Answer {
    const form = new URLSearchParams(asked.body.toString("utf8"));
    const [to, body] = [form.get("To") ?? "", form.get("Body") ?? ""];
    const service = form.get("MessagingServiceSid");
    const refused = this.#refusal(to, body, form.get("From") ?? service);
    if (refused !== undefined) return twilioError(400, refused);
    const fate = meetFate(this.#knobs.recipients, to);
    if (fate?.kind === "transient") return twilioError(503, 20_503);
    const callback = form.get("StatusCallback") ?? this.#statusUrl();
    const moments = this.#walk(to, fate);
    const message = this.#inbox.add({
      channel: "sms",
      direction: "out",
      provider: "twilio",
      provider_id: `SM${seededHex(this.#random, 32)}`,
      to,
      from: form.get("From") ?? this.number,
      subject: null,
      text: body,
      moments,
      fields: { ...(service ? { service } : {}), ...(callback ? { callback } : {}), segments: segments(body) },
    });
    this.#resources.set(message.provider_id, message);
    if (this.#resources.size > MOST_KEPT) this.#resources.delete(this.#resources.keys().next().value!);
    this.#announce(message, moments.slice(1));
    if (takeTime(this.#knobs.twilio, "dropConnectionAfterCreate")) return "cut";
    return { status: 201, json: this.#resource(message) };
  }

  #refusal(to: string, body: string, sender: string | null): number | undefined {
    if (to === "") return 21604;
    if (!sender) return 21603;
    if (body === "") return 21602;
    if (body.length > LONGEST_BODY) return 21617;
    if (MAGIC_NUMBERS[to] !== undefined) return MAGIC_NUMBERS[to];
    if (!E164.test(to)) return 21211;
    return this.stopped.has(to) ? 21610 : undefined;
  }

  #walk(to: string, fate: Met | undefined): Moment[] {
    const { finalStatus, stuckAt, stepSeconds, messageFaultRates } = this.#knobs.twilio;
    const fault = strike(messageFaultRates, TWILIO_MESSAGE_FAULTS, this.#random);
    const fated = fate?.kind === "permanent" ? ({ status: "failed", code: 30_005 } as const) : undefined;
    const end = finalStatus[to] ?? fated ?? (fault === undefined || fault === "stuck" ? undefined : DRAWN_ENDS[fault]);
    const until = end === undefined ? "delivered" : end.status;
    // A refused message fails before it leaves; one that the carrier gives up on had been sent.
    const way: string[] =
      until === "failed" || until === "canceled"
        ? ["accepted", "queued", "sending", until]
        : until === "sent"
          ? ["accepted", "queued", "sending", "sent"]
          : until === "delivered"
            ? [...TWILIO_WALK]
            : until === "read"
              ? [...TWILIO_WALK, "read"]
              : ["accepted", "queued", "sending", "sent", until];
    const stuck =
      fault === "stuck" || fate?.kind === "never"
        ? way.indexOf("sending")
        : stuckAt === null
          ? -1
          : way.indexOf(stuckAt);
    const reached = stuck < 0 ? way : way.slice(0, stuck + 1);
    const now = this.#clock.now();
    return reached.map((status, index) => ({
      status,
      at:
        fate?.kind === "after" && index === reached.length - 1
          ? now + Math.max(fate.seconds, index * stepSeconds)
          : now + index * stepSeconds,
      ...(end?.code !== undefined && status === until ? { error: String(end.code) } : {}),
    }));
  }

  #announce(message: SandboxMessage, moments: readonly Moment[]): void {
    const url = message.fields.callback;
    if (typeof url !== "string") return;
    this.#callbacks.plan(message, moments, url, ({ status, error }) => ({
      ...this.#identity(message.provider_id, { from: message.from ?? this.number, to: message.to }),
      ...(typeof message.fields.service === "string" ? { MessagingServiceSid: message.fields.service } : {}),
      MessageStatus: status,
      SmsStatus: status,
      ...(error === undefined ? {} : { ErrorCode: error }),
    }));
  }

  #identity(sid: string, { from, to }: { from: string; to: string }): Form {
    const { accountSid } = this.account;
    return { AccountSid: accountSid, ApiVersion: "2010-04-01", From: from, To: to, MessageSid: sid, SmsSid: sid };
  }

  #find(sid: string): SandboxMessage | undefined {
    const gone = [this.#knobs.twilio.deleteResource ?? []].flat();
    return gone.includes(sid) ? undefined : this.#resources.get(sid);
  }

  #list({ query }: Asked): Answer {
    const after = timeOf(query.get("DateSent>")) ?? timeOf(query.get("DateSent")) ?? Number.NEGATIVE_INFINITY;
    const before = endOf(query.get("DateSent<")) ?? endOf(query.get("DateSent")) ?? Number.POSITIVE_INFINITY;
    const size = Math.min(Number(query.get("PageSize") ?? 50) || 50, MOST_LISTED);
    const page = Number(query.get("Page") ?? 0) || 0;
    const wanted = (name: string, value: string | null) => !query.has(name) || query.get(name) === value;
    const found = [...this.#resources.values()]
      .reverse()
      .filter(
        (message) =>
          wanted("To", message.to) &&
          wanted("From", message.from) &&
          Math.floor(message.at) >= after &&
          message.at <= before &&
          this.#find(message.provider_id) !== undefined,
      );
    const uri = (number: number) => {
      const search = new URLSearchParams(query);
      search.set("Page", String(number));
      search.set("PageSize", String(size));
      return `${this.#path}.json?${search}`;
    };
    return {
      status: 200,
      json: {
        messages: found.slice(page * size, (page + 1) * size).map((message) => this.#resource(message)),
        page,
        page_size: size,
        start: page * size,
        end: Math.max(0, Math.min(found.length, (page + 1) * size) - 1),
        uri: uri(page),
        first_page_uri: uri(0),
        previous_page_uri: page > 0 ? uri(page - 1) : null,
        next_page_uri: (page + 1) * size < found.length ? uri(page + 1) : null,
      },
    };
  }

  #resource(message: SandboxMessage): Record<string, unknown> {
    const { status, at, error } = this.#inbox.statusOf(message);
    const sent = this.#inbox.historyOf(message).find((moment) => moment.status === "sent")?.at;
    const uri = `${this.#path}/${message.provider_id}`;
    return {
      sid: message.provider_id,
      account_sid: this.account.accountSid,
      messaging_service_sid: message.fields.service ?? null,
      status,
      error_code: error === undefined ? null : Number(error),
      error_message: error === undefined ? null : `The message ended with error ${error}.`,
      body: message.text,
      to: message.to,
      from: status === "accepted" ? null : message.from,
      direction: message.direction === "in" ? "inbound" : "outbound-api",
      num_segments: String(message.fields.segments ?? 1),
      num_media: "0",
      price: null,
      price_unit: "USD",
      api_version: "2010-04-01",
      date_created: rfc2822(message.at),
      date_sent: sent === undefined ? null : rfc2822(sent),
      date_updated: rfc2822(at),
      uri: `${uri}.json`,
      subresource_uris: { media: `${uri}/Media.json` },
    };
  }
}

/** An answer that nobody can use, if there is to be one. */
function garbled(how: TwilioKnobs["malformed"], status = 200): Answer {
  if (how === "json") return { status, text: '{"sid":"SM', headers: { "content-type": "application/json" } };
  return how === "structure" ? { status, json: { status: "queued" } } : undefined;
}

/** `Thu, 24 Aug 2023 05:01:45 +0000` */
function rfc2822(seconds: number): string {
  return new Date(seconds * 1000).toUTCString().replace("GMT", "+0000");
}

/** A day or a moment, as Twilio takes both. */
function timeOf(text: string | null): number | undefined {
  const time = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? undefined : Math.floor(time / 1000);
}

function endOf(text: string | null): number | undefined {
  const time = timeOf(text);
  return time === undefined ? undefined : /^\d{4}-\d\d-\d\d$/.test(text!) ? time + 86_400 : time;
}

/** How many texts a body becomes: 160 or 153 characters of the basic alphabet, 70 or 67 of any other. */
function segments(body: string): number {
  const basic = /^[\x20-\x7e\r\n£¥èéùìòÇØøÅåÆæßÉÄÖÑÜ§äöñüà€¿¡]*$/.test(body);
  const [alone, joined] = basic ? [160, 153] : [70, 67];
  return body.length <= alone ? 1 : Math.ceil(body.length / joined);
}

import { createTransport } from "nodemailer";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import type { Agenda } from "./agenda.ts";
import { refusal, refusalOf, SES_ERRORS, type SesError } from "./aws-errors.ts";
import type { Answer, Asked } from "./exchange.ts";
import { meetFate } from "./fates.ts";
import { isOut, SES_MAIL_FAULTS, strike } from "./faults.ts";
import { Gauge } from "./gauge.ts";
import type { Inbox, Moment, SandboxMessage } from "./inbox.ts";
import type { Knobs, SesKnobs } from "./knobs.ts";
import { readMail } from "./mail-reader.ts";
import { seededHex } from "./seeded-random.ts";
import { errorOf, type Notice, noticeIn, noticesOf, notificationOf, outcomeOf, statusOf } from "./ses-notices.ts";
import type { SnsTopic } from "./sns.ts";

const SIGNATURE =
  /^AWS4-HMAC-SHA256 Credential=[^/\s,]+\/\d{8}\/[a-z0-9-]+\/ses\/aws4_request, ?SignedHeaders=[a-z0-9;-]+, ?Signature=[0-9a-f]{64}$/;
export const DAY = 86_400;
const MOST_RECIPIENTS = 50;
const DEFAULT_RATE = 14;
const DEFAULT_QUOTA = 50_000;

const Addresses = z.array(z.string()).optional();
const Part = z.object({ Data: z.string(), Charset: z.string().optional() });
const SendEmail = z.object({
  FromEmailAddress: z.string().optional(),
  Destination: z
    .object({ ToAddresses: Addresses, CcAddresses: Addresses, BccAddresses: Addresses })
    .partial()
    .optional(),
  ReplyToAddresses: Addresses,
  ConfigurationSetName: z.string().optional(),
  EmailTags: z.array(z.object({ Name: z.string(), Value: z.string() })).optional(),
  Content: z.object({
    Raw: z.object({ Data: z.string() }).optional(),
    Simple: z.object({ Subject: Part, Body: z.object({ Text: Part.optional(), Html: Part.optional() }) }).optional(),
  }),
});
const Suppress = z.object({ EmailAddress: z.string(), Reason: z.enum(["BOUNCE", "COMPLAINT"]) });

/**
 * Amazon's mail service, version 2: sending, the account's quota, the account's suppression list, and what it reports
 * through SNS. A mail that is accepted gets its outcome at once, by its receiver; the report comes `notify_delay_s` later.
 */
export class SesSimulator {
  readonly topic: SnsTopic;
  readonly #clock: Clock;
  readonly #agenda: Agenda;
  readonly #knobs: Knobs;
  readonly #inbox: Inbox;
  readonly #random: () => number;
  readonly #second: Gauge;
  readonly #day: Gauge;
  readonly #suppressed = new Map<string, { reason: string; at: number }>();
  readonly #notices = new WeakMap<Moment, Notice>();

  constructor(plan: {
    clock: Clock;
    agenda: Agenda;
    knobs: Knobs;
    inbox: Inbox;
    random: () => number;
    topic: SnsTopic;
  }) {
    this.topic = plan.topic;
    this.#clock = plan.clock;
    this.#agenda = plan.agenda;
    this.#knobs = plan.knobs;
    this.#inbox = plan.inbox;
    this.#random = plan.random;
    this.#second = new Gauge(plan.clock, 1);
    this.#day = new Gauge(plan.clock, DAY);
  }

  async answer(asked: Asked): Promise<Answer> {
    if (!asked.path.startsWith("/v2/email/")) return this.topic.answer(asked);
    const knobs = this.#knobs.ses;
    if (knobs.latency_ms > 0) await this.#agenda.pause(knobs.latency_ms / 1000);
    if (isOut(knobs.outage, this.#clock.now())) return refusal(503, "ServiceUnavailable", "The service is down.");
    const sending = asked.method === "POST" && asked.path === "/v2/email/outbound-emails";
    const error = sending ? takeError(knobs, this.#random) : undefined;
    if (error === "reset") return "cut";
    const refused = error && refusalOf(error);
    if (refused) return refusal(refused.status, refused.name, refused.says);
    const { authorization } = asked.headers;
    if (authorization === undefined)
      return refusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token");
    if (!SIGNATURE.test(authorization) || asked.headers["x-amz-date"] === undefined)
      return refusal(403, "IncompleteSignatureException", "The authorization header is not of Signature Version 4.");
    if (sending) return this.#send(asked, error);
    if (asked.method === "GET" && asked.path === "/v2/email/account") return this.#account();
    if (/^\/v2\/email\/suppression\/addresses(\/|$)/.test(asked.path)) return this.#suppression(asked);
    return refusal(404, "NotFoundException", "There is no such resource.");
  }

  /** The provider changes its mind, or makes it up: a report of this kind follows. */
  settle(message: SandboxMessage, notice: Notice, afterSeconds = 0): void {
    const at = this.#clock.now() + afterSeconds;
    const moment = this.#moment(notice, at);
    this.#inbox.redirect(message, [moment]);
    this.#report(message, moment);
  }

  /** Sends the last report again, as a new notification; false when there was none. */
  repeat(message: SandboxMessage): boolean {
    const last = this.#inbox.statusOf(message);
    if (this.#noticeOf(last) === undefined) return false;
    this.#report(message, last);
    return true;
  }

  async #send(asked: Asked, error: SesError | undefined): Promise<Answer> {
    const knobs = this.#knobs.ses;
    const request = SendEmail.safeParse(parsed(asked.body));
    if (!request.success) return refusal(400, "BadRequestException", "The request is not a SendEmail.");
    if (!this.#second.admit(1, knobs.max_per_second))
      return refusal(429, "TooManyRequestsException", "Maximum sending rate exceeded.");
    if (!this.#day.admit(1, knobs.quota_24h))
      return refusal(400, "LimitExceededException", "Daily message quota exceeded.");
    const raw = await rawOf(request.data);
    if (raw === undefined) return refusal(400, "BadRequestException", "The content has neither Raw nor Simple.");
    const mail = await readMail(raw);
    const { ToAddresses = [], CcAddresses = [], BccAddresses = [] } = request.data.Destination ?? {};
    const named = [...ToAddresses, ...CcAddresses, ...BccAddresses].map(bareAddress);
    const receivers = named.length > 0 ? named : mail.to;
    if (receivers.length === 0 || receivers.length > MOST_RECIPIENTS)
      return refusal(400, "BadRequestException", `A mail has 1 to ${MOST_RECIPIENTS} receivers.`);
    const from = request.data.FromEmailAddress ?? mail.from;
    if (!from) return refusal(400, "BadRequestException", "The mail has no sender.");
    const messageId = `0100${seededHex(this.#random, 12)}-${[8, 4, 4, 4, 12].map((digits) => seededHex(this.#random, digits)).join("-")}-000000`;
    const now = this.#clock.now();
    const tags = Object.fromEntries((request.data.EmailTags ?? []).map(({ Name, Value }) => [Name, Value]));
    const fates = receivers.map((to) => meetFate(this.#knobs.recipients, to));
    if (fates.some((fate) => fate?.kind === "transient"))
      return refusal(503, "ServiceUnavailableException", "The mail service cannot take this mail right now.");
    const messages = receivers.map((to, at) => {
      const fate = fates[at];
      const drawn = strike(knobs.mail_fault_rates, SES_MAIL_FAULTS, this.#random);
      const outcome = this.#suppressed.has(to.toLowerCase())
        ? "suppressionlist"
        : fate?.kind === "never"
          ? "silent"
          : fate?.kind === "permanent"
            ? "bounce"
            : (drawn ?? outcomeOf(to, knobs.rules));
      const delay = fate?.kind === "after" ? fate.seconds : knobs.notify_delay_s;
      const ahead = noticesOf(outcome).map((notice) => this.#moment(notice, now + delay));
      return this.#inbox.add({
        channel: "email",
        direction: "out",
        provider: "ses",
        provider_id: messageId,
        to,
        from: bareAddress(from),
        subject: mail.subject,
        text: mail.text ?? "",
        moments: [{ status: "accepted", at: now }, ...ahead],
        fields: { tags, configuration_set: request.data.ConfigurationSetName ?? null },
        raw,
        mail,
      });
    });
    if (knobs.notify_before_response) {
      for (const message of messages)
        for (const moment of message.moments.slice(1)) await this.#publish(message, moment);
    } else for (const message of messages) for (const moment of message.moments.slice(1)) this.#report(message, moment);
    if (error === "timeout-after-accept") return "silence";
    return { status: 200, json: error === "no-message-id" ? {} : { MessageId: messageId } };
  }

  #moment(notice: Notice, at: number): Moment {
    const error = errorOf(notice);
    const moment = { status: statusOf(notice), at, ...(error === undefined ? {} : { error }) };
    this.#notices.set(moment, notice);
    return moment;
  }

  /** Of a message that an earlier process took only its history is left, which says as much. */
  #noticeOf(moment: Moment): Notice | undefined {
    return this.#notices.get(moment) ?? noticeIn(moment);
  }

  #report(message: SandboxMessage, moment: Moment): void {
    this.#agenda.at(moment.at, message.id, async () => {
      if (message.moments.includes(moment)) await this.#publish(message, moment);
    });
  }

  #publish(message: SandboxMessage, moment: Moment): Promise<void> {
    return this.topic.publish(notificationOf(this.#noticeOf(moment)!, message, this.#clock.now()), message);
  }

  #account(): Answer {
    const { max_per_second, quota_24h, error, fail_next } = this.#knobs.ses;
    return {
      status: 200,
      json: {
        DedicatedIpAutoWarmupEnabled: false,
        EnforcementStatus: "HEALTHY",
        ProductionAccessEnabled: true,
        SendQuota: {
          Max24HourSend: quota_24h ?? DEFAULT_QUOTA,
          MaxSendRate: max_per_second ?? DEFAULT_RATE,
          SentLast24Hours: this.#day.total,
        },
        SendingEnabled: !(error === "SendingPausedException" && fail_next > 0),
      },
    };
  }

  #suppression(asked: Asked): Answer {
    const name = asked.path.slice("/v2/email/suppression/addresses/".length);
    const address = decodeURIComponent(name).toLowerCase();
    const shown = (email: string, { reason, at }: { reason: string; at: number }) => ({
      EmailAddress: email,
      Reason: reason,
      LastUpdateTime: at,
    });
    if (asked.method === "PUT" && name === "") {
      const wanted = Suppress.safeParse(parsed(asked.body));
      if (!wanted.success) return refusal(400, "BadRequestException", "An address and a reason are needed.");
      this.#suppressed.set(wanted.data.EmailAddress.toLowerCase(), {
        reason: wanted.data.Reason,
        at: this.#clock.now(),
      });
      return { status: 200, json: {} };
    }
    if (asked.method === "GET" && name === "") {
      const since = Date.parse(asked.query.get("StartDate") ?? "") / 1000;
      const from = Number(asked.query.get("NextToken") ?? 0);
      const size = Number(asked.query.get("PageSize") ?? 1000);
      const all = [...this.#suppressed].filter(([, { at }]) => Number.isNaN(since) || at >= since);
      const page = all.slice(from, from + size).map(([email, entry]) => shown(email, entry));
      const more = from + size < all.length ? { NextToken: String(from + size) } : {};
      return { status: 200, json: { SuppressedDestinationSummaries: page, ...more } };
    }
    const entry = this.#suppressed.get(address);
    if (!entry) return refusal(404, "NotFoundException", "The address is not on the suppression list.");
    if (asked.method === "GET") return { status: 200, json: { SuppressedDestination: shown(address, entry) } };
    if (asked.method !== "DELETE") return refusal(404, "NotFoundException", "There is no such operation.");
    this.#suppressed.delete(address);
    return { status: 200, json: {} };
  }
}

/** Which error strikes a sending now, if any; counts `fail_next` down. */
export function takeError(knobs: SesKnobs, random: () => number): SesError | undefined {
  if (knobs.fail_next > 0) {
    knobs.fail_next -= 1;
    return knobs.error;
  }
  if (knobs.error_rate > 0 && random() < knobs.error_rate) return knobs.error;
  return strike(knobs.fault_rates, SES_ERRORS, random);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

async function rawOf({ Content, ...request }: z.output<typeof SendEmail>): Promise<Buffer | undefined> {
  if (Content.Raw) return Buffer.from(Content.Raw.Data, "base64");
  if (!Content.Simple) return undefined;
  const { Subject, Body } = Content.Simple;
  const composer = createTransport({ streamTransport: true, buffer: true });
  const { message } = await composer.sendMail({
    from: request.FromEmailAddress,
    to: request.Destination?.ToAddresses,
    cc: request.Destination?.CcAddresses,
    replyTo: request.ReplyToAddresses,
    subject: Subject.Data,
    text: Body.Text?.Data,
    html: Body.Html?.Data,
  });
  return message as Buffer;
}

/** `Carillon <hello@example.com>` and `hello@example.com` alike are the latter. */
function bareAddress(text: string): string {
  return /<([^<>]+)>\s*$/.exec(text)?.[1] ?? text.trim();
}

import type { Clock } from "../kernel/clock.ts";
import type { Agenda } from "./agenda.ts";
import { callWebhook } from "./caller.ts";
import type { Answer, Asked } from "./exchange.ts";
import { SES_NOTICE_FAULTS, strike } from "./faults.ts";
import type { Inbox, SandboxMessage } from "./inbox.ts";
import type { Knobs } from "./knobs.ts";
import { seededHex } from "./seeded-random.ts";
import { CERTIFICATE_PATH, type Envelope, snsCertificate, snsSignature } from "./sns-signer.ts";

export const TOPIC_ARN = "arn:aws:sns:us-east-1:000000000000:carillon-email";
const FOREIGN_TOPIC_ARN = "arn:aws:sns:us-east-1:999999999999:somebody-else";
const RETRIES = 3;
const RETRY_SECONDS = 20;
/** How often, and how many seconds apart, the confirmation is posted while nobody listens. */
const KNOCKS = 120;
const KNOCK_SECONDS = 1;
/** How long a notification waits for another to overtake it. */
const OVERTAKING_SECONDS = 30;
const OVERSIZE = 1_048_577;

/**
 * When the house is asked to confirm. At first mail is for a sandbox that starts before its house listens: until then the
 * house's port may be somebody else's.
 */
export type Subscribing = "at start" | "at first mail";

/** A notification on its way: the same bytes however often they are sent. */
interface Letter {
  readonly type: string;
  readonly about: SandboxMessage | undefined;
  readonly kind: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is wrong with a notification that a stranger could have sent. */
interface Forgery {
  readonly badSignature?: boolean;
  readonly wrongTopic?: boolean;
  readonly foreignCertificate?: boolean;
}

/**
 * The SNS topic between the mail service and the house.
 *
 * Life of the subscription: asked for -> pending (a confirmation was posted with a token) -> confirmed (somebody fetched
 * its SubscribeURL). What is published before that is lost, as with the real one. A notification is posted, and again after
 * 20 s, three times at most, while the answer is 429, 5xx or missing; any other answer ends it.
 */
export class SnsTopic {
  /** What was published and went to nobody, because nobody had confirmed. */
  lost = 0;
  readonly #clock: Clock;
  readonly #agenda: Agenda;
  readonly #knobs: Knobs;
  readonly #inbox: Inbox;
  readonly #random: () => number;
  readonly #ownUrl: () => string;
  readonly #endpoint: () => string;
  readonly #subscribing: Subscribing;
  #handshake: Promise<void> | undefined;
  #token: string | undefined;
  #confirmed = false;
  #held: Letter | undefined;

  constructor(plan: {
    clock: Clock;
    agenda: Agenda;
    knobs: Knobs;
    inbox: Inbox;
    random: () => number;
    ownUrl: () => string;
    endpoint: () => string;
    subscribing: Subscribing;
  }) {
    this.#clock = plan.clock;
    this.#agenda = plan.agenda;
    this.#knobs = plan.knobs;
    this.#inbox = plan.inbox;
    this.#random = plan.random;
    this.#ownUrl = plan.ownUrl;
    this.#endpoint = plan.endpoint;
    this.#subscribing = plan.subscribing;
  }

  get confirmed(): boolean {
    return this.#confirmed;
  }

  get certificateUrl(): string {
    return `${this.#ownUrl()}${CERTIFICATE_PATH}`;
  }

  async answer({ method, path, query }: Asked): Promise<Answer> {
    if (method !== "GET") return undefined;
    if (path === CERTIFICATE_PATH)
      return {
        status: 200,
        text: await snsCertificate(),
        headers: { "content-type": "application/x-pem-file", "cache-control": "max-age=600" },
      };
    if (path !== "/" || query.get("Action") !== "ConfirmSubscription") return undefined;
    if (query.get("TopicArn") !== TOPIC_ARN || this.#token === undefined || query.get("Token") !== this.#token)
      return { status: 403, text: "<ErrorResponse><Error><Code>AuthorizationError</Code></Error></ErrorResponse>" };
    this.#confirmed = true;
    return {
      status: 200,
      text: `<ConfirmSubscriptionResponse><ConfirmSubscriptionResult><SubscriptionArn>${TOPIC_ARN}:sandbox</SubscriptionArn></ConfirmSubscriptionResult></ConfirmSubscriptionResponse>`,
      headers: { "content-type": "text/xml" },
    };
  }

  /** Posts the confirmation until somebody answers; the house confirms by fetching its SubscribeURL. */
  subscribe(): Promise<void> {
    this.#handshake ??= this.#askToConfirm().finally(() => {
      this.#handshake = undefined;
    });
    return this.#handshake;
  }

  /** Tells the house; resolves when the first attempt was answered. */
  async publish(message: Record<string, unknown>, about?: SandboxMessage): Promise<void> {
    if (!this.#confirmed && this.#subscribing === "at first mail") await this.subscribe();
    if (!this.#confirmed) {
      this.lost += 1;
      return;
    }
    const knobs = this.#knobs.ses;
    const fault = strike(knobs.notice_fault_rates, SES_NOTICE_FAULTS, this.#random);
    if (knobs.drop_notifications || fault === "dropped") return;
    const kind = String(message.notificationType);
    const told = knobs.unknown_type || fault === "unknown_type" ? { ...message, notificationType: "Novelty" } : message;
    const oversized = knobs.oversized_body || fault === "oversized_body";
    const text = JSON.stringify(oversized ? { ...told, padding: "x".repeat(OVERSIZE) } : told);
    const forgery = {
      badSignature: knobs.bad_signature || fault === "bad_signature",
      wrongTopic: knobs.wrong_topic || fault === "wrong_topic",
      foreignCertificate: knobs.foreign_cert_url || fault === "foreign_cert_url",
    };
    const letter = { ...(await this.#letter("Notification", { Message: text }, forgery)), about, kind };
    const copies = 1 + Math.max(knobs.duplicate_notifications, fault === "duplicated" ? 1 : 0);
    for (let copy = 0; copy < copies; copy++)
      await (knobs.reorder || fault === "reordered" ? this.#overtake(letter) : this.#post(letter, 0));
  }

  async #askToConfirm(): Promise<void> {
    const token = seededHex(this.#random, 64);
    this.#token = token;
    const letter = await this.#letter("SubscriptionConfirmation", {
      Message: `You have chosen to subscribe to the topic ${TOPIC_ARN}.`,
      SubscribeURL: `${this.#ownUrl()}/?Action=ConfirmSubscription&TopicArn=${TOPIC_ARN}&Token=${token}`,
      Token: token,
    });
    for (let knock = 0; knock < KNOCKS; knock++) {
      const status = await callWebhook(this.#agenda, this.#endpoint(), letter.body, letter.headers);
      if (this.#confirmed || (status !== null && status < 500 && status !== 429)) return;
      if (!(await this.#agenda.pause(status === null ? KNOCK_SECONDS : RETRY_SECONDS))) return;
    }
  }

  async #overtake(letter: Letter): Promise<void> {
    const held = this.#held;
    if (!held) {
      this.#held = letter;
      this.#agenda.at(
        this.#clock.now() + OVERTAKING_SECONDS,
        `sns held ${letter.headers["x-amz-sns-message-id"]}`,
        () => {
          if (this.#held !== letter) return;
          this.#held = undefined;
          return this.#post(letter, 0);
        },
      );
      return;
    }
    this.#held = undefined;
    await this.#post(letter, 0);
    await this.#post(held, 0);
  }

  async #post(letter: Letter, attempt: number): Promise<void> {
    const [at, url] = [this.#clock.now(), this.#endpoint()];
    const answered = await callWebhook(this.#agenda, url, letter.body, letter.headers);
    if (letter.about) this.#inbox.heard(letter.about, { kind: letter.kind, url, at, answered });
    const mayPass = answered === null || answered >= 500 || answered === 429;
    if (!mayPass || attempt >= RETRIES) return;
    const id = letter.headers["x-amz-sns-message-id"];
    this.#agenda.at(at + RETRY_SECONDS, `sns retry ${id}`, () => this.#post(letter, attempt + 1));
  }

  async #letter(type: string, fields: Readonly<Record<string, string>>, forgery: Forgery = {}): Promise<Letter> {
    const id = [8, 4, 4, 4, 12].map((digits) => seededHex(this.#random, digits)).join("-");
    const topic = forgery.wrongTopic ? FOREIGN_TOPIC_ARN : TOPIC_ARN;
    const version = this.#knobs.ses.signature_version;
    const envelope: Envelope = {
      Type: type,
      MessageId: id,
      TopicArn: topic,
      ...fields,
      Timestamp: new Date(this.#clock.now() * 1000).toISOString(),
    };
    const signature = await snsSignature(
      forgery.badSignature ? { ...envelope, Message: `${envelope.Message} ` } : envelope,
      version,
    );
    const certificate = forgery.foreignCertificate
      ? `https://sns.us-east-1.amazonaws.com.example.net${CERTIFICATE_PATH}`
      : this.certificateUrl;
    return {
      type,
      kind: type,
      about: undefined,
      body: JSON.stringify({
        ...envelope,
        SignatureVersion: version,
        Signature: signature,
        SigningCertURL: certificate,
        ...(type === "Notification" ? { UnsubscribeURL: `${this.#ownUrl()}/?Action=Unsubscribe` } : {}),
      }),
      headers: {
        "content-type": "text/plain; charset=UTF-8",
        "user-agent": "Amazon Simple Notification Service Agent",
        "x-amz-sns-message-type": type,
        "x-amz-sns-message-id": id,
        "x-amz-sns-topic-arn": topic,
        ...(type === "Notification" ? { "x-amz-sns-subscription-arn": `${topic}:sandbox` } : {}),
      },
    };
  }
}

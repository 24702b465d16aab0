import { isUtf8 } from "node:buffer";
import { type KeyObject, verify } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import { exchange, type Fetch, isRecord } from "./http-exchange.ts";
import { SnsCertificates } from "./sns-certificates.ts";

/**
 * Envelopes of Amazon SNS. Anybody can post to a webhook, so an envelope counts only when its topic is one of ours and
 * its signature was made with a certificate from Amazon's own address for that topic's region.
 */
export type SnsType = "Notification" | "SubscriptionConfirmation" | "UnsubscribeConfirmation";

/** Fields as they were signed; `Subject` may be absent. */
export interface SnsEnvelope {
  readonly Type: SnsType;
  readonly MessageId: string;
  readonly TopicArn: string;
  readonly Message: string;
  readonly Timestamp: string;
  readonly Subject?: string;
  readonly SubscribeURL?: string;
  readonly Token?: string;
  readonly SignatureVersion: "1" | "2";
  readonly Signature: string;
  readonly SigningCertURL: string;
}

/** Refusals are named for the counter that they move, with the status that makes SNS come again or not. */
export type SnsRefusal = {
  readonly ok: false;
  readonly counter:
    | "signature_missing"
    | "body_parse_error"
    | "signature_invalid"
    | "body_max_size_exceeded"
    | "body_read_error";
  readonly status: 400 | 403 | 413 | 503;
  readonly reason: string;
};
export type SnsVerdict = { readonly ok: true; readonly envelope: SnsEnvelope } | SnsRefusal;

export interface SnsVerifierOptions {
  /** The topics that may speak to us; with none, nobody may. */
  readonly topicArns: readonly string[];
  /** Where certificates and confirmations live instead of Amazon's own address; for a simulated topic only. */
  readonly baseUrl?: string;
  /** The folder where certificates outlive the process; without it they are kept in memory alone. */
  readonly shelf?: string | undefined;
  readonly log?: Pick<Log, "warn">;
  readonly clock: Clock;
  readonly fetch?: Fetch;
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

const TYPES: ReadonlySet<unknown> = new Set<SnsType>([
  "Notification",
  "SubscriptionConfirmation",
  "UnsubscribeConfirmation",
]);
const SIGNED_NOTIFICATION = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"] as const;
const SIGNED_CONFIRMATION = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"] as const;
const ALGORITHMS = { "1": "RSA-SHA1", "2": "RSA-SHA256" } as const;
/** Of base64 when its length is a multiple of four too; said in one expression it takes longer. */
const BASE64_SIGNS = /^[A-Za-z0-9+/]*={0,2}$/;
const CERTIFICATE_PATH = /^\/SimpleNotificationService-[A-Za-z0-9_-]+\.pem$/;
const TOPIC = /^arn:(aws|aws-cn|aws-us-gov):sns:([a-z0-9-]+):\d{12}:[A-Za-z0-9_.-]+$/;
const OLDEST = 15 * 86_400;
const FARTHEST_AHEAD = 15 * 60;
const CONFIRMATION_TIMEOUT = 10;

export class SnsVerifier {
  readonly #options: SnsVerifierOptions;
  readonly #certificates: SnsCertificates;
  /** The address and topic that passed the pinning rule last: they are the same for almost every envelope. */
  #pinned: { readonly address: string; readonly topic: string } | undefined;

  constructor(options: SnsVerifierOptions) {
    this.#options = options;
    this.#certificates = new SnsCertificates(options);
  }

  /** Headers have lower-case names, as Node gives them; the body is what came, byte for byte, or why it did not come. */
  async verify(headers: Headers, body: Buffer | "too_large" | "broken"): Promise<SnsVerdict> {
    const parsed = parseEnvelope(headers, body);
    if (!parsed.ok) return parsed;
    const { envelope } = parsed;
    const { topicArns, clock } = this.#options;
    if (!topicArns.includes(envelope.TopicArn)) return refuse("signature_invalid", 403, "a topic that is not ours");
    if (!this.#isPinned(envelope))
      return refuse("signature_invalid", 403, "the certificate does not live at Amazon's address");
    const age = clock.now() - Date.parse(envelope.Timestamp) / 1000;
    if (!(age <= OLDEST && age >= -FARTHEST_AHEAD)) return refuse("signature_invalid", 403, "not of our time");
    const certificate = await this.#certificates.keyAt(envelope.SigningCertURL);
    if (!certificate.ok)
      return refuse("signature_invalid", certificate.fault === "unavailable" ? 503 : 403, certificate.reason);
    const signature = Buffer.from(envelope.Signature, "base64");
    const algorithm = ALGORITHMS[envelope.SignatureVersion];
    if (await fits(algorithm, signedText(envelope), certificate.key, signature)) return parsed;
    return refuse("signature_invalid", 403, "the signature does not fit");
  }

  #isPinned({ SigningCertURL: address, TopicArn: topic }: SnsEnvelope): boolean {
    if (this.#pinned?.address === address && this.#pinned.topic === topic) return true;
    if (!isPinned(address, topic, this.#options.baseUrl, CERTIFICATE_PATH)) return false;
    this.#pinned = { address, topic };
    return true;
  }

  /** Says yes to a topic, for a verified envelope only. False: it did not work, and SNS should ask again. */
  async confirm({ TopicArn, SubscribeURL }: SnsEnvelope): Promise<boolean> {
    if (SubscribeURL === undefined || !isPinned(SubscribeURL, TopicArn, this.#options.baseUrl)) return false;
    const answer = await exchange({ method: "GET", url: SubscribeURL, timeout: CONFIRMATION_TIMEOUT }, this.#options);
    return answer.ok && answer.status >= 200 && answer.status < 300;
  }
}

/** In a thread of its own: it takes longer than everything else about an envelope, and requests come on this one. */
function fits(algorithm: string, text: string, key: KeyObject, signature: Buffer): Promise<boolean> {
  return new Promise((resolve, reject) =>
    verify(algorithm, Buffer.from(text), key, signature, (error, fit) => (error ? reject(error) : resolve(fit))),
  );
}

/** The text whose signature an envelope carries. */
export function signedText(envelope: Partial<SnsEnvelope> & Pick<SnsEnvelope, "Type">): string {
  let text = "";
  for (const field of signedFields(envelope.Type))
    if (envelope[field] !== undefined) text += `${field}\n${envelope[field]}\n`;
  return text;
}

function signedFields(type: SnsType): readonly (keyof SnsEnvelope)[] {
  return type === "Notification" ? SIGNED_NOTIFICATION : SIGNED_CONFIRMATION;
}

/** Headers and body in their order of checks, up to what needs no certificate. */
export function parseEnvelope(headers: Headers, body: Buffer | "too_large" | "broken"): SnsVerdict {
  const type = headers["x-amz-sns-message-type"];
  const topic = headers["x-amz-sns-topic-arn"];
  const id = headers["x-amz-sns-message-id"];
  if (!TYPES.has(type) || !topic || !id) return refuse("signature_missing", 400, "headers of SNS are missing");
  if (headers["x-amz-sns-rawdelivery"] === "true")
    return refuse("signature_missing", 400, "raw delivery is on; its messages carry no signature");
  if (body === "too_large") return refuse("body_max_size_exceeded", 413, "the body is too long");
  if (body === "broken") return refuse("body_read_error", 400, "the body broke off");
  const fields = fieldsIn(body);
  if (!fields) return refuse("body_parse_error", 400, "the body is not a JSON object in UTF-8");
  if (!present(fields.Signature) || !present(fields.SigningCertURL))
    return refuse("signature_missing", 400, "the envelope is not signed");
  const { SignatureVersion: version, Signature: signature } = fields;
  if (version !== "1" && version !== "2") return refuse("body_parse_error", 400, "an unknown version of signature");
  if (typeof signature !== "string" || !isBase64(signature) || typeof fields.SigningCertURL !== "string")
    return refuse("body_parse_error", 400, "the signature cannot be read");
  // SNS writes an absent subject as null.
  const subjectless = fields.Subject === undefined || fields.Subject === null;
  const wrong = signedFields(type as SnsType).find(
    (field) => typeof fields[field] !== "string" && !(field === "Subject" && subjectless),
  );
  if (wrong !== undefined) return refuse("body_parse_error", 400, `${wrong} is missing or no text`);
  if (fields.Type !== type || fields.TopicArn !== topic || fields.MessageId !== id)
    return refuse("signature_invalid", 403, "headers and body disagree");
  const envelope = fields.Subject === null ? { ...fields, Subject: undefined } : fields;
  return { ok: true, envelope: envelope as unknown as SnsEnvelope };
}

/**
 * Whether an address is that of SNS in the topic's own region: https on its usual port, without anything that could make
 * another host of it. With a base address set, only that one counts instead.
 */
export function isPinned(address: string, topicArn: string, baseUrl?: string, path?: RegExp): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  if (url.username || url.password || url.hash) return false;
  if (path && (url.search || !path.test(url.pathname))) return false;
  if (baseUrl !== undefined) return url.origin === new URL(baseUrl).origin;
  const [, partition, region] = TOPIC.exec(topicArn) ?? [];
  if (region === undefined) return false;
  const host = `sns.${region}.amazonaws.com${partition === "aws-cn" ? ".cn" : ""}`;
  return url.protocol === "https:" && url.host === host;
}

function refuse(counter: SnsRefusal["counter"], status: SnsRefusal["status"], reason: string): SnsRefusal {
  return { ok: false, counter, status, reason };
}

const isBase64 = (text: string): boolean => text.length % 4 === 0 && BASE64_SIGNS.test(text);

const present = (value: unknown): boolean => value !== undefined && value !== null && value !== "";

function fieldsIn(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    if (!isUtf8(body)) return undefined;
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    return isRecord(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

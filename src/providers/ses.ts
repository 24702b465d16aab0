import { GetAccountCommand, SESv2Client, SendEmailCommand } from "@aws-sdk/client-sesv2";
import type { Clock } from "../kernel/clock.ts";
import {
  type EmailFailure,
  type EmailIdentifier,
  type EmailMessage,
  type EmailOutcome,
  type EmailProvider,
  type EmailQuota,
  QUOTA_LIFE,
} from "./email.ts";
import { cameBeforeTheRequest, errorText, extraOf } from "./failure.ts";
import { SesSuppressions } from "./ses-suppressions.ts";

export interface SesOptions {
  readonly region: string;
  /** Absent: Amazon's own for the region. */
  readonly endpoint?: string;
  /** Absent: wherever the platform keeps credentials, such as an instance role. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** Decides which topic hears of this mail. */
  readonly configurationSet?: string;
  /** Seconds. */
  readonly timeout: number;
  readonly userAgent: string;
  readonly clock: Clock;
}

const CONNECTION_TIMEOUT_MS = 5_000;
const THROTTLES = new Set(["TooManyRequestsException", "ThrottlingException", "LimitExceededException", "Throttling"]);
const THROTTLE_SENTENCES = /maximum sending rate|daily message quota/i;
const TROUBLES = new Set(["InternalFailure", "ServiceUnavailable", "InternalServiceErrorException"]);
const STOPPED = new Set(["AccountSuspendedException", "SendingPausedException", "MailFromDomainNotVerifiedException"]);
const REFUSED_KEYS = new Set([
  "CredentialsProviderError",
  "ExpiredToken",
  "ExpiredTokenException",
  "UnrecognizedClientException",
  "InvalidClientTokenId",
  "SignatureDoesNotMatch",
  "InvalidSignatureException",
  "MissingAuthenticationTokenException",
  "AccessDeniedException",
]);
/** The SDK has one name for all that is late; only its sentence tells that there was no connection yet. */
const NO_CONNECTION_IN_TIME = /did not establish a connection/;
const CONNECTION_CODE = /^(E[A-Z_]+|CERT_.*|UND_ERR_.*|.*_CERT.*|ERR_(TLS|SSL)_.*)$/;

/** Amazon SES, through version 2 of its API. */
export class SesEmail implements EmailProvider {
  readonly name = "ses";
  readonly hasReceipts = true;
  readonly suppressions = new SesSuppressions((send) => this.#inTime((signal) => send(this.#open(), signal)));
  readonly #options: SesOptions;
  #client: SESv2Client | undefined;
  #quota: { readonly value: EmailQuota; readonly at: number } | undefined;

  constructor(options: SesOptions) {
    this.#options = options;
  }

  async send(message: EmailMessage): Promise<EmailOutcome> {
    const command = new SendEmailCommand({
      FromEmailAddress: message.from,
      Destination: { ToAddresses: [message.to] },
      Content: { Raw: { Data: message.mime } },
      ConfigurationSetName: this.#options.configurationSet,
      EmailTags: message.tags && Object.entries(message.tags).map(([Name, Value]) => ({ Name, Value })),
    });
    try {
      const { MessageId } = await this.#inTime((abortSignal) => this.#open().send(command, { abortSignal }));
      if (MessageId) return { ok: true, messageId: MessageId, hasReceipts: true };
      return failed("SESInternalError", "NoMessageId", false, "accepted without a message id");
    } catch (error) {
      return sesFailure(error);
    }
  }

  async quota(maxAge = QUOTA_LIFE): Promise<EmailQuota | undefined> {
    const { clock } = this.#options;
    if (this.#quota && clock.monotonic() - this.#quota.at < maxAge) return this.#quota.value;
    try {
      const account = await this.#inTime((abortSignal) =>
        this.#open().send(new GetAccountCommand({}), { abortSignal }),
      );
      const value = {
        maxPerSecond: account.SendQuota?.MaxSendRate ?? 0,
        max24h: account.SendQuota?.Max24HourSend ?? 0,
        sent24h: account.SendQuota?.SentLast24Hours ?? 0,
        sendingEnabled: account.SendingEnabled ?? true,
      };
      if (value.maxPerSecond <= 0) return undefined;
      this.#quota = { value, at: clock.monotonic() };
      return value;
    } catch {
      // Not being allowed to read the quota is no reason not to send.
      return undefined;
    }
  }

  async reset(): Promise<void> {
    this.#client?.destroy();
    this.#client = undefined;
    this.#quota = undefined;
  }

  async close(): Promise<void> {
    await this.reset();
  }

  #open(): SESv2Client {
    const { region, endpoint, credentials, timeout, userAgent } = this.#options;
    this.#client ??= new SESv2Client({
      region,
      endpoint,
      credentials,
      customUserAgent: userAgent,
      // Retries belong to the queue, which spaces them and survives a restart.
      maxAttempts: 1,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
      requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, requestTimeout: timeout * 1000 },
    });
    return this.#client;
  }

  async #inTime<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, timeout } = this.#options;
    const answered = new AbortController();
    const late = new AbortController();
    void clock.sleep(timeout, answered.signal).then((passed) => {
      if (passed) late.abort();
    });
    try {
      return await call(late.signal);
    } catch (error) {
      if (!late.signal.aborted) throw error;
      throw Object.assign(new Error(`no answer within ${timeout} s`), { name: "TimeoutError" });
    } finally {
      answered.abort();
    }
  }
}

function failed(
  identifier: EmailIdentifier,
  code: string,
  retryable: boolean,
  extra: string,
  flags: Partial<Pick<EmailFailure, "credentials" | "backoff" | "outage" | "untaken" | "accountStopped">> = {},
): EmailFailure {
  return { ok: false, identifier, subidentifier: code, retryable, extra: extraOf(extra), ...flags };
}

/** What an error of the SDK means. Names first: the status of some of them would mislead. */
export function sesFailure(error: unknown): EmailFailure {
  const { name, message, code, status } = partsOf(error);
  const extra = errorText(error);
  if (THROTTLES.has(name) || (status !== undefined && status < 500 && THROTTLE_SENTENCES.test(message)))
    return failed("SESTooManyRequestsException", name, true, extra, { backoff: true });
  if (REFUSED_KEYS.has(name)) return failed("SESClientError", name, false, extra, { credentials: true });
  if (STOPPED.has(name)) return failed("SESClientError", name, false, extra, { accountStopped: true });
  if (TROUBLES.has(name) || (status !== undefined && status >= 500))
    return failed("SESServerError", name, true, extra, { backoff: true, outage: true });
  if (status === 429) return failed("SESTooManyRequestsException", name, true, extra, { backoff: true });
  if (status === 401 || status === 403) return failed("SESClientError", name, false, extra, { credentials: true });
  if (status !== undefined && status >= 300) return failed("SESClientError", name, false, extra);
  const unreached = NO_CONNECTION_IN_TIME.test(message) || cameBeforeTheRequest(error);
  const network = { backoff: true, outage: true, ...(unreached ? { untaken: true as const } : {}) } as const;
  // The SDK calls cut connections late too; their code says what they are.
  if (code === "ETIMEDOUT" || (name === "TimeoutError" && code === undefined))
    return failed("SESNetworkError", "TimeoutError", true, extra, network);
  // Also after a status of 200: the connection may break within the answer.
  if (code !== undefined && CONNECTION_CODE.test(code))
    return failed("SESNetworkError", "ConnectionError", true, extra, network);
  return failed("SESInternalError", name, false, extra);
}

function partsOf(error: unknown) {
  if (!(error instanceof Error))
    return { name: typeof error, message: String(error), code: undefined, status: undefined };
  const seen = error as Error & {
    readonly code?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: number };
    /** Present when the answer could not be read at all, as with a proxy's page of HTML. */
    readonly $response?: { readonly statusCode?: number };
  };
  return {
    name: error.name,
    message: error.message,
    code: typeof seen.code === "string" ? seen.code : undefined,
    status: seen.$metadata?.httpStatusCode ?? seen.$response?.statusCode,
  };
}

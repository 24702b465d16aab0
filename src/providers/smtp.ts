import { text } from "node:stream/consumers";
import { createTransport, type Transporter, type TransportOptions } from "nodemailer";
import DKIM from "nodemailer/lib/dkim";
import {
  bareAddress,
  type EmailFailure,
  type EmailIdentifier,
  type EmailMessage,
  type EmailOutcome,
  type EmailProvider,
  type EmailQuota,
} from "./email.ts";
import { cameBeforeTheRequest, errorText } from "./failure.ts";

export interface DkimOptions {
  readonly domainName: string;
  readonly keySelector: string;
  readonly privateKey: string;
}

export interface SmtpOptions {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte; otherwise the connection is upgraded before anything is said. */
  readonly secure: boolean;
  readonly auth?: { readonly user: string; readonly pass: string };
  readonly dkim?: DkimOptions;
  /** Seconds that each step of the conversation may take. */
  readonly timeout: number;
}

type Opened = Transporter<{ readonly response?: string; readonly accepted?: readonly unknown[] }>;

const CONNECTIONS = 8;
const IDLE_MS = 30_000;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;
/** Hosts that forward to SES and answer with its message id. */
const SES_HOST = /^email-smtp\./;
const CREDENTIAL_CODES = new Set(["EAUTH", "ENOAUTH", "EOAUTH2"]);
const CREDENTIAL_REPLIES = new Set([530, 535]);
const NETWORK_CODES = new Set(["ECONNECTION", "ETIMEDOUT", "ESOCKET", "EDNS", "EPROXY"]);
/** Enhanced codes that say the mailbox is not there; other refusals may be a policy that changes. */
const NO_MAILBOX = /\b5\.(1\.1|1\.10|2\.1)\b/;

/**
 * What a DKIM signature covers. Spelled out, because the library's own list leaves out the header that makes a
 * one-click unsubscription valid, which counts only when it is signed.
 */
export const SIGNED_HEADERS = [
  ..."From Sender Reply-To To Cc Subject Date Message-ID In-Reply-To References".split(" "),
  ..."MIME-Version Content-Type Content-Transfer-Encoding Auto-Submitted X-Carillon-Email-Uid".split(" "),
  ..."List-Id List-Unsubscribe List-Unsubscribe-Post".split(" "),
].join(":");

const ONE_CLICK = ["list-unsubscribe", "list-unsubscribe-post"];
/** As much of a mail to a list as its signature is about. */
const SPECIMEN = [
  "From: sender@example.com",
  "List-Unsubscribe: <https://example.com/leave>",
  "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
  "",
  "Hello",
].join("\r\n");

/**
 * Whether mails are signed with this key, and both headers of a one-click unsubscription with them. To be asked before the
 * first mail: with a key that it cannot use the library sends mails unsigned, and says nothing.
 */
export async function signsOneClick(dkim: DkimOptions): Promise<boolean> {
  const signed = await text(new DKIM({ ...dkim, headerFieldNames: SIGNED_HEADERS }).sign(SPECIMEN));
  const covered = /^DKIM-Signature:[\s\S]*?[\s;]h=([^;]*);/.exec(signed)?.[1]?.replaceAll(/\s/g, "").toLowerCase();
  return covered !== undefined && ONE_CLICK.every((header) => covered.split(":").includes(header));
}

/** Any server that takes mail. Over a pool of connections, one mail a conversation. */
export class SmtpEmail implements EmailProvider {
  readonly name = "smtp";
  readonly hasReceipts: boolean;
  readonly #options: SmtpOptions;
  #transport: Opened | undefined;

  constructor(options: SmtpOptions) {
    this.#options = options;
    this.hasReceipts = SES_HOST.test(options.host);
  }

  async send(message: EmailMessage): Promise<EmailOutcome> {
    const ownId = messageIdOf(message.mime);
    if (ownId === undefined) return failed("SESInternalError", "NoMessageId", false, "the mail has no Message-ID");
    try {
      const { response = "" } = await this.#open().sendMail({
        envelope: { from: bareAddress(message.from), to: [message.to] },
        raw: message.mime,
      });
      const messageId = this.hasReceipts ? sesIdIn(response) : ownId;
      if (messageId) return { ok: true, messageId, hasReceipts: this.hasReceipts };
      return failed("SESInternalError", "NoMessageId", false, response);
    } catch (error) {
      return smtpFailure(error);
    }
  }

  /** The protocol has no word for it. */
  async quota(): Promise<EmailQuota | undefined> {
    return undefined;
  }

  async reset(): Promise<void> {
    this.#transport?.close();
    this.#transport = undefined;
  }

  async close(): Promise<void> {
    await this.reset();
  }

  #open(): Opened {
    const { host, port, secure, auth, dkim, timeout } = this.#options;
    const loopback = LOOPBACK.test(host);
    this.#transport ??= createTransport({
      pool: true,
      maxConnections: CONNECTIONS,
      // Retries belong to the queue, which spaces them and survives a restart. Idle connections are closed here before
      // servers drop them, so that a mail rarely meets a dead one.
      maxRequeues: 0,
      idleTimeout: IDLE_MS,
      host,
      port,
      secure,
      // A password must not cross a network in the clear; on this machine there is no network to cross.
      requireTLS: !secure && !loopback,
      tls: { rejectUnauthorized: !loopback },
      auth,
      dkim: dkim && { ...dkim, headerFieldNames: SIGNED_HEADERS },
      connectionTimeout: timeout * 1000,
      greetingTimeout: timeout * 1000,
      // A little later than the others: a server that never greeted is told apart from one that fell silent with a mail.
      socketTimeout: timeout * 1000 + 500,
      // The message is ours to the last byte; nothing in it may make the library open files or addresses.
      disableFileAccess: true,
      disableUrlAccess: true,
    } as TransportOptions) as unknown as Opened;
    return this.#transport;
  }
}

function failed(
  identifier: EmailIdentifier,
  code: string,
  retryable: boolean,
  extra: string,
  flags: Partial<Pick<EmailFailure, "credentials" | "backoff" | "outage" | "untaken" | "unreachable">> = {},
): EmailFailure {
  return { ok: false, identifier, subidentifier: code, retryable, extra, ...flags };
}

/** The parts of a conversation that end before a mail is offered. */
const BEFORE_THE_MAIL = new Set(["CONNECT_TIMEOUT", "GREETING_TIMEOUT", "UPGRADE_TIMEOUT"]);

function unanswered(what: string, extra: string, untaken: boolean): EmailFailure {
  return failed("SESNetworkError", what, true, extra, {
    backoff: true,
    outage: true,
    ...(untaken ? { untaken: true } : {}),
  });
}

/** What a refusal means: by the server's reply where there is one, else by what broke. */
export function smtpFailure(error: unknown): EmailFailure {
  const { code, responseCode, response, name, timeoutType } = error as Error & {
    readonly code?: string;
    readonly timeoutType?: string;
    readonly responseCode?: number;
    readonly response?: string;
  };
  const extra = errorText(error);
  const reply = `SMTP${responseCode}`;
  // Whatever the server replied to the wish for TLS, the conversation had not begun.
  if (code === "ETLS") return unanswered("ConnectionError", extra, true);
  if (responseCode !== undefined && responseCode >= 400 && responseCode < 500) {
    if (/throttl|sending rate|quota exceeded/i.test(response ?? ""))
      return failed("SESTooManyRequestsException", reply, true, extra, { backoff: true });
    // 421 closes the whole service; the others may speak of one mailbox or one greylisted sender.
    // A server that says no has not taken the mail.
    const outage = responseCode === 421 ? { outage: true as const, untaken: true as const } : {};
    return failed("SESServerError", reply, true, extra, { backoff: true, ...outage });
  }
  if (CREDENTIAL_REPLIES.has(responseCode ?? 0) || CREDENTIAL_CODES.has(code ?? ""))
    return failed("SESClientError", responseCode === undefined ? (code ?? name) : reply, false, extra, {
      credentials: true,
    });
  if (responseCode !== undefined && responseCode >= 500) {
    const unreachable = NO_MAILBOX.test(response ?? "") ? { unreachable: true as const } : {};
    return failed("SESClientError", reply, false, extra, unreachable);
  }
  if (code !== undefined && (NETWORK_CODES.has(code) || /^E(CONN|HOST|NET|AI_|PIPE|NOTFOUND)/.test(code))) {
    const untaken = code === "EDNS" || BEFORE_THE_MAIL.has(timeoutType ?? "") || cameBeforeTheRequest(error);
    return unanswered(code === "ETIMEDOUT" ? "TimeoutError" : "ConnectionError", extra, untaken);
  }
  if (code === "EENVELOPE" || code === "EMESSAGE") return failed("SESClientError", code, false, extra);
  return failed("SESInternalError", name || "Error", false, extra);
}

/** The id under which SES reports on a mail, from its reply to the mail's last line. */
export function sesIdIn(response: string): string | undefined {
  return /^250 Ok (\S+)/i.exec(response)?.[1];
}

/** The Message-ID of a mail without its brackets, from the headers only. */
function messageIdOf(mime: Buffer): string | undefined {
  const end = mime.indexOf("\r\n\r\n");
  const headers = mime.subarray(0, end < 0 ? mime.length : end + 2).toString("latin1");
  return /^message-id:\s*<([^<>\s]+)>/im.exec(headers)?.[1];
}

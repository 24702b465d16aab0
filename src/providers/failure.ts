/**
 * Why a provider did not take a message. Providers never throw for what a provider or the network does: they answer with
 * one of these, and callers decide on its fields alone.
 */
export interface Failure<Identifier extends string> {
  readonly ok: false;
  readonly identifier: Identifier;
  /** The provider's own code where it gave one, such as `21610` or `SMTP550`. */
  readonly subidentifier: string | null;
  /** The same message may be taken if it is sent again later. */
  readonly retryable: boolean;
  /** For logs only: at most 2,000 characters, never decided on. */
  readonly extra: string | null;
  /** The provider refuses us, not the message: whoever sends puts the message back and stops. */
  readonly credentials?: true;
  /** Others would fare the same right now: wait before the next request. */
  readonly backoff?: true;
  /** The provider itself is in trouble: counts towards its circuit. */
  readonly outage?: true;
  /** It was surely not taken, so that another provider may have it at once: nothing arrives twice. */
  readonly untaken?: true;
}

const CONNECTING = new Set(["connect", "getaddrinfo"]);
const NO_CONNECTION =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|\w*_CERT\w*|ERR_TLS_\w+|ERR_SSL_\w+|UNABLE_TO_\w+)$/;

/** Whether an error came before anything was said: no address, no connection, or no trust in who answered. */
export function cameBeforeTheRequest(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code, originalCode, syscall } = at as NodeJS.ErrnoException & { readonly originalCode?: unknown };
    if (syscall !== undefined && CONNECTING.has(syscall)) return true;
    if ([code, originalCode].some((each) => typeof each === "string" && NO_CONNECTION.test(each))) return true;
  }
  return false;
}

const LONGEST_EXTRA = 2_000;

/** Text for `extra`, cut where it is too long; whatever is not text is shown as JSON. */
export function extraOf(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= LONGEST_EXTRA ? text : `${text.slice(0, LONGEST_EXTRA - 1)}…`;
}

/** An error with the causes behind it in one line, since `fetch failed` alone says nothing. */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 4; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    const text = at.message || at.name;
    parts.push(typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text);
  }
  return extraOf(parts.length > 0 ? parts.join(": ") : String(error));
}

/** Names of fields whose values never leave the process, in whatever spelling. */
const SECRET =
  /(?:pass(?:word|wd|phrase)?|secret|token|jwt|authorization|cookie|api[_-]?key|credentials?|signature|body|message_body|security_code|code)/i;
const FIELD = `[A-Za-z0-9_.-]*${SECRET.source}[A-Za-z0-9_]*`;

/** `"password":"x"`, `'token': 'x'`: quoted values in JSON and inspected objects. */
const QUOTED = new RegExp(`(["']?)(${FIELD})\\1(\\s*[:=]\\s*)("(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*')`, "gi");
/** `token=x`, `authorization: Bearer x`: bare values up to the next separator. */
const BARE = new RegExp(`\\b(${FIELD})(\\s*=\\s*|:\\s*(?:Bearer |Basic )?)(?!["'[])([^\\s,;&"')}\\]]+)`, "gi");
/** `redis://user:pass@host`. */
const CREDENTIALS_IN_URL = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi;

export const REDACTED = "[redacted]";

/** The same text without what stands behind the name of a secret field. */
export function redact(text: string): string {
  return text
    .replace(CREDENTIALS_IN_URL, `$1${REDACTED}@`)
    .replace(QUOTED, `$1$2$1$3"${REDACTED}"`)
    .replace(BARE, `$1$2${REDACTED}`);
}

const LONGEST = 256;
const CUT = "... (truncated)";

/** Extra text of an alert: whole up to 256 characters, otherwise cut so that it ends there. */
export function truncate(text: string): string {
  return text.length > LONGEST ? text.slice(0, LONGEST - CUT.length) + CUT : text;
}

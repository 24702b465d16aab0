/** Credentials that may have found their way into the text of an error. */
const CREDENTIALS = [
  /\bcrl_(admin|link|session)_[A-Za-z0-9_-]+/g,
  /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g,
  /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /(:\/\/[^:/@\s]*:)[^@/\s]+(?=@)/g,
];

export function scrub(text: string): string {
  return CREDENTIALS.reduce((scrubbed, form) => scrubbed.replace(form, "[redacted]"), text);
}

export interface DescribedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: DescribedError;
}

/**
 * What a log line may say about an error. Other properties are left out on purpose: database errors carry the statement's
 * parameters, and clients of third parties carry whole requests.
 */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: scrub(String(error)) };
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    message: scrub(error.message),
    ...(typeof code === "string" ? { code } : {}),
    ...(error.stack ? { stack: scrub(error.stack) } : {}),
    ...(error.cause !== undefined && depth < 3 ? { cause: describeError(error.cause, depth + 1) } : {}),
  };
}

/** An error that alerts may carry to people outside. */
export function presentable(error: unknown): Error {
  const described = describeError(error);
  const shown = new Error(described.message);
  shown.name = described.type;
  shown.stack = described.stack;
  return shown;
}

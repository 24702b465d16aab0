/**
 * The one way to refuse. An error has a code that programs decide on, a sentence that people read, what to do about it,
 * and the HTTP status it becomes at the edge. Every code is declared with `defineErrors`, so the table in
 * docs/errors.md can be printed from the declarations.
 */
export class CarillonError extends Error {
  readonly code: string;
  readonly status: number;
  readonly hint: string | undefined;
  readonly detail: unknown;
  readonly retryAfter: number | undefined;

  constructor(init: {
    code: string;
    status: number;
    message: string;
    hint?: string;
    detail?: unknown;
    retryAfter?: number;
    cause?: unknown;
  }) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "CarillonError";
    this.code = init.code;
    this.status = init.status;
    this.hint = init.hint;
    this.detail = init.detail;
    this.retryAfter = init.retryAfter;
  }
}

export interface ErrorDeclaration {
  /** The HTTP status at the edge. */
  readonly status: number;
  /** What it means, for the reference and as the message where none is given. */
  readonly doc: string;
  /** What to do next. */
  readonly hint?: string;
}

export interface ErrorOptions {
  message?: string;
  detail?: unknown;
  retryAfter?: number;
  cause?: unknown;
}

export type ErrorFactory = ErrorDeclaration & {
  readonly code: string;
  (options?: ErrorOptions): CarillonError;
  matches(error: unknown): error is CarillonError;
};

/** Declares a group of errors; the property name is the code. */
export function defineErrors<const T extends Record<string, ErrorDeclaration>>(
  table: T,
): { readonly [Code in keyof T]: ErrorFactory } {
  const factories = Object.entries(table).map(([code, declaration]) => {
    const make = (options: ErrorOptions = {}) =>
      new CarillonError({
        code,
        status: declaration.status,
        message: options.message ?? declaration.doc,
        hint: declaration.hint,
        detail: options.detail,
        retryAfter: options.retryAfter,
        cause: options.cause,
      });
    const matches = (error: unknown): error is CarillonError => error instanceof CarillonError && error.code === code;
    return [code, Object.assign(make, declaration, { code, matches })];
  });
  return Object.fromEntries(factories);
}

/** Errors that the kernel itself raises. */
export const kernelErrors = defineErrors({
  outcome_unknown: {
    status: 503,
    doc: "The connection was lost after the command was sent; it may or may not have happened.",
    hint: "Repeat it only if repeating is harmless, or look at the state first.",
  },
  redis_unavailable: { status: 503, doc: "Redis cannot be reached right now.", hint: "Try again in a few seconds." },
  redis_full: {
    status: 503,
    doc: "Redis has reached its memory limit and refuses writes.",
    hint: "Raise maxmemory, or free memory; `carillon keys audit` shows what uses it.",
  },
  sql_unavailable: {
    status: 503,
    doc: "The database cannot be reached right now.",
    hint: "Try again in a few seconds.",
  },
  wrong_type: {
    status: 500,
    doc: "A key holds another Redis type than its declaration says.",
    hint: "`carillon keys audit` names the key; move it away and the family works again.",
  },
  invalid_settings: {
    status: 500,
    doc: "The configuration is not valid.",
    hint: "`carillon config` lists every setting with its meaning and its present value.",
  },
  bad_key_parameter: { status: 500, doc: "A parameter does not fit the key pattern it was given to." },
  undecodable: { status: 500, doc: "A stored value does not have the shape its declaration says." },
});

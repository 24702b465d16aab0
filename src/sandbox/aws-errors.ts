import type { Answer } from "./exchange.ts";

/** Errors of the mail service by Amazon's own names: with which status they come, and what they say. */
const NAMED = {
  TooManyRequestsException: [429, "Too many requests."],
  ThrottlingException: [400, "Rate exceeded."],
  LimitExceededException: [400, "Too many instances of the resource."],
  MessageRejected: [400, "Email address is not verified."],
  BadRequestException: [400, "The request is not right."],
  NotFoundException: [404, "There is no such resource."],
  AccountSuspendedException: [400, "The account is suspended."],
  SendingPausedException: [400, "Email sending is paused for this account."],
  MailFromDomainNotVerifiedException: [400, "The MAIL FROM domain is not verified."],
  ExpiredTokenException: [403, "The security token included in the request is expired."],
  UnrecognizedClientException: [403, "The security token included in the request is invalid."],
  InvalidClientTokenId: [403, "The security token included in the request is invalid."],
  SignatureDoesNotMatch: [403, "The request signature does not match the signature you provided."],
  AccessDeniedException: [403, "User is not authorized to perform ses:SendEmail."],
  InternalFailure: [500, "The request failed because of an unknown error."],
  ServiceUnavailable: [503, "The service is down."],
} as const satisfies Readonly<Record<string, readonly [number, string]>>;

type NamedError = keyof typeof NAMED;

/** Short words for the usual ones. */
const WORDS = {
  throttle: "TooManyRequestsException",
  "500": "InternalFailure",
  "503": "ServiceUnavailable",
  credentials: "UnrecognizedClientException",
} as const satisfies Readonly<Record<string, NamedError>>;

/** Faults of the wire and of the answer, which have no name at Amazon. */
const WORDLESS = ["reset", "timeout-after-accept", "no-message-id"] as const;

export type SesError = keyof typeof WORDS | (typeof WORDLESS)[number] | NamedError;

export const SES_ERRORS = [...Object.keys(WORDS), ...WORDLESS, ...Object.keys(NAMED)] as [SesError, ...SesError[]];

/** The refusal that an error is, or nothing where the mail is taken and only the answer suffers. */
export function refusalOf(
  error: SesError,
): { readonly status: number; readonly name: string; readonly says: string } | undefined {
  if ((WORDLESS as readonly string[]).includes(error)) return undefined;
  const name = (WORDS as Readonly<Record<string, NamedError>>)[error] ?? (error as NamedError);
  const [status, says] = error === "throttle" ? [429, "Maximum sending rate exceeded."] : NAMED[name];
  return { status, name, says };
}

export function refusal(status: number, type: string, message: string): Answer {
  return { status, json: { message }, headers: { "x-amzn-errortype": type } };
}

import type { Failure } from "./schema.ts";

/** A call that Carillon refused or could not serve. Decide on `type`, show `message`, quote `requestId`. */
export class CarillonApiError extends Error {
  override readonly name = "CarillonApiError";
  /** The HTTP status. */
  readonly status: number;
  /** The code that programs decide on; all of them are listed in docs/errors.md. */
  readonly type: string;
  /** What to do next, where Carillon knows it. */
  readonly hint: string | undefined;
  readonly detail: unknown;
  /** Under this id the server logged the request. */
  readonly requestId: string | undefined;
  /** After how many seconds it is worth trying again. */
  readonly retryAfter: number | undefined;

  constructor(
    failure: Omit<Partial<Failure>, "request_id"> & {
      readonly status: number;
      readonly type: string;
      readonly requestId?: string | undefined;
      readonly retryAfter?: number | undefined;
    },
  ) {
    super(failure.message ?? `The server answered ${failure.status}.`);
    this.status = failure.status;
    this.type = failure.type;
    this.hint = failure.hint;
    this.detail = failure.detail;
    this.requestId = failure.requestId;
    this.retryAfter = failure.retryAfter;
  }
}

/** The error that an answer which is no success stands for; also when something between us and Carillon gave it. */
export async function errorOf(response: Response): Promise<CarillonApiError> {
  const { status, headers } = response;
  const failure = failureIn(await response.text().catch(() => ""));
  return new CarillonApiError({
    ...failure,
    status,
    type: failure?.type ?? `http_${status}`,
    requestId: failure?.request_id ?? headers.get("x-request-id") ?? undefined,
    retryAfter: secondsIn(headers),
  });
}

function failureIn(text: string): Failure | undefined {
  try {
    const body: unknown = JSON.parse(text);
    const said = typeof body === "object" && body !== null && "type" in body && typeof body.type === "string";
    return said ? (body as Failure) : undefined;
  } catch {
    return undefined;
  }
}

/** `Retry-After` in seconds; a date in it is compared with the server's own clock, since ours may be wrong. */
function secondsIn(headers: Headers): number | undefined {
  const value = headers.get("retry-after")?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  const seconds = (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

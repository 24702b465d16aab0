import type { Clock } from "../kernel/clock.ts";
import { cameBeforeTheRequest, errorText } from "./failure.ts";

/** A request and its answer, whole, within a time limit. */
export interface Exchange {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** Seconds until the last byte of the answer. */
  readonly timeout: number;
  /** Bytes; an answer that is longer counts as none. */
  readonly longestAnswer?: number;
}

export type Answer =
  | { readonly ok: true; readonly status: number; readonly headers: Headers; readonly body: Buffer }
  /** Nothing that can be trusted came back; the other side may have acted all the same, unless it was not reached. */
  | { readonly ok: false; readonly error: string; readonly tooLong?: true; readonly unreached?: true };

export type Fetch = typeof fetch;

export interface ExchangeSurroundings {
  readonly clock: Clock;
  /** Replaced by tests that must see which addresses are asked. */
  readonly fetch?: Fetch;
}

const LONGEST_ANSWER = 8 * 1_048_576;

/**
 * One HTTP exchange over the platform's kept-alive connections. Never throws and never follows a redirect: to an API a
 * redirect is an answer like any other refusal, and following one would carry credentials elsewhere.
 */
export async function exchange(request: Exchange, surroundings: ExchangeSurroundings): Promise<Answer> {
  const { clock, fetch: send = fetch } = surroundings;
  const answered = new AbortController();
  const late = new AbortController();
  void clock.sleep(request.timeout, answered.signal).then((passed) => {
    if (passed) late.abort(new DOMException(`no answer within ${request.timeout} s`, "TimeoutError"));
  });
  try {
    const response = await send(request.url, {
      method: request.method,
      headers: request.headers,
      body: request.body,
      redirect: "manual",
      signal: late.signal,
    });
    const body = await readBody(response, request.longestAnswer ?? LONGEST_ANSWER);
    if (body === undefined) return { ok: false, error: "the answer is too long", tooLong: true };
    return { ok: true, status: response.status, headers: response.headers, body };
  } catch (error) {
    if (late.signal.aborted) return { ok: false, error: errorText(late.signal.reason) };
    return { ok: false, error: errorText(error), ...(cameBeforeTheRequest(error) ? { unreached: true } : {}) };
  } finally {
    answered.abort();
  }
}

async function readBody(response: Response, longest: number): Promise<Buffer | undefined> {
  if (!response.body) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    // Leaving the loop cancels the rest of the stream.
    if (size > longest) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The JSON in an answer, or undefined where there is none. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null);

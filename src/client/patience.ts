import type { Sent } from "./calls.ts";
import type { CarillonApiError } from "./error.ts";

/** Longer than this nobody is kept waiting for a second try; they get the refusal instead. */
const LONGEST_WAIT = 60;

/**
 * After how many seconds a refused request may be sent again; undefined when it may not. Only what Carillon itself asks
 * to be repeated is: 429, and 503 with a time. A 503 can hide that the request was done after all, so a POST is sent again
 * after one only with an idempotency key.
 */
export function secondsUntilRepeat({ status, retryAfter }: CarillonApiError, { init }: Sent): number | undefined {
  if (retryAfter === undefined || retryAfter > LONGEST_WAIT) return undefined;
  if (status === 429) return retryAfter;
  const repeatable = init.method !== "POST" || init.headers.has("idempotency-key");
  return status === 503 && repeatable ? retryAfter : undefined;
}

/** Waits, unless whoever called loses interest. */
export function wait(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

import type { Context } from "../../jobs/context.ts";
import { type SecretHolder, sign } from "./signature.ts";

const ANSWER_SECONDS = 15;
const LONGEST_BODY = 16_384;

/** How one attempt ended. */
export type Attempt =
  | { readonly kind: "delivered"; readonly status: number }
  /** The receiver wants nothing any more. */
  | { readonly kind: "gone"; readonly status: number }
  | { readonly kind: "refused"; readonly status: number; readonly error: string }
  /** Nobody answered: it is not about this message. */
  | { readonly kind: "silent"; readonly error: string };

/** Sends one message, signed for this moment. Redirects are not followed: a signature is for one address. */
export async function post(
  ctx: Pick<Context, "clock" | "config">,
  endpoint: SecretHolder & { readonly url: string },
  message: { readonly uid: string; readonly body: string },
): Promise<Attempt> {
  const deadline = new AbortController();
  const done = new AbortController();
  void ctx.clock.sleep(ANSWER_SECONDS, done.signal).then((passed) => passed && deadline.abort());
  try {
    const response = await fetch(endpoint.url, {
      method: "POST",
      redirect: "manual",
      signal: deadline.signal,
      headers: {
        "content-type": "application/json",
        "user-agent": "Carillon webhooks",
        ...sign(ctx, endpoint, message, ctx.clock.now()),
      },
      body: message.body,
    });
    await readToEnd(response).catch(() => {});
    return attemptOf(response.status);
  } catch (error) {
    if (deadline.signal.aborted) return { kind: "silent", error: `no answer within ${ANSWER_SECONDS} s` };
    return { kind: "silent", error: reasonOf(error) };
  } finally {
    done.abort();
  }
}

/** The status says everything. A short body is read all the same, because the connection can be used again then. */
async function readToEnd({ body }: Response): Promise<void> {
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > LONGEST_BODY) return;
  }
}

function attemptOf(status: number): Attempt {
  if (status >= 200 && status < 300) return { kind: "delivered", status };
  if (status === 410) return { kind: "gone", status };
  const redirect = status >= 300 && status < 400;
  return { kind: "refused", status, error: redirect ? "answered with a redirect" : `answered ${status}` };
}

/** `fetch` hides the reason in its cause; codes such as ECONNREFUSED name no address. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } };
  return typeof cause?.code === "string" ? cause.code : "the connection failed";
}

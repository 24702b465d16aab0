import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { jobErrors } from "../../jobs/errors.ts";
import { enqueuePushes } from "./outbox.ts";

/** A notification that an operator sends to see whether the channel works. */
export const TestPush = z.strictObject({
  push_token: z.string().max(63),
  title: z.string().min(1).max(500),
  body: z.string().max(4000),
  channel_id: z.string().max(100).nullable().default(null),
});
export type TestPush = z.output<typeof TestPush>;

/** Tests step aside when the queue is long. */
const LONGEST_QUEUE = 1000;
const RETRY_AFTER = 60;

export async function sendTestPush(ctx: Context, { push_token, ...contents }: TestPush): Promise<string> {
  const queued = await enqueuePushes(
    ctx,
    [
      {
        pushToken: push_token,
        contents,
        failureJob: { name: "runners.push.default_failure", kwargs: {} },
        successJob: { name: "runners.push.default_success", kwargs: {} },
      },
    ],
    { maxLength: LONGEST_QUEUE },
  );
  if (!queued.ok) throw jobErrors.backpressure({ retryAfter: RETRY_AFTER });
  return queued.uids[0]!;
}

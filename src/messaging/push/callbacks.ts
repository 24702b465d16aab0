import type { Context } from "../../jobs/context.ts";
import type { Outcome } from "../../jobs/runner.ts";
import { confirmPushTokens, deletePushTokens } from "../contacts/service.ts";
import { retryOrAbandon } from "./policy.ts";
import { type FailureStory, readFailure, readSuccess, type SuccessStory } from "./story.ts";

/** Failures of notifications that nobody else looks after: the policy decides, and a device that is gone loses its token. */
export async function afterFailures(ctx: Context, stories: readonly FailureStory[]): Promise<void> {
  const verdicts = await retryOrAbandon(ctx, stories);
  const unrecognized = stories.filter(
    ({ failure_info }, at) => verdicts[at] !== "retry" && failure_info.identifier === "DeviceNotRegistered",
  );
  await deletePushTokens(
    ctx,
    unrecognized.map(({ attempt, failure_info }) => ({
      token: attempt.push_token,
      stage: failure_info.action === "send" ? "ticket" : "receipt",
    })),
  );
}

export async function afterSuccesses(ctx: Context, stories: readonly SuccessStory[]): Promise<void> {
  await confirmPushTokens(
    ctx,
    stories.map(({ attempt, result }) => ({ token: attempt.push_token, at: result.receipt_checked_at })),
  );
}

interface WithStory {
  readonly data_raw: string;
}

export const runFailures = (ctx: Context, items: readonly WithStory[]) =>
  eachReadable(ctx, items, readFailure, afterFailures);
export const runSuccesses = (ctx: Context, items: readonly WithStory[]) =>
  eachReadable(ctx, items, readSuccess, afterSuccesses);

/** Handles all items that can be read in one go; the others fail, each for itself. */
async function eachReadable<Story>(
  ctx: Context,
  items: readonly WithStory[],
  read: (dataRaw: string) => Story,
  handle: (ctx: Context, stories: readonly Story[]) => Promise<void>,
): Promise<readonly Outcome[]> {
  const stories: Story[] = [];
  const outcomes = items.map(({ data_raw }): Outcome => {
    try {
      stories.push(read(data_raw));
      return { ok: true };
    } catch (error) {
      return { ok: false, error };
    }
  });
  if (stories.length > 0) await handle(ctx, stories);
  return outcomes;
}

import type { Context } from "../../jobs/context.ts";
import { jobErrors } from "../../jobs/errors.ts";
import type { Outcome } from "../../jobs/runner.ts";
import { type PhoneSuppression, suppressedAmong, suppressPhones } from "../contacts/service.ts";
import { type FailureStory, readFailure, readSuccess } from "./callbacks.ts";
import { enqueueSms } from "./enqueue.ts";
import { errors } from "./errors.ts";
import { decideFailures } from "./policy.ts";
import { settings } from "./settings.ts";

export const DEFAULT_FAILURE = "runners.sms.default_failure";
export const DEFAULT_SUCCESS = "runners.sms.default_success";
/** Where a queue is long enough that a test may wait. */
const TEST_LIMIT = 1_000;
const TEST_RETRY_AFTER = 60;

/** What callbacks are given, or why it cannot be read: a story that is broken fails its own job alone. */
function readEach<T>(raws: readonly string[], read: (raw: string) => T) {
  return raws.map((raw): { readonly story: T } | { readonly error: unknown } => {
    try {
      return { story: read(raw) };
    } catch (error) {
      return { error };
    }
  });
}

const outcomesOf = (read: readonly ({ readonly story: unknown } | { readonly error: unknown })[]): Outcome[] =>
  read.map((one) => ("error" in one ? { ok: false, error: one.error } : { ok: true }));

/** The failure callback of texts that nobody else cares for: decide, and suppress numbers that cannot be reached. */
export async function handleFailures(ctx: Context, raws: readonly string[]): Promise<readonly Outcome[]> {
  const read = readEach(raws, readFailure);
  const stories = read.flatMap((one) => ("story" in one ? [one.story] : []));
  const verdicts = await decideFailures(ctx, stories);
  const settled = stories.filter((_, at) => verdicts[at]!.succeeded && !verdicts[at]!.wantedToRetry);
  await suppressUnreachable(ctx, settled);
  return outcomesOf(read);
}

/** Numbers that the provider calls unreachable get no more texts. */
export async function suppressUnreachable(ctx: Context, stories: readonly FailureStory[]): Promise<void> {
  const codes = new Set(ctx.config.get(settings.unreachableCodes));
  const suppressions = new Map<string, PhoneSuppression>();
  for (const { sms, failure_info } of stories) {
    const { identifier, subidentifier, extra } = failure_info;
    if (identifier !== "ApplicationErrorOther" || subidentifier === null || !codes.has(subidentifier)) continue;
    suppressions.set(sms.phone_number, {
      phoneNumber: sms.phone_number,
      reason: "Unreachable",
      details: { identifier, subidentifier, extra },
    });
  }
  await suppressPhones(ctx, [...suppressions.values()]);
}

/** Suppresses numbers of texts that had ended before their carriers refused them. */
export async function suppressLate(
  ctx: Context,
  refused: readonly { readonly phone_number: string; readonly error_code: string }[],
): Promise<void> {
  const suppressions = refused.map(({ phone_number, error_code }): [string, PhoneSuppression] => [
    phone_number,
    {
      phoneNumber: phone_number,
      reason: "Unreachable",
      details: { identifier: "ApplicationErrorOther", subidentifier: error_code, extra: null },
    },
  ]);
  await suppressPhones(ctx, [...new Map(suppressions).values()]);
}

export async function handleSuccesses(ctx: Context, raws: readonly string[]): Promise<readonly Outcome[]> {
  const read = readEach(raws, readSuccess);
  for (const one of read)
    if ("story" in one) ctx.log.debug({ uid: one.story.sms.uid, ...one.story.result.message_resource }, "text sent");
  return outcomesOf(read);
}

/** Queues one text with the default callbacks, as an administrator's test; a repeat with the same `callUid` adds none. */
export async function sendTest(
  ctx: Context,
  text: { readonly phoneNumber: string; readonly body: string },
  callUid?: string,
): Promise<string | undefined> {
  const { phones } = await suppressedAmong(ctx, { phones: [text.phoneNumber] });
  if (phones.size > 0) throw errors.suppressed();
  const answer = await enqueueSms(
    ctx,
    [
      {
        ...text,
        failureJob: { name: DEFAULT_FAILURE, kwargs: {} },
        successJob: { name: DEFAULT_SUCCESS, kwargs: {} },
      },
    ],
    { maxLength: TEST_LIMIT, callUid },
  );
  if (answer.ok) return answer.uids[0]!;
  if (answer.reason === "duplicate") return undefined;
  throw jobErrors.backpressure({ message: "Too many texts wait to be sent.", retryAfter: TEST_RETRY_AFTER });
}

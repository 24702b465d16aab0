import type { Context, JobContext } from "../../jobs/context.ts";
import type { Outcome } from "../../jobs/runner.ts";
import { bareAddress } from "../../providers/email.ts";
import { type EmailFailure, suppressAfterFailure } from "../contacts/service.ts";
import { type FailureStory, readFailure, readSuccess, type SuccessStory } from "./callbacks.ts";
import type { MailNews } from "./entries.ts";
import { handleFailures, type Verdict } from "./policy.ts";

/** A story for each item that can be read; the others fail alone. */
function readAll<T>(raws: readonly string[], read: (raw: string) => T) {
  const stories: { readonly at: number; readonly story: T }[] = [];
  const outcomes = raws.map((raw, at): Outcome => {
    try {
      stories.push({ at, story: read(raw) });
      return { ok: true };
    } catch (error) {
      return { ok: false, error };
    }
  });
  return { stories, outcomes };
}

/** What becomes of failures nobody else cares for, and what every other failure job begins with. */
export async function defaultFailures(
  ctx: JobContext,
  raws: readonly string[],
  heard: (story: FailureStory, verdict: Verdict, at: number) => Promise<void> | void = () => {},
): Promise<readonly Outcome[]> {
  const { stories, outcomes } = readAll(raws, readFailure);
  const verdicts = await handleFailures(
    ctx,
    stories.map(({ story }) => story),
  );
  for (const [index, { at, story }] of stories.entries()) {
    const { step, error_identifier } = story.info;
    const retried = verdicts[index]!.wantedToRetry;
    ctx.log.info({ uid: story.email.uid, step, error_identifier, retried }, "a mail failed");
    await heard(story, verdicts[index]!, at);
  }
  return outcomes;
}

export async function defaultSuccesses(
  ctx: JobContext,
  raws: readonly string[],
  heard: (story: SuccessStory, at: number) => Promise<void> | void = () => {},
): Promise<readonly Outcome[]> {
  const { stories, outcomes } = readAll(raws, readSuccess);
  for (const { at, story } of stories) {
    ctx.log.info({ uid: story.email.uid }, "a mail was delivered");
    await heard(story, at);
  }
  return outcomes;
}

/** News of mails that nobody awaits any more still says which addresses must not be written to. */
export async function suppressAbandoned(ctx: Context, news: readonly MailNews[]): Promise<void> {
  await suppressAfterFailure(ctx, news.flatMap(failuresIn));
}

function failuresIn({ notification, message_id: messageId }: MailNews): readonly EmailFailure[] {
  switch (notification.type) {
    case "Delivery":
      return [];
    case "Bounce": {
      const extra = `${notification.reason.primary}/${notification.reason.secondary}`;
      return notification.bounced_recipients.map((one) => ({
        type: "Bounce",
        email: bareAddress(one),
        extra,
        messageId,
      }));
    }
    case "Complaint": {
      const extra = notification.feedback_type ?? undefined;
      return notification.complained_recipients.map((one) => ({
        type: "Complaint",
        email: bareAddress(one),
        messageId,
        ...(extra === undefined ? {} : { extra }),
      }));
    }
  }
}

import { createHash } from "node:crypto";
import { z } from "zod";
import type { Context, JobContext } from "../../jobs/context.ts";
import { defineRunner } from "../../jobs/runner.ts";
import { defaultFailures, defaultSuccesses } from "./defaults.ts";
import { enqueueMails } from "./enqueue.ts";
import { type Attempt, MailAddress, Slug, Subject } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys, TEST_MEMORY } from "./keys.ts";

/**
 * A mail that somebody sends to themselves to see what becomes of it. Whoever watches its progress hears of every step:
 * queued, accepted, again in a while, delivered or failed, each with the address it is about. The progress ends when every
 * address has: which ones have not is kept in `email:test_waiting:{job_uid}`, so that repeated callbacks change nothing.
 */
/** Above so many waiting mails, administrators are asked to come back. */
export const ADMIN_QUEUE_LIMIT = 10_000;
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
const SUCCESS = "runners.emails.test_success_handler";
const FAILURE = "runners.emails.test_failure_handler";

type TellingContext = Pick<Context, "redis" | "jobs">;
type Step = "queued" | "accepted" | "retrying" | "delivered" | "failed";

/** Remembers whose end is awaited; before the first of them can end. */
export async function expectEnds(ctx: TellingContext, jobUid: string, emails: readonly string[]): Promise<void> {
  const { commands, topology } = ctx.redis;
  const key = topology.key(keys.testWaiting({ job_uid: jobUid }));
  await Promise.all([commands.sadd(key, ...emails), commands.expire(key, TEST_MEMORY)]);
  await tell(ctx, jobUid, "queued", emails.join(", "));
}

async function tell(ctx: TellingContext, jobUid: string, step: Step, about: string): Promise<void> {
  await ctx.jobs.progress.push(jobUid, {
    type: step === "queued" ? "queued" : "progress",
    message: `${step}: ${about}`,
    indicator: { type: "spinner" },
  });
}

/** One address has ended; the last one ends the progress, well only if all did. */
async function tellEnd(ctx: TellingContext, jobUid: string, email: string, why?: string): Promise<void> {
  const { commands, topology } = ctx.redis;
  const key = topology.key(keys.testWaiting({ job_uid: jobUid }));
  const step = why === undefined ? "delivered" : "failed";
  const [, , left] = await Promise.all([
    commands.srem(key, email),
    why === undefined ? undefined : commands.sadd(key, `!${email}`),
    commands.smembers(key),
  ]);
  const message = `${step}: ${email}${why === undefined ? "" : `: ${why}`}`;
  const over = left.every((member) => member.startsWith("!"));
  if (!over) return tell(ctx, jobUid, step, message.slice(step.length + 2));
  const type = left.length === 0 ? "succeeded" : "failed";
  await ctx.jobs.progress.push(jobUid, { type, message, indicator: { type: "final" } });
}

/** The provider took these mails; those among them that somebody watches are told of. */
export async function tellAccepted(
  ctx: TellingContext & Pick<Context, "log">,
  mails: readonly Attempt[],
): Promise<void> {
  for (const { success_job: job, email } of mails) {
    if (job.name !== SUCCESS) continue;
    // It is news for one person; the mail itself is settled whatever becomes of the news.
    await tell(ctx, String(job.kwargs.job_uid), "accepted", email).catch((error: unknown) =>
      ctx.log.warn({ reason: String(error) }, "nobody hears that a test mail was accepted"),
    );
  }
}

const CallbackKwargs = z.strictObject({ data_raw: z.string(), job_uid: z.string() });

export const testFailureHandler = defineRunner({
  name: FAILURE,
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Tells whoever watches a test mail that it failed, or is tried again.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultFailures(
      ctx,
      items.map(({ data_raw }) => data_raw),
      ({ email: { email }, info }, { wantedToRetry }, at) => {
        const why = `${info.step}: ${info.error_identifier}${info.extra === null ? "" : ` (${info.extra})`}`;
        const { job_uid } = items[at]!;
        return wantedToRetry
          ? tell(ctx, job_uid, "retrying", `${email}: ${why}`)
          : tellEnd(ctx, job_uid, String(email), why);
      },
    ),
});

export const testSuccessHandler = defineRunner({
  name: SUCCESS,
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Tells whoever watches a test mail that it was delivered.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultSuccesses(
      ctx,
      items.map(({ data_raw }) => data_raw),
      ({ email: { email } }, at) => tellEnd(ctx, items[at]!.job_uid, email),
    ),
});

export const sendTest = defineRunner({
  name: "runners.emails.send_test",
  category: 2,
  kwargs: z.strictObject({
    email: MailAddress,
    subject: Subject,
    template: Slug,
    template_parameters: z.record(z.string(), z.unknown()),
    job_uid: z.string().min(1).max(128),
  }),
  doc: "Sends one mail and tells whoever watches what becomes of it.",
  async run(ctx: JobContext, { email, subject, template, template_parameters, job_uid }) {
    const kwargs = { job_uid };
    const mail = {
      email,
      subject,
      template,
      parameters: template_parameters,
      successJob: { name: SUCCESS, kwargs },
      failureJob: { name: FAILURE, kwargs },
    };
    // A worker that died may leave the job to another one; the mail goes out once all the same.
    const callUid = `${job_uid}-${createHash("sha256").update(email).digest("hex").slice(0, 16)}`;
    const answer = await enqueueMails(ctx, [mail], { maxLength: ADMIN_QUEUE_LIMIT, callUid });
    if (answer.ok || answer.reason === "duplicate") return;
    await tellEnd(ctx, job_uid, email, "too many mails wait");
    throw errors.email_backpressure();
  },
});

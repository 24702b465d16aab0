import { z } from "zod";
import { runAlone } from "../../jobs/alone.ts";
import type { JobContext } from "../../jobs/context.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { CallbackKwargs } from "./callbacks.ts";
import { defaultFailures, defaultSuccesses, suppressAbandoned } from "./defaults.ts";
import { enqueueMails } from "./enqueue.ts";
import { MailAddress, MailNews, Slug, Subject } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { ABANDONED_CALLBACK, reconcileReceipts } from "./reconciliation.ts";
import { BUDGET, sendMails } from "./send.ts";
import { detectStale } from "./stale.ts";

const NoKwargs = z.strictObject({});
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
/** Above so many waiting mails, administrators are asked to come back. */
export const ADMIN_QUEUE_LIMIT = 10_000;
type QueueRunner = Runner<typeof NoKwargs>;

export const send: QueueRunner = defineRunner({
  name: "runners.emails.send",
  category: 2,
  kwargs: NoKwargs,
  doc: "Sends the mails that wait.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, send, {
      lock: keys.sendLock(),
      queues: [keys.toSend(), keys.urgent()],
      work: sendMails,
    });
  },
});

export const receiptReconciliation: QueueRunner = defineRunner({
  name: "runners.emails.receipt_reconciliation",
  category: 2,
  kwargs: NoKwargs,
  doc: "Works news of mails in: deliveries, bounces and complaints end in callbacks.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, receiptReconciliation, {
      lock: keys.reconciliationLock(),
      queues: [keys.event()],
      schedules: [keys.early()],
      work: reconcileReceipts,
    });
  },
});

export const staleReceiptDetection: QueueRunner = defineRunner({
  name: "runners.emails.stale_receipt_detection",
  category: 2,
  kwargs: NoKwargs,
  doc: "Gives up on mails whose receipt did not come, and tells their failure jobs.",
  budget: BUDGET,
  async run(ctx) {
    await runAlone(ctx, staleReceiptDetection, { lock: keys.staleLock(), work: detectStale });
  },
});

export const abandonedEmailCallback = defineRunner({
  name: ABANDONED_CALLBACK,
  category: 2,
  kwargs: z.strictObject({ event_obj: MailNews }),
  doc: "Suppresses the addresses of bounces and complaints whose mail nobody awaits any more.",
  retry: CALLBACK_RETRY,
  async runMany(ctx, items) {
    await suppressAbandoned(
      ctx,
      items.map(({ event_obj }) => event_obj),
    );
    return undefined;
  },
});

export const defaultFailure = defineRunner({
  name: "runners.emails.default_failure",
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Decides whether a failed mail is tried again, and suppresses addresses that bounced or complained.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultFailures(
      ctx,
      items.map(({ data_raw }) => data_raw),
    ),
});

export const defaultSuccess = defineRunner({
  name: "runners.emails.default_success",
  category: 2,
  kwargs: CallbackKwargs,
  doc: "Notes that a mail was delivered.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultSuccesses(
      ctx,
      items.map(({ data_raw }) => data_raw),
    ),
});

const TestCallbackKwargs = z.strictObject({ data_raw: z.string(), job_uid: z.string() });

export const testFailureHandler = defineRunner({
  name: "runners.emails.test_failure_handler",
  category: 2,
  kwargs: TestCallbackKwargs,
  doc: "Tells whoever watches a test mail that it failed, or is tried again.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultFailures(
      ctx,
      items.map(({ data_raw }) => data_raw),
      ({ info }, { wantedToRetry }, at) =>
        tell(ctx, items[at]!.job_uid, wantedToRetry ? "retrying" : "failed", `${info.step}: ${info.error_identifier}`),
    ),
});

export const testSuccessHandler = defineRunner({
  name: "runners.emails.test_success_handler",
  category: 2,
  kwargs: TestCallbackKwargs,
  doc: "Tells whoever watches a test mail that it was delivered.",
  retry: CALLBACK_RETRY,
  runMany: (ctx, items) =>
    defaultSuccesses(
      ctx,
      items.map(({ data_raw }) => data_raw),
      (uid, at) => tell(ctx, items[at]!.job_uid, "delivered", uid),
    ),
});

async function tell(
  ctx: JobContext,
  jobUid: string,
  status: "delivered" | "failed" | "retrying",
  about: string,
): Promise<void> {
  const type = { delivered: "succeeded", failed: "failed", retrying: "progress" } as const;
  const indicator = status === "retrying" ? ({ type: "spinner" } as const) : ({ type: "final" } as const);
  await ctx.jobs.progress.push(jobUid, { type: type[status], message: `${status}: ${about}`, indicator });
}

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
  async run(ctx, { email, subject, template, template_parameters, job_uid }) {
    const kwargs = { job_uid };
    const mail = {
      email,
      subject,
      template,
      parameters: template_parameters,
      successJob: { name: testSuccessHandler.name, kwargs },
      failureJob: { name: testFailureHandler.name, kwargs },
    };
    const answer = await enqueueMails(ctx, [mail], { maxLength: ADMIN_QUEUE_LIMIT });
    if (!answer.ok) throw errors.email_backpressure();
  },
});

export const runners = [
  send,
  receiptReconciliation,
  staleReceiptDetection,
  abandonedEmailCallback,
  defaultFailure,
  defaultSuccess,
  testFailureHandler,
  testSuccessHandler,
  sendTest,
];

export const recurring = [
  recur(send, {}, { seconds: [0, 15, 30, 45] }),
  recur(receiptReconciliation, {}, { seconds: [0] }),
  recur(staleReceiptDetection, {}, { seconds: [0] }),
];

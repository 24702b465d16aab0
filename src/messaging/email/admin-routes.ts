import { z } from "zod";
import { route } from "../../domain.ts";
import { progressToken } from "../../infrastructure/jobs/service.ts";
import type { Context } from "../../jobs/context.ts";
import { liveRoutes } from "../../jobs/live-routes.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { contactMethodsOf, isHeldBack, suppressedAmong } from "../contacts/service.ts";
import { book, brandOf, prepareMail } from "../email_templates/service.ts";
import { addressOf, enqueueMails, sendQueueLength } from "./enqueue.ts";
import { CallbackJob, Slug, Subject } from "./entries.ts";
import { errors } from "./errors.ts";
import { Health, healthOf } from "./health.ts";
import { keys, TEST_SEND_WINDOW } from "./keys.ts";
import { pauseLists, resumeLists } from "./paused-lists.ts";
import { eventQueueInfo, receiptPendingInfo, sendQueueInfo } from "./queue-info.ts";
import { ADMIN_QUEUE_LIMIT, expectEnds, sendTest } from "./test-mail.ts";
import { unsubscribeUrl } from "./unsubscribe-token.ts";

const Count = z.int().min(0);
const Time = z.number().nullable();
const BODY_LIMIT = 524_288;
const RETRY_AFTER = 60;
const MailParameters = z.record(z.string(), z.unknown());

const { live, lastRun } = liveRoutes({
  root: "/api/1/admin/email",
  unit: "seconds",
  purgatory: "in_purgatory",
  neverFinished: () => errors.email_run_not_finished(),
});

const PendingMail = z.object({
  uid: z.string(),
  message_id: z.string(),
  email: z.string(),
  subject: z.string(),
  template: z.string(),
  template_parameters: MailParameters,
  send_initially_queued_at: z.number(),
  send_accepted_at: z.number(),
});

const testSends = counterLimit({ reason: "email_test_sends", limit: 10, window: TEST_SEND_WINDOW, mode: "fixed" });

export const adminRoutes: readonly Route<Context>[] = [
  live(
    "send_queue_info",
    "How many mails wait to be sent, and since when",
    z.object({ length: Count, urgent: Count, retrying: Count, paused: Count, oldest_last_queued_at: Time }),
    sendQueueInfo,
  ),
  live(
    "event_queue_info",
    "How much news of mails waits, and since when",
    z.object({ length: Count, early: Count, oldest_last_queued_at: Time }),
    eventQueueInfo,
  ),
  live(
    "receipt_pending_info",
    "How many mails await their receipt, and which wait longest",
    z.object({ count: Count, oldest_send_accepted_at: Time, items: z.array(PendingMail) }),
    receiptPendingInfo,
  ),
  lastRun("last_send_job", "sending mails", {
    report: keys.sendReport,
    lock: keys.sendLock(),
    purgatory: keys.sendPurgatory(),
  }),
  lastRun("last_reconciliation_job", "working news in", {
    report: keys.reconciliationReport,
    lock: keys.reconciliationLock(),
    purgatory: keys.eventPurgatory(),
  }),
  lastRun("last_stale_receipt_detection_job", "giving up on receipts", {
    report: keys.staleReport,
    lock: keys.staleLock(),
  }),
  live("health", "Whether mails can be sent, how they fare, and who reports on them", Health, healthOf),
  route({
    method: "POST",
    path: "/api/1/admin/email/lists/resume",
    access: "admin",
    summary: "Let mails of lists go on after a pause",
    description:
      "What was set aside comes back in order. Only bounces and complaints of later days can pause them again.",
    responses: { 200: z.object({ resumed: z.boolean().meta({ description: "False: they were not paused" }) }) },
    handle: async (ctx) => ({ status: 200, body: { resumed: await resumeLists(ctx) } }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/email/lists/pause",
    access: "admin",
    summary: "Pause mails of lists; codes and other mails of no list go on",
    schemas: { body: z.strictObject({ reason: z.string().trim().min(1).max(500) }) },
    async handle(ctx, { body }) {
      await pauseLists(ctx, body.reason);
      return { status: 204 };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/email/messages",
    access: "admin",
    summary: "Send a mail",
    description:
      "Queues it; `uid` finds it again in logs, callbacks and the mail itself. Callbacks that are left out are the default ones.",
    schemas: {
      body: z.strictObject({
        email: z.string().max(254),
        subject: Subject.optional(),
        template: Slug,
        template_parameters: MailParameters,
        success_job: CallbackJob.optional(),
        failure_job: CallbackJob.optional(),
        uid: z
          .string()
          .regex(/^crl_em_[\w-]{22}$/)
          .optional(),
      }),
    },
    responses: { 202: z.object({ uid: z.string() }) },
    bodyLimit: BODY_LIMIT,
    async handle(ctx, { body }) {
      const { list } = book.get(body.template);
      const email = addressOf(body.email);
      const held = (await suppressedAmong(ctx, { emails: [email] })).emails.get(email);
      if (isHeldBack(held, list)) throw errors.email_suppressed({ detail: held });
      const answer = await enqueueMails(
        ctx,
        [
          {
            email,
            template: body.template,
            parameters: body.template_parameters,
            ...(body.subject === undefined ? {} : { subject: body.subject }),
            ...(body.uid === undefined ? {} : { uid: body.uid }),
            ...(body.success_job === undefined ? {} : { successJob: body.success_job }),
            ...(body.failure_job === undefined ? {} : { failureJob: body.failure_job }),
          },
        ],
        { maxLength: ADMIN_QUEUE_LIMIT },
      );
      if (!answer.ok) throw errors.email_backpressure({ retryAfter: RETRY_AFTER });
      return { status: 202, body: { uid: answer.uids[0] } };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/email/send_test",
    access: "admin",
    summary: "Send a mail to your own verified addresses, and watch what becomes of it",
    description:
      "It is rendered before it is queued. `GET /api/1/admin/email/send_test/{job_uid}` tells what became of it; with `progress_token` it can also be watched live like any job.",
    schemas: {
      body: z.strictObject({ template: Slug, template_parameters: MailParameters, subject: Subject.optional() }),
    },
    responses: { 202: z.object({ job_uid: z.string(), progress_token: z.string(), emails: z.array(z.string()) }) },
    bodyLimit: BODY_LIMIT,
    async handle(ctx, { body, caller }) {
      const { sub } = caller;
      const emails = sub === undefined ? [] : await verifiedOf(ctx, sub);
      if (sub === undefined || emails.length === 0) throw errors.no_verified_email();
      const { template, template_parameters } = body;
      const { list } = book.get(template);
      const parameters =
        list === null || "unsubscribeUrl" in template_parameters
          ? template_parameters
          : { ...template_parameters, unsubscribeUrl: previewUnsubscribeUrl(ctx) };
      const { subject } = prepareMail(template, parameters, brandOf(ctx.config));
      if ((await sendQueueLength(ctx)) > ADMIN_QUEUE_LIMIT)
        throw errors.email_backpressure({ retryAfter: RETRY_AFTER });
      const counted = await attempt(ctx, [testSends(keys.testSends({ admin: sub }))]);
      if (!counted.allowed) throw errors.too_many_test_mails({ retryAfter: Math.ceil(counted.retryAfter) });
      const job_uid = newUid("jp");
      await expectEnds(ctx, job_uid, emails);
      await ctx.jobs.enqueueMany(
        sendTest,
        emails.map((email) => ({ email, subject: body.subject ?? subject, job_uid, template, template_parameters })),
      );
      return { status: 202, body: { job_uid, progress_token: await progressToken(ctx, job_uid), emails } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/email/send_test/{job_uid}",
    access: "admin",
    summary: "What became of a test mail so far",
    schemas: { params: z.object({ job_uid: z.string().regex(/^crl_jp_[\w-]{22}$/) }) },
    responses: {
      200: z.object({
        done: z.boolean(),
        outcome: z.enum(["delivered", "failed"]).nullable().meta({ description: "Failed if any address did" }),
        steps: z.array(z.object({ at: z.number(), message: z.string() })),
      }),
    },
    async handle(ctx, { params }) {
      const progress = await ctx.jobs.progress.read(params.job_uid);
      if (!progress) throw errors.unknown_test_mail();
      const steps = progress.events.map(({ occurred_at, message }) => ({ at: occurred_at, message }));
      const last = progress.events.at(-1)?.type;
      const outcome = !progress.done ? null : last === "succeeded" ? "delivered" : "failed";
      return { status: 200, headers: { "cache-control": "no-store" }, body: { done: progress.done, outcome, steps } };
    },
  }),
];

/**
 * Whoever tries a mail out has asked for it, so switched-off notifications do not matter; and what is suppressed fails where
 * its sender watches, which says more than that there is no address.
 */
async function verifiedOf(ctx: Context, sub: string): Promise<readonly string[]> {
  const { emails } = await contactMethodsOf(ctx, sub);
  const verified = emails.filter(({ verified }) => verified).map(({ value }) => value);
  // Those that differ in case only are one mailbox.
  return verified.filter(
    (email, at) => verified.findIndex((other) => other.toLowerCase() === email.toLowerCase()) === at,
  );
}

/** A link like the one that the mail will get, for rendering it beforehand. */
const previewUnsubscribeUrl = (ctx: Context) =>
  unsubscribeUrl(ctx, { email: "reader@mail.invalid", list: "reminders", emailUid: "preview", issuedAt: 0 });

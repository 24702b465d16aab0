import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { emailSettings } from "../../providers/settings.ts";
import { destinationsOf, isHeldBack, suppressedAmong } from "../contacts/service.ts";
import { book, brandOf, prepareMail } from "../email_templates/service.ts";
import { addressOf, enqueueMails } from "./enqueue.ts";
import { CallbackJob, Slug, Subject } from "./entries.ts";
import { errors } from "./errors.ts";
import { ADMIN_QUEUE_LIMIT, sendTest } from "./jobs.ts";
import { keys, TEST_SEND_WINDOW } from "./keys.ts";
import { eventQueueInfo, lastRun, receiptPendingInfo, sendQueueInfo } from "./queue-info.ts";

const Count = z.int().min(0);
const Time = z.number().nullable();
const BODY_LIMIT = 524_288;
const RETRY_AFTER = 60;
const MailParameters = z.record(z.string(), z.unknown());

function live<T extends z.ZodType>(
  path: string,
  summary: string,
  answer: T,
  read: (ctx: Context) => Promise<z.input<T>>,
): Route<Context> {
  return route({
    method: "GET",
    path: `/api/1/admin/email/${path}`,
    access: "admin",
    summary,
    responses: { 200: answer },
    handle: async (ctx) => ({ status: 200, body: await read(ctx), headers: { "cache-control": "no-store" } }),
  });
}

const LastRun = z
  .record(z.string(), z.union([z.number(), z.string(), z.null()]))
  .meta({ description: "When it ran, for how many seconds, why it stopped, and what it counted" });

const report = (path: string, job: string, plan: Parameters<typeof lastRun>[1]) =>
  live(path, `What the last run of ${job} did`, LastRun, (ctx) => lastRun(ctx, plan));

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
    z.object({ length: Count, urgent: Count, retrying: Count, oldest_last_queued_at: Time }),
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
  report("last_send_job", "sending mails", {
    report: keys.sendReport,
    lock: keys.sendLock(),
    purgatory: keys.sendPurgatory(),
  }),
  report("last_reconciliation_job", "working news in", {
    report: keys.reconciliationReport,
    lock: keys.reconciliationLock(),
    purgatory: keys.eventPurgatory(),
  }),
  report("last_stale_receipt_detection_job", "giving up on receipts", {
    report: keys.staleReport,
    lock: keys.staleLock(),
  }),
  live(
    "health",
    "Whether mails can be sent, how many, and which topics report on them",
    z.object({
      providers: z.array(z.string()),
      sending_enabled: z.boolean().nullable(),
      quota: z.object({ max_24h: z.number(), sent_24h: z.number(), max_per_second: z.number() }).nullable(),
      topics: z.array(z.string()),
    }),
    async (ctx) => {
      const quota = await ctx.providers.email.quota().catch(() => undefined);
      return {
        providers: [...ctx.config.get(emailSettings.provider)],
        sending_enabled: quota?.sendingEnabled ?? null,
        quota: quota ? { max_24h: quota.max24h, sent_24h: quota.sent24h, max_per_second: quota.maxPerSecond } : null,
        topics: [...ctx.config.get(emailSettings.snsTopicArns)],
      };
    },
  ),
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
    description: "`job_uid` is the progress to watch. It is rendered before it is queued.",
    schemas: {
      body: z.strictObject({ template: Slug, template_parameters: MailParameters, subject: Subject.optional() }),
    },
    responses: { 202: z.object({ job_uid: z.string(), emails: z.array(z.string()) }) },
    bodyLimit: BODY_LIMIT,
    async handle(ctx, { body, caller }) {
      const { sub } = caller;
      const found = sub === undefined ? [] : ((await destinationsOf(ctx, "email", [sub])).get(sub) ?? []);
      if (sub === undefined || found.length === 0) throw errors.no_verified_email();
      const { subject } = prepareMail(body.template, body.template_parameters, brandOf(ctx.config));
      const counted = await attempt(ctx, [testSends(keys.testSends({ admin: sub }))]);
      if (!counted.allowed) throw errors.too_many_test_mails({ retryAfter: Math.ceil(counted.retryAfter) });
      const job_uid = newUid("jp");
      const emails = found.map(({ address }) => address);
      await ctx.jobs.enqueueMany(
        sendTest,
        emails.map((email) => ({ email, subject: body.subject ?? subject, job_uid, ...pick(body) })),
      );
      return { status: 202, body: { job_uid, emails } };
    },
  }),
];

const pick = ({
  template,
  template_parameters,
}: {
  template: string;
  template_parameters: Record<string, unknown>;
}) => ({
  template,
  template_parameters,
});

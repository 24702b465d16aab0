import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { sendTest } from "./defaults.ts";
import { E164, LONGEST_BODY } from "./entries.ts";
import { keys } from "./keys.ts";
import { eventQueueInfo, lastRun, pendingSetInfo, recoveryQueueInfo, sendQueueInfo } from "./queue-info.ts";
import { segmentsOf } from "./segments.ts";

const Count = z.int().min(0);
const Time = z.number().nullable();

function live<T extends z.ZodType>(
  path: string,
  summary: string,
  answer: T,
  read: (ctx: Context) => Promise<z.input<T>>,
): Route<Context> {
  return route({
    method: "GET",
    path: `/api/1/admin/sms/${path}`,
    access: "admin",
    summary,
    responses: { 200: answer },
    handle: async (ctx) => ({ status: 200, body: await read(ctx), headers: { "cache-control": "no-store" } }),
  });
}

const LastRun = z
  .record(z.string(), z.union([z.number(), z.string(), z.null()]))
  .meta({ description: "When it ran, why it stopped, and what it counted" });

const report = (path: string, job: string, plan: Parameters<typeof lastRun>[1]) =>
  live(path, `What the last run of ${job} did`, LastRun, (ctx) => lastRun(ctx, plan));

export const adminRoutes: readonly Route<Context>[] = [
  live(
    "send_queue_info",
    "How many texts wait to be sent, and since when",
    z.object({ length: Count, retrying: Count, oldest_last_queued_at: Time }),
    sendQueueInfo,
  ),
  live(
    "pending_set_info",
    "How many texts have not ended yet",
    z.object({ length: Count, oldest_due_at: Time, num_overdue: Count }),
    pendingSetInfo,
  ),
  live(
    "event_queue_info",
    "How much news of texts waits, and how old it is",
    z.object({
      length: Count,
      early: Count,
      oldest_information_received_at: Time,
      oldest_item_delay: Time,
      newest_information_received_at: Time,
      newest_item_delay: Time,
    }),
    eventQueueInfo,
  ),
  live(
    "recovery_queue_info",
    "How many texts the provider is to be asked about",
    z.object({ length: Count, purgatory_size: Count }),
    recoveryQueueInfo,
  ),
  report("last_send_job", "sending texts", {
    report: keys.sendReport,
    lock: keys.sendLock(),
    purgatory: keys.sendPurgatory(),
  }),
  report("last_receipt_stale_job", "finding silent texts", { report: keys.staleReport, lock: keys.staleLock() }),
  report("last_receipt_recovery_job", "asking about silent texts", {
    report: keys.recoveryReport,
    lock: keys.recoveryLock(),
    purgatory: keys.recoveryPurgatory(),
  }),
  report("last_receipt_reconciliation_job", "working news in", {
    report: keys.reconciliationReport,
    lock: keys.reconciliationLock(),
    purgatory: keys.eventPurgatory(),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/sms/estimate",
    access: "admin",
    summary: "How many pieces carriers would bill for a text",
    schemas: {
      body: z.object({
        body: z.string().min(1).max(LONGEST_BODY),
        recipients: z.int().min(1).max(1_000_000_000).default(1),
      }),
    },
    responses: {
      200: z.object({
        encoding: z.enum(["GSM-7", "UCS-2"]),
        units: Count,
        segments: Count,
        unusual: z.array(z.string()).meta({ description: "The signs that make every place twice as wide" }),
        total_segments: Count.meta({ description: "Pieces for all recipients together" }),
      }),
    },
    handle: async (_, { body: { body, recipients } }) => {
      const { unusual, ...counted } = segmentsOf(body);
      const total_segments = counted.segments * recipients;
      return { status: 200, body: { ...counted, unusual: [...unusual], total_segments } };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/sms/test_sms",
    access: "admin",
    summary: "Send one text, to see that texts arrive",
    schemas: {
      body: z.object({ phone_number: z.string().regex(E164), body: z.string().min(1).max(LONGEST_BODY) }),
    },
    responses: { 202: z.object({ uid: z.string() }) },
    handle: async (ctx, { body }) => ({
      status: 202,
      body: { uid: (await sendTest(ctx, { phoneNumber: body.phone_number, body: body.body }))! },
    }),
  }),
];

import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { liveRoutes } from "../../jobs/live-routes.ts";
import type { Route } from "../../kernel/route.ts";
import { sendTest } from "./defaults.ts";
import { E164, LONGEST_BODY } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { eventQueueInfo, pendingSetInfo, recoveryQueueInfo, sendQueueInfo } from "./queue-info.ts";
import { segmentsOf } from "./segments.ts";

const Count = z.int().min(0);
const Time = z.number().nullable();

const { live, lastRun } = liveRoutes({
  root: "/api/1/admin/sms",
  unit: "seconds",
  neverFinished: () => errors.sms_run_not_finished(),
});

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
  lastRun("last_send_job", "sending texts", {
    report: keys.sendReport,
    lock: keys.sendLock(),
    purgatory: keys.sendPurgatory(),
  }),
  lastRun("last_receipt_stale_job", "finding silent texts", { report: keys.staleReport, lock: keys.staleLock() }),
  lastRun("last_receipt_recovery_job", "asking about silent texts", {
    report: keys.recoveryReport,
    lock: keys.recoveryLock(),
    purgatory: keys.recoveryPurgatory(),
  }),
  lastRun("last_receipt_reconciliation_job", "working news in", {
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

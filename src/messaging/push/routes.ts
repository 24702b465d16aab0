import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { pushTokensCreatedBefore } from "../contacts/service.ts";
import { keys } from "./keys.ts";
import { coldSetInfo, hotListInfo, lastRun, overviewOf, sendQueueInfo } from "./overview.ts";
import { sendTestPush, TestPush } from "./test-push.ts";

const ADMIN = "/api/1/admin/notifs";
const LIVE = { "cache-control": "no-store" };

const QueueInfo = z.object({ length: z.number(), oldest_last_queued_at: z.number().nullable() });
const LastRun = z.looseObject({
  started_at: z.number(),
  finished_at: z.number(),
  running_time: z.number(),
  purgatory_size: z.number(),
});

const ColdInfo = QueueInfo.extend({ num_overdue: z.number() });
const Overview = z.object({
  to_send: QueueInfo,
  retrying: z.object({ length: z.number(), next_due_at: z.number().nullable() }),
  send_purgatory: z.number(),
  cold: ColdInfo,
  hot: QueueInfo,
  ticket_purgatory: z.number(),
  quarantined: z.number(),
  running: z.object({ send: z.boolean(), cold_to_hot: z.boolean(), check: z.boolean() }),
  checked_at: z.number(),
});

function live(
  name: string,
  summary: string,
  answer: z.ZodType,
  read: (ctx: Context) => Promise<object>,
): Route<Context> {
  return route({
    method: "GET",
    path: `${ADMIN}/${name}`,
    access: "admin",
    summary,
    responses: { 200: answer },
    handle: async (ctx) => ({ status: 200, headers: LIVE, body: await read(ctx) }),
  });
}

export const routes: readonly Route<Context>[] = [
  live("queue_overview", "Every place on the way of notifications, in one look", Overview, overviewOf),
  live("send_queue_info", "How many notifications wait to be sent", QueueInfo, sendQueueInfo),
  live("receipt_cold_set_info", "How many tickets rest before their receipt is asked for", ColdInfo, coldSetInfo),
  live("receipt_hot_set_info", "How many receipts are to be asked for", QueueInfo, hotListInfo),
  live("last_send_job", "What the last run of the send job did", LastRun, (ctx) =>
    lastRun(ctx, keys.sendReport, keys.sendPurgatory()),
  ),
  live("last_cold_to_hot_job", "What the last run of the job from cold to hot did", LastRun, (ctx) =>
    lastRun(ctx, keys.coldToHotReport),
  ),
  live("last_check_job", "What the last run of the check job did", LastRun, (ctx) =>
    lastRun(ctx, keys.checkReport, keys.ticketPurgatory()),
  ),
  route({
    method: "GET",
    path: `${ADMIN}/total_push_tokens`,
    access: "admin",
    summary: "How many push tokens there are",
    responses: { 200: z.object({ total_push_tokens: z.number(), checked_at: z.number() }) },
    handle: async (ctx) => ({
      status: 200,
      headers: { "cache-control": "private, max-age=5" },
      body: { total_push_tokens: await pushTokensCreatedBefore(ctx.sql.tables()), checked_at: ctx.clock.now() },
    }),
  }),
  route({
    method: "POST",
    path: `${ADMIN}/test_push`,
    access: "admin",
    summary: "Send one notification to see whether the channel works",
    schemas: { body: TestPush },
    responses: { 202: z.object({ uid: z.string() }) },
    handle: async (ctx, { body }) => ({ status: 202, body: { uid: await sendTestPush(ctx, body) } }),
  }),
];

import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { liveRoutes } from "../../jobs/live-routes.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import type { Route } from "../../kernel/route.ts";
import { TOUCH_CHANNELS } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { statesPage, touchesOf, trailPage } from "./listing.ts";

const Count = z.int().min(0);
const Time = z.number().nullable();
const QueueInfo = z.object({ length: Count, oldest_queued_at: Time, purgatory_length: Count });
const NO_STORE = { "cache-control": "no-store" };

const { live, lastRun } = liveRoutes({
  root: "/api/1/admin/touch",
  unit: "milliseconds",
  neverFinished: () => errors.touch_run_not_finished(),
});

async function queueInfo(
  { redis: { commands, topology } }: Context,
  queue: KeyName<"list">,
  purgatory: KeyName<"list">,
) {
  const [length, oldest, purgatory_length] = await Promise.all([
    commands.llen(topology.key(queue)),
    commands.lindex(topology.key(queue), 0),
    commands.llen(topology.key(purgatory)),
  ]);
  return { length, oldest_queued_at: queuedAt(oldest), purgatory_length };
}

function queuedAt(raw: string | null): number | null {
  try {
    const { queued_at } = JSON.parse(raw ?? "{}");
    return typeof queued_at === "number" ? queued_at : null;
  } catch {
    return null;
  }
}

export const PageQuery = z.object({
  before: z.coerce.number().int().optional().meta({ description: "`next` of the page before" }),
  limit: z.coerce.number().int().min(1).max(100).default(50),
});
const WithSub = z.object({ sub: z.string().min(1).max(255) });

function history<T extends z.ZodType>(
  path: string,
  summary: string,
  item: T,
  read: (ctx: Context, sub: string, page: { before: number | undefined; limit: number }) => Promise<unknown>,
): Route<Context> {
  return route({
    method: "GET",
    path: `/api/1/admin/users/{sub}/${path}`,
    access: "admin",
    summary,
    schemas: { params: WithSub, query: PageQuery },
    responses: { 200: z.object({ items: z.array(item), next: z.number().nullable() }) },
    handle: async (ctx, { params, query }) => ({
      status: 200,
      headers: NO_STORE,
      body: await read(ctx, params.sub, { before: query.before, limit: query.limit }),
    }),
  });
}

const Extra = z.record(z.string(), z.unknown());

export const adminRoutes: readonly Route<Context>[] = [
  live("send_queue_info", "How many touches wait to be sent, and since when", QueueInfo, (ctx) =>
    queueInfo(ctx, keys.toSend(), keys.sendPurgatory()),
  ),
  live("log_queue_info", "How many rows about touches wait to be written, and since when", QueueInfo, (ctx) =>
    queueInfo(ctx, keys.toLog(), keys.logPurgatory()),
  ),
  live(
    "pending_sorted_set_info",
    "How many touches have not ended, and since when",
    z.object({ length: Count, oldest_score: Time }),
    async ({ redis: { commands, topology } }) => {
      const [, score] = await commands.zrange(topology.key(keys.pending()), 0, "0", "WITHSCORES");
      const length = await commands.zcard(topology.key(keys.pending()));
      return { length, oldest_score: score === undefined ? null : Number(score) };
    },
  ),
  lastRun("last_send_job", "sending touches", { report: keys.sendReport, lock: keys.sendLock() }),
  lastRun("last_log_job", "writing rows about touches", { report: keys.logReport, lock: keys.logLock() }),
  lastRun("last_stale_detection_job", "finding touches without an end", { report: keys.staleReport }),
  history(
    "touches",
    "The touches that reached a person, the newest first",
    z.object({
      uid: z.string(),
      touch_uid: z.string(),
      channel: z.enum(TOUCH_CHANNELS),
      event_slug: z.string().nullable(),
      destination: z.string(),
      message: Extra,
      created_at: z.number(),
    }),
    touchesOf,
  ),
  history(
    "touch_debug_log",
    "Every step of the touches of a person, the newest first",
    z.object({ uid: z.string(), event: Extra, created_at: z.number() }),
    trailPage,
  ),
  history(
    "touch_point_states",
    "What touch points remember of a person",
    z.object({
      uid: z.string(),
      event_slug: z.string(),
      channel: z.enum(TOUCH_CHANNELS),
      state: z.unknown(),
      version: z.int(),
      updated_at: z.number(),
    }),
    statesPage,
  ),
];

import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { liveRoutes } from "../../jobs/live-routes.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import type { Route } from "../../kernel/route.ts";
import { CODE, TRACK_TYPES } from "./entries.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { viewLink } from "./view.ts";

const Count = z.int().min(0);
const Time = z.number().nullable();
const Schedule = z.object({
  length: Count,
  oldest_score: Time,
  num_overdue: Count,
  num_in_purgatory: Count,
  min_purgatory_score: Time,
});
const Extra = z.record(z.string(), z.unknown());

const { live, lastRun } = liveRoutes({
  root: "/api/1/admin/touch",
  unit: "milliseconds",
  neverFinished: () => errors.links_run_not_finished(),
});

async function lowest({ redis }: Context, key: KeyName<"zset">): Promise<number | null> {
  const [, score] = await redis.commands.zrange(redis.topology.key(key), 0, "0", "WITHSCORES");
  return score === undefined ? null : Number(score);
}

async function scheduleInfo(ctx: Context, schedule: KeyName<"zset">, purgatory: KeyName<"zset">) {
  const { commands, topology } = ctx.redis;
  const [length, oldest_score, num_overdue, num_in_purgatory, min_purgatory_score] = await Promise.all([
    commands.zcard(topology.key(schedule)),
    lowest(ctx, schedule),
    commands.zcount(topology.key(schedule), "-inf", ctx.clock.now()),
    commands.zcard(topology.key(purgatory)),
    lowest(ctx, purgatory),
  ]);
  return { length, oldest_score, num_overdue, num_in_purgatory, min_purgatory_score };
}

export const adminRoutes: readonly Route<Context>[] = [
  live(
    "buffered_link_sorted_set_info",
    "How many links are not stored yet, and since when",
    z.object({ length: Count, oldest_score: Time }),
    async (ctx) => ({
      length: await ctx.redis.commands.zcard(ctx.redis.topology.key(keys.buffer())),
      oldest_score: await lowest(ctx, keys.buffer()),
    }),
  ),
  live("persistable_buffered_link_sorted_set_info", "How many links wait to be stored", Schedule, (ctx) =>
    scheduleInfo(ctx, keys.toPersist(), keys.persistPurgatory()),
  ),
  live("delayed_link_clicks_sorted_set_info", "How many clicks wait for their link to be stored", Schedule, (ctx) =>
    scheduleInfo(ctx, keys.delayed(), keys.delayedPurgatory()),
  ),
  lastRun("last_persist_link_job", "storing links", { report: keys.persistReport, lock: keys.persistLock() }),
  lastRun("last_leaked_link_detection_job", "finding links that nobody claimed", {
    report: keys.leakReport,
    lock: keys.leakLock(),
  }),
  lastRun("last_delayed_click_persist_job", "storing clicks that waited", {
    report: keys.delayedReport,
    lock: keys.delayedLock(),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/touch/links/{code}",
    access: "admin",
    summary: "Everything that is known of a link: where it is in its life, where it leads, who used it",
    schemas: { params: z.object({ code: z.string().regex(CODE, "is not the code of a link") }) },
    responses: {
      200: z.object({
        state: z.enum(["buffered", "persistable", "persisting", "persisted", "gone"]),
        link: z
          .object({
            uid: z.string(),
            code: z.string(),
            touch_uid: z.string(),
            page_identifier: z.string(),
            page_extra: Extra,
            preview_identifier: z.string(),
            preview_extra: Extra,
            created_at: z.number(),
          })
          .nullable(),
        persist_at: Time,
        robots: z.record(z.string(), Count).meta({ description: "Uses by programs, by the rule that knew them" }),
        clicks: z.array(
          z.object({
            uid: z.string(),
            track_type: z.enum(TRACK_TYPES),
            clicked_at: z.number(),
            parent_uid: z.string().nullable(),
            user_sub: z.string().nullable(),
            visitor_uid: z.string().nullable(),
            kept: z.enum(["buffer", "delayed", "sql"]),
          }),
        ),
      }),
    },
    handle: async (ctx, { params }) => ({
      status: 200,
      headers: { "cache-control": "no-store" },
      body: await viewLink(ctx, params.code),
    }),
  }),
];

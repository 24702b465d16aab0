import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { PageQuery } from "./admin-routes.ts";
import { CampaignWish, checkCampaign, previewCampaign, stopCampaign } from "./campaign.ts";
import { TOUCH_CHANNELS, type TouchChannel } from "./entries.ts";
import { campaignRunners } from "./jobs.ts";
import { campaignsPage } from "./listing.ts";
import { Rendered } from "./render.ts";

const NO_STORE = { "cache-control": "no-store" };

const begin = (channel: TouchChannel, path: string, summary: string): Route<Context> =>
  route({
    method: "POST",
    path: `/api/1/admin/${path}`,
    access: "admin",
    summary,
    description:
      "Everybody gets one touch, page by page; while too many touches wait, the campaign waits too. `GET /api/1/admin/campaigns` shows how far it is.",
    schemas: { body: CampaignWish },
    responses: { 202: z.object({ job_uid: z.string(), uid: z.string().meta({ description: "Of the campaign" }) }) },
    async handle(ctx, { body }) {
      await checkCampaign(ctx, channel, body);
      const [uid, jobUid] = [newUid("tcm"), newUid("jp")];
      await ctx.jobs.enqueue(campaignRunners[channel], { ...body, uid }, { jobUid });
      return { status: 202, body: { job_uid: jobUid, uid } };
    },
  });

export const campaignRoutes: readonly Route<Context>[] = [
  begin("push", "notifs/marketing_push", "Notify everybody who has a device that wants it"),
  begin("sms", "sms/marketing_sms", "Text everybody who gets reminders by text"),
  begin("email", "email/announcement", "Write to everybody who has an address that wants it"),
  route({
    method: "GET",
    path: "/api/1/admin/campaigns",
    access: "admin",
    summary: "The campaigns and how far they are, the newest first",
    schemas: { query: PageQuery },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            uid: z.string(),
            channel: z.enum(TOUCH_CHANNELS),
            event_slug: z.string(),
            event_parameters: z.record(z.string(), z.unknown()),
            state: z.enum(["running", "finished", "stopped", "failed"]),
            reason: z.string().nullable().meta({ description: "Why it failed" }),
            told: z.int().meta({ description: "How many people have a touch of it" }),
            after_sub: z.string().meta({ description: "The last person that was gone through" }),
            share: z.number().nullable().meta({
              description: "While it runs: how much of everybody it has gone through, from 0 to 1",
            }),
            created_at: z.number(),
            ended_at: z.number().nullable(),
          }),
        ),
        next: z.number().nullable(),
      }),
    },
    handle: async (ctx, { query }) => ({
      status: 200,
      headers: NO_STORE,
      body: await campaignsPage(ctx, { before: query.before, limit: query.limit }),
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/campaigns/preview",
    access: "admin",
    summary: "Whom a campaign would tell if it began now, and in which words",
    description: "Nothing begins. What could not begin is refused as when it should.",
    schemas: { body: CampaignWish.extend({ channel: z.enum(TOUCH_CHANNELS) }) },
    responses: {
      200: z.object({
        people: z.int().meta({ description: "How many would get a touch" }),
        everybody: z.int(),
        messages: z
          .array(Rendered)
          .meta({ description: "Those that people would get one of, as somebody without a name would read them" }),
      }),
    },
    handle: async (ctx, { body: { channel, ...wish } }) => ({
      status: 200,
      headers: NO_STORE,
      body: await previewCampaign(ctx, channel, wish),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/campaigns/{uid}",
    access: "admin",
    summary: "Stop a campaign; who has a touch of it already keeps it",
    schemas: { params: z.object({ uid: z.string().min(1).max(200) }) },
    async handle(ctx, { params }) {
      await stopCampaign(ctx, params.uid);
      return { status: 204 };
    },
  }),
];

import { z } from "zod";
import { route } from "../../domain.ts";
import { limiterStates } from "./service.ts";

const Limiters = z.object({
  items: z.array(
    z.object({
      api: z.string(),
      intervals: z.record(z.string(), z.number()),
      last_used_at: z.number().nullable(),
      next_free_at: z.number(),
    }),
  ),
});

const Providers = z.object({
  items: z.array(
    z.object({
      channel: z.enum(["push", "sms", "email"]),
      provider: z.string(),
      outages: z.number().meta({ description: "Within the last five minutes" }),
      open: z.boolean().meta({ description: "Its circuit is open: the next provider takes over" }),
    }),
  ),
});

export const routes = [
  route({
    method: "GET",
    path: "/api/1/admin/api_limiters",
    access: "admin",
    summary: "Third parties that are called slowly on purpose, and when each is free again",
    responses: { 200: Limiters },
    handle: async (ctx) => ({ status: 200, body: { items: await limiterStates(ctx) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/providers",
    access: "admin",
    summary:
      "Who carries push notifications, texts and mails, the preferred one of each first, and who is passed over now",
    responses: { 200: Providers },
    handle: async ({ providers: { push, sms, email } }) => {
      const states = await Promise.all([push, sms, email].map((channel) => channel.states()));
      return { status: 200, body: { items: states.flat() } };
    },
  }),
];

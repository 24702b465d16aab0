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

export const routes = [
  route({
    method: "GET",
    path: "/api/1/admin/api_limiters",
    access: "admin",
    summary: "Third parties that are called slowly on purpose, and when each is free again",
    responses: { 200: Limiters },
    handle: async (ctx) => ({ status: 200, body: { items: await limiterStates(ctx) } }),
  }),
];

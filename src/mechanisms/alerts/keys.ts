import { z } from "zod";
import { family, json, list } from "../../kernel/keyspace/index.ts";

export const RecentAlert = z.object({
  level: z.enum(["warning", "urgent", "error", "ops"]),
  identifier: z.string(),
  text: z.string(),
  host: z.string(),
  occurred_at: z.number(),
});
export type RecentAlert = z.infer<typeof RecentAlert>;

/** How many alerts are kept. */
export const RECENT_ALERTS = 200;

export const alertKeys = family("jobs", {
  recent: list("alerts:recent", json(RecentAlert), {
    doc: "the newest 200 alerts of all processes, the newest on the left",
    lingers: true,
    origin: "carillon",
  }),
});

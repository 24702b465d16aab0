import { z } from "zod";
import { FailedJob, ProgressEntry } from "../../jobs/entry.ts";

/** What the routes of this room answer, item by item. */
const Json = z.record(z.string(), z.unknown());

export const Worker = z.object({
  uid: z.string(),
  host: z.string(),
  pid: z.int(),
  instance: z.string(),
  version: z.string(),
  categories: z.string(),
  concurrency: z.int(),
  started_at: z.number(),
  last_beat_at: z.number(),
  heartbeat_age: z.number().meta({ description: "Seconds" }),
  running: z.array(z.object({ name: z.string(), since: z.number() })),
});

export const KnownRunner = z.object({
  name: z.string(),
  doc: z.string(),
  category: z.int(),
  kwargs: Json.meta({ description: "JSON Schema" }),
  timeout: z.number(),
  retry: z.array(z.number()),
  max_deliveries: z.int(),
  ack: z.enum(["late", "early"]),
});

export const Recurring = z.object({
  digest: z.string(),
  name: z.string(),
  doc: z.string(),
  kwargs: Json,
  schedule: Json,
  next_run_at: z.number().nullable(),
  next_times: z.array(z.number()).meta({ description: "The times after that one" }),
  overdue_by: z.number(),
  in_purgatory: z.boolean(),
});

export const Held = z.object({
  name: z.string(),
  kwargs: Json.meta({ description: "Without what is named like a secret" }),
  queued_at: z.number(),
  worker_uid: z.string(),
  host: z.string(),
  since: z.number().nullable().meta({ description: "null while it waits for a slot of its worker" }),
  recurring: z.boolean(),
  deliveries: z.int(),
  job_uid: z.string().nullable().meta({ description: "Under this uid it tells of its progress" }),
});

export const Delayed = z.object({
  name: z.string(),
  kwargs: Json.meta({ description: "Without what is named like a secret" }),
  queued_at: z.number(),
  due_at: z.number(),
  attempt: z.int(),
});

export const Failed = FailedJob.extend({
  name: z.string().meta({ description: "Empty when `raw` is not a job" }),
  queued_at: z.number().nullable(),
});

export const ProgressAnswer = z.object({ events: z.array(ProgressEntry), last_seq: z.int(), done: z.boolean() });

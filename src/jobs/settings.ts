import { z } from "zod";
import { settings } from "../kernel/config.ts";

const category = z
  .union([z.literal("1"), z.literal("2"), z.literal(1), z.literal(2)])
  .transform((c) => Number(c) as 1 | 2);

export const jobSettings = {
  categories: settings.listOf<1 | 2>("job.categories", category, {
    default: [2, 1],
    doc: "categories of jobs that this worker accepts, the preferred first: 1 is costly, 2 is cheap",
  }),
  concurrency: settings.integer("job.concurrency", {
    default: 4,
    min: 1,
    max: 10_000,
    doc: "jobs that one worker runs at the same time, recurring ones not counted",
  }),
  heavyConcurrency: settings.integer("job.heavyConcurrency", {
    default: 1,
    min: 1,
    max: 1000,
    doc: "how many of them may be of category 1",
  }),
  recurringConcurrency: settings.integer("job.recurringConcurrency", {
    default: 16,
    min: 1,
    max: 1000,
    doc: "recurring jobs that one worker runs at the same time, in slots of their own",
  }),
  shutdownGrace: settings.seconds("shutdown.grace", {
    default: 25,
    doc: "how long a stopping process lets running jobs and requests finish",
  }),
  deadAfter: settings.seconds("job.deadAfter", {
    default: 60,
    min: 15,
    doc: "a worker whose heartbeat is older than this is buried and its jobs are given to others",
  }),
};

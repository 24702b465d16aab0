import { z } from "zod";
import {
  channel,
  decimal,
  expires,
  family,
  fields,
  hash,
  integer,
  json,
  list,
  mapOf,
  set,
  string,
  text,
  unsigned64,
  zset,
} from "../kernel/keyspace/index.ts";
import { FailedJob, JobEntry, ProgressEntry } from "./entry.ts";

const job = json(JobEntry, { shape: "job JSON" });
const digest = unsigned64;
const PROGRESS_TTL = 1800;

export const jobKeys = family("jobs", {
  hot: list("jobs:hot", job, {
    doc: "jobs that wait for any worker: in on the right, out on the left",
    shared: true,
  }),
  hotByCategory: list("jobs:hot:{category}", job, {
    doc: "jobs that wait for a worker which accepts their category: 1 is costly, 2 is cheap",
    params: { category: /[12]/ },
    shared: true,
  }),
  running: hash("jobs:running:{worker_uid}", mapOf(job, { field: text, shape: "take number → job JSON" }), {
    doc: "what one worker holds right now; the take number is the claim that finish, fail and rescue must show",
    origin: "carillon",
    shared: true,
  }),
  workers: zset("jobs:workers", text, {
    doc: "every registered worker by its last heartbeat",
    score: "unix time of the last heartbeat",
    origin: "carillon",
  }),
  worker: hash(
    "jobs:workers:{worker_uid}",
    fields({
      host: text,
      pid: integer,
      instance: text,
      version: text,
      categories: text,
      concurrency: integer,
      started_at: decimal,
      running: json(z.array(z.object({ name: z.string(), since: z.number() })), { shape: "JSON of what it runs" }),
    }),
    { doc: "who a worker is and what it runs", origin: "carillon" },
  ),
  delayed: zset("jobs:delayed", job, {
    doc: "jobs that wait for their time: retries and delayed enqueues",
    score: "unix time it is due",
    origin: "carillon",
    shared: true,
  }),
  failed: list("jobs:failed", json(FailedJob, { shape: "failure JSON" }), {
    doc: "jobs that will not run again by themselves, newest on the left; requeued or removed by an administrator",
    origin: "carillon",
    shared: true,
  }),
  recurring: zset("rjobs", digest, {
    doc: "every recurring job by the time it is due next",
    score: "unix time it is due",
  }),
  recurringHash: string("rjobs:hash", digest, {
    doc: "digest of the whole set of recurring jobs; a worker with another set keeps its hands off the schedule",
  }),
  recurringPurgatory: set("rjobs:purgatory", digest, {
    doc: "recurring jobs taken from the schedule and not yet dispatched; nearly always empty",
  }),
  recurringQueued: hash("rjobs:queued", mapOf(decimal, { field: digest, shape: "digest → unix time" }), {
    doc: "recurring jobs that have an entry waiting in a queue, with the time it was pushed",
    origin: "carillon",
  }),
  relayed: string("jobs:relayed:{uid}", text, {
    doc: "this outbox row has been pushed to the queue; a second relay of it has no effect",
    ttl: expires(604_800),
    origin: "carillon",
  }),
  progressEvents: list("jobs:progress:events:{job_uid}", json(ProgressEntry, { shape: "progress JSON" }), {
    doc: "the last 50 progress events of a watched job",
    ttl: expires(PROGRESS_TTL, "1800 s after the last event"),
    origin: "carillon",
  }),
  progressCount: string("jobs:progress:count:{job_uid}", integer, {
    doc: "how many progress events a watched job ever had: the last sequence number",
    ttl: expires(PROGRESS_TTL, "1800 s after the last event"),
    origin: "carillon",
  }),
  progress: channel("ps:job:{job_uid}", text, {
    doc: "progress events of a watched job as they happen, and the text `done` after the last",
  }),
});

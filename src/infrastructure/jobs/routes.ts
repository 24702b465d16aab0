import { z } from "zod";
import { route } from "../../domain.ts";
import { discardFailed, readFailed, readQueues, readRecurring, readWorkers, requeueFailed } from "../../jobs/admin.ts";
import { readDelayed, readHeld } from "../../jobs/at-work.ts";
import { parseEntry } from "../../jobs/entry.ts";
import type { Context } from "../../jobs/index.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { bearerOf, withoutSecrets } from "../access/service.ts";
import { Delayed, Failed, Held, KnownRunner, ProgressAnswer, Recurring, Worker } from "./answers.ts";
import { checkProgressToken, progressErrors, progressToken } from "./progress-access.ts";

const MAX_QUEUE_LENGTH = 100_000;

const Json = z.record(z.string(), z.unknown());
const Progress = z.object({ uid: z.string(), jwt: z.string() });
const Page = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(50),
  offset: z.coerce.number().int().min(0).default(0),
});
const Since = z.object({ since: z.coerce.number().int().min(0).default(0) });
const MOST_HELD = 200;

/** A job's kwargs may hold codes and tokens that its runner needs and nobody else. */
function shown<T extends { readonly kwargs: Record<string, unknown> }>(job: T): T {
  return { ...job, kwargs: withoutSecrets(job.kwargs) as Record<string, unknown> };
}

export const routes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/admin/jobs/queues",
    access: "admin",
    summary: "Queues with their length and age",
    responses: {
      200: z.object({
        queues: z.array(z.object({ key: z.string(), length: z.int(), oldest_queued_at: z.number().nullable() })),
        delayed: z.int(),
        failed: z.int(),
        workers_by_category: z.record(z.string(), z.int()),
      }),
    },
    handle: async (ctx) => ({ status: 200, body: await readQueues(ctx) }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/workers",
    access: "admin",
    summary: "Workers, the age of their last heartbeat, and what they run",
    responses: { 200: z.object({ items: z.array(Worker) }) },
    handle: async (ctx) => {
      const now = ctx.clock.now();
      const workers = await readWorkers(ctx);
      return {
        status: 200,
        body: {
          items: workers.map((worker) => ({ ...worker, heartbeat_age: Math.max(0, now - worker.last_beat_at) })),
        },
      };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/running",
    access: "admin",
    summary: "The jobs that workers hold right now, the longest-running first",
    responses: { 200: z.object({ items: z.array(Held) }) },
    handle: async (ctx) => ({ status: 200, body: { items: (await readHeld(ctx, MOST_HELD)).map(shown) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/delayed",
    access: "admin",
    summary: "Jobs that wait for their time, those due first first",
    schemas: { query: Page },
    responses: { 200: z.object({ items: z.array(Delayed) }) },
    handle: async (ctx, { query }) => ({ status: 200, body: { items: (await readDelayed(ctx, query)).map(shown) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/progress/{job_uid}",
    access: "admin",
    summary: "What happened to any watched job so far",
    description: "`since` leaves out events up to that number.",
    schemas: { params: z.object({ job_uid: z.string().max(64) }), query: Since },
    responses: { 200: ProgressAnswer },
    async handle(ctx, { params, query }) {
      const progress = await ctx.jobs.progress.read(params.job_uid, query.since);
      if (!progress) throw progressErrors.progress_expired();
      return { status: 200, body: progress };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/runners",
    access: "admin",
    summary: "Every job that can be run, with the shape of its kwargs",
    responses: { 200: z.object({ items: z.array(KnownRunner) }) },
    handle: (ctx) => ({
      status: 200,
      body: {
        items: [...ctx.jobs.runners.values()].map((runner) => ({
          name: runner.name,
          doc: runner.doc,
          category: runner.category,
          kwargs: z.toJSONSchema(runner.kwargs, { io: "input", unrepresentable: "any" }),
          timeout: runner.timeout,
          retry: runner.retry,
          max_deliveries: runner.maxDeliveries,
          ack: runner.ack,
        })),
      },
    }),
  }),
  route({
    method: "POST",
    path: "/api/1/admin/jobs",
    access: "admin",
    summary: "Queue a job",
    schemas: {
      body: z.strictObject({
        name: z.string().max(200),
        kwargs: Json.default({}),
        delay: z.number().min(0).max(31_536_000).optional(),
        with_progress: z.boolean().default(false),
      }),
    },
    bodyLimit: 1_048_576,
    responses: { 202: z.object({ uid: z.string(), progress: Progress.optional() }) },
    async handle(ctx, { body }) {
      const uid = newUid("jp");
      const jobUid = body.with_progress ? uid : undefined;
      const options = { delay: body.delay, jobUid, maxLength: MAX_QUEUE_LENGTH };
      await ctx.jobs.enqueueNamed(body.name, body.kwargs, options);
      const progress = jobUid && { uid: jobUid, jwt: await progressToken(ctx, jobUid) };
      return { status: 202, body: { uid, ...(progress ? { progress } : {}) } };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/recurring",
    access: "admin",
    summary: "The schedule, with the next time of each recurring job",
    responses: { 200: z.object({ hash: z.string().nullable(), current: z.boolean(), items: z.array(Recurring) }) },
    handle: async (ctx) => {
      const { items, ...schedule } = await readRecurring(ctx, ctx.jobs);
      const described = items.map((item) => ({ ...item, doc: ctx.jobs.runners.get(item.name)?.doc ?? "" }));
      return { status: 200, body: { ...schedule, items: described } };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/jobs/recurring/{digest}/run",
    access: "admin",
    summary: "Run a recurring job now; its schedule does not change",
    schemas: { params: z.object({ digest: z.string().max(20) }) },
    responses: { 202: z.object({ queued: z.boolean() }) },
    handle: async (ctx, { params }) => ({ status: 202, body: { queued: await ctx.jobs.runRecurring(params.digest) } }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/jobs/failed",
    access: "admin",
    summary: "Jobs that will not run again by themselves, newest first",
    schemas: { query: Page },
    responses: { 200: z.object({ items: z.array(Failed) }) },
    handle: async (ctx, { query }) => {
      const failures = await readFailed(ctx, query);
      const items = failures.map((failure) => {
        const parsed = parseEntry(failure.raw);
        const { name = "", queued_at = null } = parsed.ok ? parsed.job : {};
        return { ...failure, name, queued_at };
      });
      return { status: 200, body: { items } };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/jobs/failed/{id}/requeue",
    access: "admin",
    summary: "Give a failed job another chance, with fresh counters",
    schemas: { params: z.object({ id: z.string().max(64) }) },
    responses: { 202: z.object({ requeued: z.int() }) },
    handle: async (ctx, { params }) => ({ status: 202, body: { requeued: await requeueFailed(ctx, params.id) } }),
  }),
  route({
    method: "DELETE",
    path: "/api/1/admin/jobs/failed/{id}",
    access: "admin",
    summary: "Forget a failed job for good",
    schemas: { params: z.object({ id: z.string().max(64) }) },
    handle: async (ctx, { params }) => {
      await discardFailed(ctx, params.id);
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/jobs/{job_uid}/progress",
    access: "token",
    summary: "What happened to a watched job so far",
    description: "Needs the progress token that came with the job. `since` leaves out events up to that number.",
    schemas: {
      params: z.object({ job_uid: z.string().max(64) }),
      query: Since,
    },
    responses: { 200: ProgressAnswer },
    async handle(ctx, { params, query, headers }) {
      await checkProgressToken(ctx, params.job_uid, bearerOf(headers.authorization));
      const progress = await ctx.jobs.progress.read(params.job_uid, query.since);
      if (!progress) throw progressErrors.progress_expired();
      return { status: 200, body: progress };
    },
  }),
];

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { eventually } from "../../../test/harness/facts.ts";
import { encodeJob } from "../../jobs/entry.ts";
import { defineRunner, jobKeys } from "../../jobs/index.ts";
import { listAudit } from "../access/service.ts";
import { type JobServer, openJobServer } from "./jobs.fixture.ts";
import { progressToken } from "./progress-access.ts";

const ring = defineRunner({
  name: "runners.test.ring",
  category: 1,
  doc: "Rings a bell.",
  kwargs: z.object({ bell: z.string().min(2), times: z.int().min(1).default(1), note: z.string().optional() }),
  timeout: 30,
  retry: [60, 300],
  ack: "early",
  run: async () => {},
});

const crack = defineRunner({
  name: "runners.test.crack",
  category: 2,
  doc: "Always fails.",
  kwargs: z.object({}),
  run: async () => {
    throw new Error("the bell cracked");
  },
});

let server: JobServer;
const admin = (method: string, path: string, body?: unknown) =>
  server.call(method, path, { token: server.admin, ...(body === undefined ? {} : { body }) });
const hot = () => server.ctx.redis.commands.lrange(jobKeys.hot(), 0, -1);

beforeAll(async () => {
  server = await openJobServer({ runners: [ring, crack] });
});
beforeEach(() => server.ctx.flush());
afterAll(() => server.close());

test("every admin route of the jobs room refuses strangers", async () => {
  const routes = server.domains.find(({ name }) => name === "jobs")!.routes!.filter(({ access }) => access === "admin");
  expect(routes).toHaveLength(12);
  for (const { method, path } of routes)
    expect((await server.call(method, path.replace(/\{\w+\}/, "1"))).statusCode, `${method} ${path}`).toBe(401);
});

test("the queues page tells lengths, ages and who serves which category", async () => {
  const { clock, redis } = server.ctx;
  const queuedAt = clock.now();
  await server.jobs.enqueue(crack, {});
  await clock.advance(10);
  await server.jobs.enqueueMany(crack, [{}, {}]);
  await server.jobs.enqueue(crack, {}, { delay: 60 });
  await redis.commands.rpush(jobKeys.hotByCategory({ category: 1 }), "not a job");
  const { statusCode, ...answer } = await admin("GET", "/api/1/admin/jobs/queues");
  expect(statusCode).toBe(200);
  expect(answer.json()).toEqual({
    queues: [
      { key: "jobs:hot", length: 3, oldest_queued_at: queuedAt },
      { key: "jobs:hot:1", length: 1, oldest_queued_at: null },
      { key: "jobs:hot:2", length: 0, oldest_queued_at: null },
    ],
    delayed: 1,
    failed: 0,
    workers_by_category: { "1": 0, "2": 0 },
  });
});

test("the workers page tells who works and how old each heartbeat is", async () => {
  const worker = server.worker();
  await worker.start();
  try {
    await server.ctx.clock.advance(3);
    const { items } = (await admin("GET", "/api/1/admin/jobs/workers")).json();
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ uid: worker.uid, categories: "2,1", version: "test", running: [] });
    expect(items[0].heartbeat_age).toBeCloseTo(3, 3);
    const { workers_by_category } = (await admin("GET", "/api/1/admin/jobs/queues")).json();
    expect(workers_by_category).toEqual({ "1": 1, "2": 1 });
  } finally {
    await worker.stop();
  }
  expect((await admin("GET", "/api/1/admin/jobs/workers")).json()).toEqual({ items: [] });
});

test("the runners page has the shape of each runner's kwargs as callers write them", async () => {
  const { items } = (await admin("GET", "/api/1/admin/jobs/runners")).json();
  const found = items.find(({ name }: { name: string }) => name === ring.name);
  expect(found).toMatchObject({
    doc: "Rings a bell.",
    category: 1,
    timeout: 30,
    retry: [60, 300],
    max_deliveries: 3,
    ack: "early",
    kwargs: {
      type: "object",
      properties: { bell: { type: "string", minLength: 2 }, times: { type: "integer", default: 1 } },
      required: ["bell"],
    },
  });
  expect(items.map(({ name }: { name: string }) => name)).toContain("runners.alerting.check_redis");
});

test("a job that an administrator queues has the written kwargs, and the change is audited", async () => {
  const answer = await admin("POST", "/api/1/admin/jobs", { name: ring.name, kwargs: { bell: "Emmanuel" } });
  expect(answer.statusCode).toBe(202);
  expect(answer.json()).toEqual({ uid: expect.stringMatching(/^crl_jp_/) });
  expect((await hot()).map((raw) => JSON.parse(raw))).toEqual([
    { name: ring.name, kwargs: { bell: "Emmanuel" }, queued_at: server.ctx.clock.now() },
  ]);
  const [audited] = (await listAudit(server.ctx, { limit: 1 })).entries;
  expect(audited).toMatchObject({ action: "POST /api/1/admin/jobs", detail: { status: 202 } });
});

test("a delayed job waits for its time", async () => {
  await admin("POST", "/api/1/admin/jobs", { name: crack.name, delay: 90 });
  const [raw, due] = await server.ctx.redis.commands.zrange(jobKeys.delayed(), "0", "-1", "WITHSCORES");
  expect(JSON.parse(raw!).name).toBe(crack.name);
  expect(Number(due)).toBeCloseTo(server.ctx.clock.now() + 90, 3);
  expect(await hot()).toEqual([]);
});

test("a job that nobody knows, or with wrong kwargs, is refused by name and path", async () => {
  const unknown = await admin("POST", "/api/1/admin/jobs", { name: "runners.test.silence" });
  expect(unknown.statusCode).toBe(404);
  expect(unknown.json()).toMatchObject({ type: "unknown_runner", message: "no runner is named runners.test.silence" });
  const wrong = await admin("POST", "/api/1/admin/jobs", { name: ring.name, kwargs: { bell: "Big", times: 0 } });
  expect(wrong.statusCode).toBe(422);
  expect(wrong.json()).toMatchObject({ type: "invalid_kwargs", detail: [{ path: "times" }] });
  expect((await admin("POST", "/api/1/admin/jobs", { name: ring.name, priority: 1 })).statusCode).toBe(422);
  expect(await hot()).toEqual([]);
});

test("a job whose text does not fit a queue is refused and leaves nothing", async () => {
  const kwargs = { bell: "Big", note: "x".repeat(512 * 1024) };
  const answer = await admin("POST", "/api/1/admin/jobs", { name: ring.name, kwargs });
  expect(answer.statusCode).toBe(413);
  expect(answer.json().type).toBe("job_too_large");
  const beyond = { bell: "Big", note: "x".repeat(1_048_576) };
  expect((await admin("POST", "/api/1/admin/jobs", { name: ring.name, kwargs: beyond })).statusCode).toBe(413);
  expect(await hot()).toEqual([]);
});

test("a queue of 100000 jobs takes no more from administrators until one is gone", async () => {
  const { commands } = server.ctx.redis;
  const entry = encodeJob({ name: crack.name, kwargs: {}, queued_at: 1 });
  for (let batch = 0; batch < 10; batch++)
    await commands.rpush(jobKeys.hot(), ...Array.from({ length: 10_000 }, () => entry));
  for (const with_progress of [false, true]) {
    const answer = await admin("POST", "/api/1/admin/jobs", { name: crack.name, with_progress });
    expect(answer.statusCode).toBe(503);
    expect(answer.json().type).toBe("backpressure");
    expect(answer.headers["retry-after"]).toBe("10");
  }
  expect((await admin("POST", "/api/1/admin/jobs", { name: crack.name, delay: 5 })).statusCode).toBe(202);
  await commands.lpop(jobKeys.hot());
  expect((await admin("POST", "/api/1/admin/jobs", { name: crack.name })).statusCode).toBe(202);
  expect(await commands.llen(jobKeys.hot())).toBe(100_000);
});

test("a watched job can be read with its own token and no other", async () => {
  const { progress } = (await admin("POST", "/api/1/admin/jobs", { name: crack.name, with_progress: true })).json();
  const path = `/api/1/jobs/${progress.uid}/progress`;
  const read = await server.call("GET", path, { token: progress.jwt });
  expect(read.json()).toEqual({
    events: [
      {
        seq: 1,
        type: "queued",
        message: "waiting for a worker",
        indicator: { type: "spinner" },
        occurred_at: server.ctx.clock.now(),
      },
    ],
    last_seq: 1,
    done: false,
  });
  expect((await server.call("GET", `${path}?since=1`, { token: progress.jwt })).json()).toMatchObject({ events: [] });

  const missing = await server.call("GET", path);
  expect([missing.statusCode, missing.json().type]).toEqual([401, "progress_token_invalid"]);
  expect((await server.call("GET", path, { token: server.admin })).statusCode).toBe(401);
  const foreign = await server.call("GET", path, { token: await progressToken(server.ctx, "crl_jp_other") });
  expect([foreign.statusCode, foreign.json().type]).toEqual([403, "progress_token_foreign"]);
  const unheardOf = await progressToken(server.ctx, "crl_jp_unheard");
  const gone = await server.call("GET", "/api/1/jobs/crl_jp_unheard/progress", { token: unheardOf });
  expect([gone.statusCode, gone.json().type]).toEqual([404, "progress_expired"]);

  await server.ctx.clock.advance(1801);
  expect((await server.call("GET", path, { token: progress.jwt })).statusCode).toBe(401);
  const fresh = await progressToken(server.ctx, progress.uid);
  expect((await server.call("GET", path, { token: fresh })).statusCode).toBe(404);
});

test("a failed job is shown, gets another chance with fresh counters, and can be forgotten", async () => {
  const worker = server.worker();
  await worker.start();
  try {
    for (let n = 0; n < 2; n++) await server.jobs.enqueue(crack, {});
    await eventually(async () => (await server.ctx.redis.commands.llen(jobKeys.failed())) === 2, "both jobs failed");
  } finally {
    await worker.stop();
  }
  const { items } = (await admin("GET", "/api/1/admin/jobs/failed")).json();
  expect(items).toHaveLength(2);
  expect(items[0]).toMatchObject({ reason: "error", error: expect.stringContaining("the bell cracked") });
  const second = (await admin("GET", "/api/1/admin/jobs/failed?limit=1&offset=1")).json().items;
  expect(second).toEqual([items[1]]);
  expect((await admin("GET", "/api/1/admin/jobs/failed?limit=101")).statusCode).toBe(422);

  await server.ctx.clock.advance(100);
  const requeued = await admin("POST", `/api/1/admin/jobs/failed/${items[0].id}/requeue`);
  expect([requeued.statusCode, requeued.json()]).toEqual([202, { requeued: 1 }]);
  expect((await hot()).map((raw) => JSON.parse(raw))).toEqual([
    { name: crack.name, kwargs: {}, queued_at: server.ctx.clock.now() },
  ]);
  const again = await admin("POST", `/api/1/admin/jobs/failed/${items[0].id}/requeue`);
  expect([again.statusCode, again.json().type]).toEqual([404, "failed_job_not_found"]);

  expect((await admin("DELETE", `/api/1/admin/jobs/failed/${items[1].id}`)).statusCode).toBe(204);
  expect((await admin("DELETE", `/api/1/admin/jobs/failed/${items[1].id}`)).statusCode).toBe(404);
  expect((await admin("GET", "/api/1/admin/jobs/failed")).json().items).toEqual([]);
});

test("a recurring job runs now on demand, once while an entry waits, and keeps its schedule", async () => {
  const worker = server.worker();
  await worker.scheduler.sync();
  const before = (await admin("GET", "/api/1/admin/jobs/recurring")).json();
  expect(before.current).toBe(true);
  expect(before.hash).toBe(server.jobs.recurring.hash);
  const job = before.items.find(({ name }: { name: string }) => name === "runners.alerting.check_queues");
  expect(job).toMatchObject({ kwargs: {}, schedule: { tz: "UTC", seconds: [45] }, overdue_by: 0, in_purgatory: false });
  expect(job.next_run_at % 60).toBe(45);

  const run = `/api/1/admin/jobs/recurring/${job.digest}/run`;
  const first = await admin("POST", run);
  expect([first.statusCode, first.json()]).toEqual([202, { queued: true }]);
  expect((await admin("POST", run)).json()).toEqual({ queued: false });
  expect((await hot()).map((raw) => JSON.parse(raw))).toMatchObject([{ rjob: job.digest, name: job.name }]);
  const missing = await admin("POST", "/api/1/admin/jobs/recurring/12345/run");
  expect([missing.statusCode, missing.json().type]).toEqual([404, "unknown_recurring_job"]);

  await server.ctx.clock.advance(600);
  const after = (await admin("GET", "/api/1/admin/jobs/recurring")).json();
  const late = after.items.find(({ digest }: { digest: string }) => digest === job.digest);
  expect(late.next_run_at).toBe(job.next_run_at);
  expect(late.overdue_by).toBeCloseTo(server.ctx.clock.now() - job.next_run_at, 3);
});

test("jobs that workers hold and jobs that wait for their time are told without the secrets they carry", async () => {
  const { clock, redis } = server.ctx;
  const worker = server.worker();
  await worker.start();
  try {
    const held = encodeJob(
      { name: "runners.test.ring", kwargs: { bell: "big", access_token: "hush" }, queued_at: clock.now() },
      { job_uid: "crl_jp_watched" },
    );
    await redis.commands.hset(jobKeys.running({ worker_uid: worker.uid }), "1", held, "2", "not a job");
    const { items } = (await admin("GET", "/api/1/admin/jobs/running")).json();
    expect(items).toEqual([
      expect.objectContaining({
        name: "runners.test.ring",
        kwargs: { bell: "big", access_token: "[redacted]" },
        worker_uid: worker.uid,
        recurring: false,
        job_uid: "crl_jp_watched",
        since: null,
      }),
    ]);
    await redis.commands.del(jobKeys.running({ worker_uid: worker.uid }));
    await server.jobs.enqueue(ring, { bell: "late" }, { delay: 600 });
    await server.jobs.enqueue(ring, { bell: "soon" }, { delay: 60 });
    const delayed = (await admin("GET", "/api/1/admin/jobs/delayed")).json().items;
    expect(delayed).toMatchObject([
      { name: "runners.test.ring", kwargs: { bell: "soon" }, due_at: clock.now() + 60, attempt: 0 },
      { name: "runners.test.ring", kwargs: { bell: "late" }, due_at: clock.now() + 600 },
    ]);
  } finally {
    await worker.stop();
  }
});

test("an administrator reads the progress of any watched job without its token", async () => {
  await server.jobs.enqueue(ring, { bell: "big" }, { jobUid: "crl_jp_seen" });
  const read = await admin("GET", "/api/1/admin/jobs/progress/crl_jp_seen");
  expect(read.json()).toMatchObject({ events: [{ seq: 1, type: "queued" }], last_seq: 1, done: false });
  const later = await admin("GET", "/api/1/admin/jobs/progress/crl_jp_seen?since=1");
  expect(later.json().events).toEqual([]);
  expect((await admin("GET", "/api/1/admin/jobs/progress/crl_jp_none")).statusCode).toBe(404);
});

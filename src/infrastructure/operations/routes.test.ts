import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { domain } from "../../domain.ts";
import { jobKeys } from "../../jobs/index.ts";
import { decimal, family, fields, hash, json, list, string, text, zset } from "../../kernel/keyspace/index.ts";
import { AlertReporter, alertKeys } from "../../mechanisms/alerts/index.ts";
import { lockKeys, ownerLock, tokenLock } from "../../mechanisms/lock/index.ts";
import { quarantineEntry, quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { type JobServer, openJobServer } from "../jobs/jobs.fixture.ts";
import { operations } from "./index.ts";

/** A room as a channel would be: queues, locks, a report, and something secret. */
const bells = family("bells", {
  toRing: list("bells:to_ring", json(z.strictObject({ bell: z.string() })), { doc: "bells that wait to be rung" }),
  later: zset("bells:later", text, { doc: "bells to ring later", score: "unix time it is due" }),
  pending: zset("bells:pending", text, { doc: "bells that swing", score: "unix time to look again" }),
  pendingItem: hash("bells:pending:{uid}", fields({ bell: text }), { doc: "one swinging bell" }),
  sendLock: string("bells:send_job:lock", ownerLock, { doc: "held by the bell ringer", lock: "owner" }),
  secretLock: string("bells:keys:{key}:lock", tokenLock, {
    doc: "held for one secret key",
    lock: "token",
    secret: true,
  }),
  secretQueue: list("bells:secrets", text, { doc: "what nobody may read", secret: true }),
  bytes: string(
    "bells:bytes",
    { shape: "bytes", encode: (value: Buffer) => value, decode: (raw) => raw },
    {
      doc: "the sound of a bell",
    },
  ),
  sendReport: hash("stats:bells:send_job", fields({ started_at: decimal }), {
    doc: "what the last ringing did",
    report: { runner: "runners.bells.send", prefix: "last_", unit: "seconds" },
  }),
  checkReport: hash("stats:bells:check_job", fields({ started_at: decimal }), {
    doc: "what the last check did",
    report: { runner: "runners.bells.check", unit: "milliseconds" },
  }),
});

let server: JobServer;
const admin = (method: string, path: string, body?: unknown) =>
  server.call(method, path, { token: server.admin, ...(body === undefined ? {} : { body }) });
const held = { kind: "owner", wait: "fail" } as const;
const inPath = (name: string) => encodeURIComponent(name);

beforeAll(async () => {
  server = await openJobServer({ domains: [operations, domain({ name: "bells", keys: [bells] })] });
});
beforeEach(() => server.ctx.flush());
afterAll(() => server.close());

/** Sets an entry aside as a consumer would; answers its id. */
async function setAside(queue: string, raw: string | Buffer, reason = "not JSON"): Promise<string> {
  const entry = quarantineEntry(server.ctx, queue, raw, reason);
  await server.ctx.redis.commands.lpush(quarantineOf(queue), entry);
  return (JSON.parse(entry) as { id: string }).id;
}

test("every route of operations refuses strangers", async () => {
  const { routes } = operations;
  expect(routes).toHaveLength(16);
  for (const { method, path } of routes)
    expect((await server.call(method, path.replaceAll(/\{\w+\}/g, "1"))).statusCode, `${method} ${path}`).toBe(401);
});

test("the reports page tells of every reporting job: never ran, running, ended well, ended badly", async () => {
  const { ctx } = server;
  const reports = async () => (await admin("GET", "/api/1/admin/jobs/reports")).json().items;
  const states = async () => (await reports()).map(({ state }: { state: string }) => state);
  expect(await reports()).toEqual(
    ["check", "send"].map((job) => ({
      key: `stats:bells:${job}_job`,
      runner: `runners.bells.${job}`,
      state: "never",
      started_at: null,
      finished_at: null,
      running_time: null,
      stop_reason: null,
      counts: {},
    })),
  );
  const started = ctx.clock.now();
  const [check, send] = [await startRun(ctx, bells.checkReport), await startRun(ctx, bells.sendReport)];
  const entry = JSON.stringify({ name: "runners.bells.send", kwargs: {}, queued_at: started });
  await ctx.redis.commands.zadd(jobKeys.workers(), started, "crl_wrk_one");
  await ctx.redis.commands.hset(jobKeys.running({ worker_uid: "crl_wrk_one" }), "1", entry);
  expect(await states()).toEqual(["last_failed", "running"]);
  await ctx.locks.withLock(lockKeys.runnerLock({ runner: "bells.check" }), held, async () => {
    expect(await states()).toEqual(["running", "running"]);
    await ctx.clock.advance(2.5);
    await check.finish({ stopReason: "list_exhausted", counts: { checked: 3, broken: 0 } });
  });
  await ctx.redis.commands.del(jobKeys.running({ worker_uid: "crl_wrk_one" }));
  expect(await states()).toEqual(["ok", "last_failed"]);
  expect((await reports())[0]).toEqual({
    key: "stats:bells:check_job",
    runner: "runners.bells.check",
    state: "ok",
    started_at: started,
    finished_at: started + 2.5,
    running_time: 2.5,
    stop_reason: "list_exhausted",
    counts: { checked: "3", broken: "0" },
  });
  await send.finish({ stopReason: "signal", counts: {} });
  expect((await reports())[1]).toMatchObject({ state: "ok", running_time: 2.5, stop_reason: "signal" });
});

test("the quarantine is counted by queue and read in pages, newest first", async () => {
  for (let n = 1; n <= 5; n++) await setAside(bells.toRing(), `{"bell":${n}`);
  await setAside("jobs:hot", Buffer.from([0xff, 0x00]));
  expect((await admin("GET", "/api/1/admin/quarantine")).json()).toEqual({
    items: [
      { queue: "bells:to_ring", length: 5 },
      { queue: "jobs:hot", length: 1 },
    ],
  });
  const page = async (query: string) =>
    (await admin("GET", `/api/1/admin/quarantine/${inPath("bells:to_ring")}${query}`)).json();
  const raws = ({ items }: { items: { raw: string }[] }) => items.map(({ raw }) => raw);
  const first = await page("?limit=2");
  expect([raws(first), first.next_offset]).toEqual([['{"bell":5', '{"bell":4'], 2]);
  const last = await page("?limit=2&offset=4");
  expect([raws(last), last.next_offset]).toEqual([['{"bell":1'], null]);
  expect((await page("")).next_offset).toBeNull();
  const bytes = (await admin("GET", "/api/1/admin/quarantine/jobs:hot")).json().items;
  expect(bytes).toMatchObject([{ queue: "jobs:hot", raw_base64: "/wA=", quarantined_at: server.ctx.clock.now() }]);
});

test("an entry goes back as it was, or corrected if the queue can read the correction", async () => {
  const { commands } = server.ctx.redis;
  const path = `/api/1/admin/quarantine/${inPath("bells:to_ring")}`;
  const asItWas = await setAside(bells.toRing(), '{"bell":"Emmanuel"}');
  const answer = await admin("POST", `${path}/${asItWas}/requeue`);
  expect([answer.statusCode, answer.json()]).toEqual([202, { queue: "bells:to_ring", id: asItWas }]);
  expect(await commands.lrange(bells.toRing(), 0, -1)).toEqual(['{"bell":"Emmanuel"}']);
  const again = await admin("POST", `${path}/${asItWas}/requeue`);
  expect([again.statusCode, again.json().type]).toEqual([404, "quarantined_entry_absent"]);

  const broken = await setAside(bells.toRing(), '{"bell":1}');
  const unreadable = await admin("POST", `${path}/${broken}/requeue`, { corrected: '{"bell":2}' });
  expect([unreadable.statusCode, unreadable.json().type]).toEqual([422, "correction_unreadable"]);
  expect(await commands.llen(bells.toRing())).toBe(1);
  expect((await admin("POST", `${path}/${broken}/requeue`, { corrected: '{"bell":"Big"}' })).statusCode).toBe(202);
  expect(await commands.lrange(bells.toRing(), 0, -1)).toEqual(['{"bell":"Emmanuel"}', '{"bell":"Big"}']);
  expect(await commands.exists(quarantineOf("bells:to_ring"))).toBe(0);
  expect((await admin("POST", `${path}/${broken}/requeue`, { position: 1 })).statusCode).toBe(422);
});

test("entries of schedules and pending sets go back with their score and member", async () => {
  const { commands } = server.ctx.redis;
  const later = await setAside(bells.later(), "Emmanuel");
  await admin("POST", `/api/1/admin/quarantine/${inPath("bells:later")}/${later}/requeue`, { score: 1234.5 });
  expect(await commands.zrange(bells.later(), "0", "-1", "WITHSCORES")).toEqual(["Emmanuel", "1234.5"]);

  const path = `/api/1/admin/quarantine/${inPath("bells:pending")}`;
  const pending = await setAside(bells.pending(), '{"tone":"e"}');
  const withoutMember = await admin("POST", `${path}/${pending}/requeue`);
  expect([withoutMember.statusCode, withoutMember.json().type]).toEqual([422, "member_required"]);
  for (const corrected of ["no JSON", "[]", '{"bell":1}', '{"tone":"e"}']) {
    const refused = await admin("POST", `${path}/${pending}/requeue`, { member: "u1", corrected });
    expect([refused.statusCode, refused.json().type], corrected).toEqual([422, "correction_unreadable"]);
  }
  const corrected = '{"bell":"Big"}';
  expect((await admin("POST", `${path}/${pending}/requeue`, { member: "u1", corrected })).statusCode).toBe(202);
  expect(await commands.hgetall(bells.pendingItem({ uid: "u1" }))).toEqual({ bell: "Big" });
  expect(Number(await commands.zscore(bells.pending(), "u1"))).toBeCloseTo(server.ctx.clock.now(), 3);

  const twin = await setAside(bells.pending(), corrected);
  const changed = await admin("POST", `${path}/${twin}/requeue`, { member: "u1" });
  expect([changed.statusCode, changed.json().type]).toEqual([409, "already_pending"]);
  const nowhere = await setAside("bells:gone", "x");
  const refused = await admin("POST", `/api/1/admin/quarantine/${inPath("bells:gone")}/${nowhere}/requeue`);
  expect([refused.statusCode, refused.json().type]).toEqual([409, "not_requeueable"]);
});

test("an entry is forgotten once, by its id", async () => {
  const [kept, gone] = [await setAside("bells:to_ring", "a"), await setAside("bells:to_ring", "b")];
  const path = `/api/1/admin/quarantine/${inPath("bells:to_ring")}`;
  expect((await admin("DELETE", `${path}/${gone}`)).statusCode).toBe(204);
  const again = await admin("DELETE", `${path}/${gone}`);
  expect([again.statusCode, again.json().type]).toEqual([404, "quarantined_entry_absent"]);
  expect((await admin("GET", path)).json().items).toMatchObject([{ id: kept }]);
});

test("what was set aside from a secret queue is named and withheld", async () => {
  const id = await setAside(bells.secretQueue(), "the secret itself");
  const answer = await admin("GET", `/api/1/admin/quarantine/${inPath("bells:secrets")}`);
  expect(answer.json().items).toEqual([
    { id, queue: "bells:secrets", reason: "not JSON", quarantined_at: server.ctx.clock.now(), withheld: true },
  ]);
  expect(answer.body).not.toContain("the secret itself");
});

test("the locks page shows every held lock with holder, age and end, and secret ones by their pattern alone", async () => {
  const { ctx } = server;
  await ctx.redis.commands.set(bells.secretLock({ key: "hunter2" }), "t".repeat(22), "EX", 300);
  await ctx.redis.commands.set(lockKeys.runnerLock({ runner: "bells.check" }), "nonsense");
  await ctx.redis.commands.set(jobKeys.recurringHash(), "7");
  const answer = await ctx.locks.withLock(bells.sendLock(), held, async () => {
    await ctx.clock.advance(10);
    return admin("GET", "/api/1/admin/locks");
  });
  const { items } = answer.json();
  expect(items.map(({ key }: { key: string }) => key)).toEqual([
    "bells:keys:{key}:lock",
    "bells:send_job:lock",
    "jobs:runner:bells.check:lock",
  ]);
  expect(answer.body).not.toContain("hunter2");
  expect(items[0]).toMatchObject({ kind: "token", holder: null, age: null, malformed: false });
  expect(items[1]).toMatchObject({ kind: "owner", holder: ctx.hostname, malformed: false });
  expect(Math.floor(items[1].age)).toBe(10);
  expect(items[1].ttl).toBeGreaterThan(0);
  expect(items[2]).toMatchObject({ kind: "owner", holder: null, ttl: null, malformed: true });
});

test("an administrator frees a lock by its name, and nothing that is no lock", async () => {
  const { ctx } = server;
  await ctx.redis.commands.set(bells.secretLock({ key: "hunter2" }), "t".repeat(22));
  await ctx.redis.commands.set(jobKeys.recurringHash(), "7");
  const free = async (key: string) => {
    const answer = await admin("DELETE", `/api/1/admin/locks/${inPath(key)}`);
    return [answer.statusCode, answer.body === "" ? undefined : answer.json().type];
  };
  expect(await free("bells:keys:hunter2:lock")).toEqual([204, undefined]);
  expect(await free("bells:keys:hunter2:lock")).toEqual([404, "lock_absent"]);
  expect(await free("rjobs:hash")).toEqual([400, "not_a_lock"]);
  expect(await free("nobody:declared:this")).toEqual([400, "not_a_lock"]);
  expect(await ctx.redis.commands.exists(jobKeys.recurringHash())).toBe(1);
});

test("the last 200 alerts are read under both addresses, newest first, without what cannot be read", async () => {
  const { ctx } = server;
  const { log, clock, redis } = ctx;
  const reporter = new AlertReporter({ log, clock, redis, hostname: "web-alpha-1" });
  for (let n = 1; n <= 205; n++) {
    reporter.warning(`bells:${n}`, `bell ${n} is out of tune`, { urgent: n === 205 });
    await reporter.settled();
  }
  for (const path of ["/api/1/admin/alerts", "/api/1/admin/alerts/recent"]) {
    const { items } = (await admin("GET", path)).json();
    expect(items).toHaveLength(200);
    expect(items[0]).toMatchObject({ level: "urgent", identifier: "bells:205", host: "web-alpha-1" });
    expect(items[0].occurred_at).toBe(clock.now());
    expect(items.at(-1).identifier).toBe("bells:6");
  }
  await redis.commands.lset(alertKeys.recent(), 0, "not an alert");
  const { items } = (await admin("GET", "/api/1/admin/alerts")).json();
  expect(items[0].identifier).toBe("bells:204");
});

test("every declared key is listed, and explained with what it holds", async () => {
  const { commands } = server.ctx.redis;
  const { items } = (await admin("GET", "/api/1/admin/keys")).json();
  expect(items).toHaveLength(server.ctx.catalogue.entries.length);
  expect(items.find(({ pattern }: { pattern: string }) => pattern === "bells:to_ring")).toEqual({
    pattern: "bells:to_ring",
    kind: "key",
    type: "list",
    family: "bells",
    domain: "bells",
    ttl: null,
    origin: "documented",
    doc: "bells that wait to be rung",
  });

  const explained = async (name: string) =>
    (await admin("GET", `/api/1/admin/keys/explain?name=${encodeURIComponent(name)}`)).json();
  await commands.rpush(bells.toRing(), '{"bell":"Emmanuel"}');
  expect(await explained("bells:to_ring")).toMatchObject({
    known: true,
    pattern: "bells:to_ring",
    live: { exists: true, type: "list", length: 1, value: [{ bell: "Emmanuel" }], complete: true },
  });
  await commands.set(bells.bytes(), Buffer.from([1, 2, 255]));
  expect((await explained("bells:bytes")).live.value).toBe("AQL/");
  await commands.rpush(bells.secretQueue(), "the secret itself");
  const secret = await explained("bells:secrets");
  expect(JSON.stringify(secret)).not.toContain("the secret itself");
  expect(secret.live).toMatchObject({ exists: true, type: "list" });
  const mistyped = await explained("bells:to_rign");
  expect(mistyped).toMatchObject({ known: false, name: "bells:to_rign" });
  expect(mistyped.near[0].pattern).toBe("bells:to_ring");
  expect((await admin("GET", "/api/1/admin/keys/explain")).statusCode).toBe(422);
});

test("a running house tells scrapers how long its queues are, and stops when it closes", async () => {
  const scraped = async () => (await server.call("GET", "/metrics")).body;
  const stop = await operations.start(server.ctx);
  await server.ctx.redis.commands.rpush(bells.toRing(), "a", "b");
  expect(await scraped()).toContain('carillon_queue_length{key="bells:to_ring"} 2');
  await stop();
  expect(await scraped()).not.toContain("carillon_queue_length");
});

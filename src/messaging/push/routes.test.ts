import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import { statisticsDomain } from "../../insight/statistics/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { contacts } from "../contacts/index.ts";
import { registerPushTokens } from "../contacts/service.ts";
import { push } from "./index.ts";
import { keys } from "./keys.ts";
import { token } from "./push.fixture.ts";

let server: TestServer;
let nudges = 0;
const rooms = [operations, statisticsDomain(() => [contacts, push]), contacts, push];

beforeAll(async () => {
  server = await openTestServer({ domains: rooms });
  Object.assign(server.ctx.jobs, {
    runners: new Map(push.runners.map((runner) => [runner.name, runner])),
    nudge: () => {
      nudges += 1;
    },
  });
});
afterAll(() => server.close());
beforeEach(() => server.ctx.flush());

const raw = (key: string) => server.ctx.redis.topology.key(key as never);
const get = (path: string) => server.call("GET", `/api/1/admin/notifs/${path}`, { token: server.admin });
const testPush = (body: unknown) => server.call("POST", "/api/1/admin/notifs/test_push", { token: server.admin, body });
const good = { push_token: token("me"), title: "Hello", body: "Is this on?", channel_id: "default" };

test("an administrator sends a test notification, sees it wait, and the send job is started for it", async () => {
  const before = nudges;
  const answer = await testPush(good);
  expect(answer.statusCode).toBe(202);
  const [entry] = await server.ctx.redis.commands.lrange(raw(keys.toSend()), 0, -1);
  expect(JSON.parse(entry!)).toMatchObject({ aud: "send", uid: answer.json().uid, push_token: token("me") });
  expect(nudges).toBe(before + 1);
  const info = await get("send_queue_info");
  expect(info.headers["cache-control"]).toBe("no-store");
  expect(info.json()).toEqual({ length: 1, oldest_last_queued_at: server.ctx.clock.now() });
});

test("what is no token is refused with 422, and a long queue with 503 and when to come back", async () => {
  expect((await testPush({ ...good, push_token: "ada" })).statusCode).toBe(422);
  expect((await testPush({ ...good, title: "" })).statusCode).toBe(422);
  expect((await testPush({ ...good, body: "x".repeat(4000) })).statusCode).toBe(422);
  await server.ctx.redis.commands.rpush(raw(keys.toSend()), ...Array.from({ length: 1000 }, () => "{}"));
  const refused = await testPush(good);
  expect(refused.statusCode).toBe(503);
  expect(refused.headers["retry-after"]).toBe("60");
});

test("the way of notifications is shown stage by stage, with ages, and an unreadable head has none", async () => {
  const now = server.ctx.clock.now();
  const ticket = (uid: string, first: number, last: number) =>
    JSON.stringify({
      aud: "check",
      uid,
      attempt_initially_queued_at: first,
      initially_queued_at: first,
      retry: 0,
      last_queued_at: last,
      push_token: token("a"),
      contents: { title: "", body: "", channel_id: null },
      failure_job: { name: "runners.push.default_failure", kwargs: {} },
      success_job: { name: "runners.push.default_success", kwargs: {} },
      push_ticket: { status: "ok", id: "t" },
      push_ticket_created_at: first,
    });
  const { commands } = server.ctx.redis;
  await commands.zadd(raw(keys.cold()), now - 1000, ticket("a", now - 1000, now - 20), now, ticket("b", now, now));
  expect((await get("receipt_cold_set_info")).json()).toEqual({
    length: 2,
    num_overdue: 1,
    oldest_last_queued_at: now - 20,
  });
  await commands.rpush(raw(keys.hot()), "damaged", ticket("c", now, now));
  expect((await get("receipt_hot_set_info")).json()).toEqual({ length: 2, oldest_last_queued_at: null });
});

test("one call shows every place on the way, what was set aside, and which jobs run", async () => {
  const { commands } = server.ctx.redis;
  const now = server.ctx.clock.now();
  await testPush(good);
  await commands.zadd(raw(keys.retrying()), now + 15, "{}", now + 60, "[]");
  await commands.rpush(raw(keys.sendPurgatory()), "{}");
  await commands.rpush(raw(quarantineOf(keys.toSend())), "{}");
  await commands.set(raw(keys.sendLock()), "held", "EX", 60);
  const overview = await get("queue_overview");
  expect(overview.headers["cache-control"]).toBe("no-store");
  expect(overview.json()).toEqual({
    to_send: { length: 1, oldest_last_queued_at: now },
    retrying: { length: 2, next_due_at: now + 15 },
    send_purgatory: 1,
    cold: { length: 0, num_overdue: 0, oldest_last_queued_at: null },
    hot: { length: 0, oldest_last_queued_at: null },
    ticket_purgatory: 0,
    quarantined: 1,
    running: { send: true, cold_to_hot: false, check: false },
    checked_at: now,
  });
});

test("the last runs are shown without their prefix, and a job that never finished is not found", async () => {
  for (const name of ["last_send_job", "last_cold_to_hot_job", "last_check_job"])
    expect((await get(name)).statusCode).toBe(404);
  const { commands } = server.ctx.redis;
  const times = { last_started_at: "10", last_finished_at: "12.5", last_running_time: "2.5" };
  await commands.hset(raw(keys.sendReport()), { ...times, last_num_messages_attempted: "7", last_num_succeeded: "7" });
  await commands.rpush(raw(keys.sendPurgatory()), "a", "b");
  expect((await get("last_send_job")).json()).toMatchObject({
    started_at: 10,
    finished_at: 12.5,
    running_time: 2.5,
    num_messages_attempted: 7,
    purgatory_size: 2,
  });
  await commands.hset(raw(keys.coldToHotReport()), { ...times, last_num_moved: "3" });
  expect((await get("last_cold_to_hot_job")).json()).toMatchObject({ num_moved: 3 });
});

test("tokens are counted, and today's events are shown with zeros for those that did not happen", async () => {
  await server.call("POST", "/api/1/admin/users", { token: server.admin, body: { sub: "ada" } });
  await registerPushTokens(server.ctx, [{ userSub: "ada", token: token("ada"), platform: "android" }]);
  const total = await get("total_push_tokens");
  expect(total.json()).toEqual({ total_push_tokens: 1, checked_at: server.ctx.clock.now() });
  expect(total.headers["cache-control"]).toBe("private, max-age=5");
  expect((await get("todays_push_token_stats")).json().today).toMatchObject({ created: 1, refreshed: 0 });
  await testPush(good);
  expect((await get("partial_push_ticket_stats")).json()).toMatchObject({
    today: { queued: 1, abandoned: 0 },
    yesterday: { queued: 0 },
  });
});

test("only administrators see any of it", async () => {
  for (const route of push.routes) {
    const answer = await server.call(route.method, route.path);
    expect([route.path, answer.statusCode]).toEqual([route.path, 401]);
  }
});

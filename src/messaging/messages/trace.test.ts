import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { encodeJob } from "../../jobs/entry.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { planOf } from "../../kernel/keyspace/index.ts";
import { encodeDataRaw } from "../../mechanisms/data-raw/index.ts";
import { noteSteps, notesSettled } from "../../mechanisms/message-log/index.ts";
import { quarantineEntry, quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { keys as emailKeys } from "../email/keys.ts";
import { keys as pushKeys } from "../push/keys.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { messages } from "./index.ts";
import { traceMessage } from "./service.ts";

let house: TestServer;
beforeAll(async () => {
  house = await openTestServer({ domains: [messages] });
});
beforeEach(() => house.ctx.flush());
afterAll(() => house.close());

const SID = `SM${"0".repeat(32)}`;
const entry = (uid: string, more: object = {}) =>
  JSON.stringify({ aud: "send", uid, retry: 1, last_queued_at: 100, ...more });
const story = (field: string, uid: string) =>
  encodeJob({
    name: "runners.sms.default_failure",
    kwargs: { data_raw: encodeDataRaw({ [field]: { aud: "send", uid, retry: 2 } }) },
    queued_at: 70,
  });
const seen = async (uid: string) =>
  ((await traceMessage(house.ctx, uid))?.now ?? []).map(({ place, channel }) => [channel, place]);

describe("a message is found", () => {
  test.each([
    ["push", pushKeys.toSend()],
    ["push", pushKeys.sendPurgatory()],
    ["push", pushKeys.hot()],
    ["push", pushKeys.ticketPurgatory()],
    ["sms", smsKeys.toSend()],
    ["sms", smsKeys.sendPurgatory()],
    ["email", emailKeys.toSend()],
    ["email", emailKeys.urgent()],
    ["email", emailKeys.sendPurgatory()],
  ])("among thousands of %s messages in the list %s, with how many are before it", async (channel, key) => {
    const { commands } = house.ctx.redis;
    const crowd = Array.from({ length: 2_400 }, (_, at) => entry(`crl_m_${at}`));
    await commands.rpush(key, ...crowd);
    const trace = await traceMessage(house.ctx, "crl_m_7");
    expect(trace).toMatchObject({ channel, uid: "crl_m_7", steps: [], seconds: null });
    expect(trace?.now).toMatchObject([{ place: key, ahead: 7, since: 100, failed_tries: 1, due: null }]);
    expect(await seen("crl_m_2399")).toEqual([[channel, key]]);
    // The uid of one is the beginning of another's.
    expect(await seen("crl_m_")).toEqual([]);
  });

  test.each([
    ["push", pushKeys.retrying(), "due"],
    ["push", pushKeys.cold(), "since"],
    ["sms", smsKeys.retrying(), "due"],
    ["email", emailKeys.retrying(), "due"],
    ["email", emailKeys.urgentRetrying(), "due"],
  ] as const)("among thousands of %s messages in the sorted set %s, with its time", async (channel, key, means) => {
    const crowd = Array.from({ length: 1_500 }, (_, at) => [at, entry(`crl_m_${at}`)]).flat();
    await house.ctx.redis.commands.zadd(key, ...crowd);
    const trace = await traceMessage(house.ctx, "crl_m_1234");
    expect(trace?.now).toMatchObject([{ channel, place: key, [means]: 1234, failed_tries: 1 }]);
  });

  test("while its receipt is awaited, by the hash of its pending text or mail, and with news that waits", async () => {
    const { commands } = house.ctx.redis;
    await commands.zadd(smsKeys.pending(), 900, SID, 950, `SM${"1".repeat(32)}`);
    await commands.hset(smsKeys.pendingItem({ sid: SID }), { uid: "t1", message_resource_last_updated_at: "50" });
    await commands.rpush(smsKeys.recovery(), SID);
    await commands.rpush(smsKeys.event(), JSON.stringify({ sid: SID, status: "sent" }));
    await commands.zadd(smsKeys.early(), 1, JSON.stringify({ sid: SID, status: "sent" }));
    expect((await traceMessage(house.ctx, "t1"))?.now).toMatchObject([
      { channel: "sms", place: smsKeys.pending(), since: 50, due: 900, provider_id: SID },
      { place: smsKeys.recovery(), ahead: 0 },
      { place: smsKeys.event() },
      { place: smsKeys.early() },
    ]);
    await commands.zadd(emailKeys.pending(), 300, "ses-1");
    await commands.hset(emailKeys.pendingItem({ message_id: "ses-1" }), { uid: "e1", send_accepted_at: "300" });
    await commands.rpush(emailKeys.eventPurgatory(), JSON.stringify({ message_id: "ses-1" }));
    expect((await traceMessage(house.ctx, "e1"))?.now).toMatchObject([
      { channel: "email", place: emailKeys.pending(), since: 300, provider_id: "ses-1" },
      { place: emailKeys.eventPurgatory() },
    ]);
  });

  test("in a callback that waits, waits for its time, runs or has failed", async () => {
    const { commands } = house.ctx.redis;
    await commands.rpush(jobKeys.hot(), story("sms", "other"), story("sms", "t1"));
    await commands.zadd(jobKeys.delayed(), 500, story("attempt", "p1"));
    await commands.zadd(jobKeys.workers(), 1, "w1");
    await commands.hset(jobKeys.running({ worker_uid: "w1" }), "1", story("email", "e1"));
    await commands.lpush(
      jobKeys.failed(),
      JSON.stringify({ id: "f1", raw: story("email", "e2"), failed_at: 99, reason: "error", error: "x" }),
    );
    expect((await traceMessage(house.ctx, "t1"))?.now).toMatchObject([
      { channel: "sms", place: jobKeys.hot(), ahead: 1, since: 70, failed_tries: 2 },
    ]);
    expect((await traceMessage(house.ctx, "p1"))?.now).toMatchObject([
      { channel: "push", place: jobKeys.delayed(), due: 500 },
    ]);
    expect(await seen("e1")).toEqual([["email", "jobs:running:w1"]]);
    expect((await traceMessage(house.ctx, "e2"))?.now).toMatchObject([{ place: jobKeys.failed(), since: 99 }]);
  });

  test("in every list and sorted set that a channel declares for its messages, also in those that come later", async () => {
    const { commands } = house.ctx.redis;
    const stations = Object.entries({ push: pushKeys, sms: smsKeys, email: emailKeys }).flatMap(([channel, keys]) =>
      planOf(keys).keys.flatMap(({ pattern, type, value }) =>
        /^JSON of a (mail|text|notification) (to send|with a ticket)/.test(value.shape)
          ? [{ channel, pattern, type }]
          : [],
      ),
    );
    expect(stations.length).toBeGreaterThan(12);
    for (const { channel, pattern, type } of stations) {
      await house.ctx.flush();
      if (type === "list") await commands.rpush(pattern, entry("m1"));
      else await commands.zadd(pattern, 5, entry("m1"));
      expect(await seen("m1"), pattern).toEqual([[channel, pattern]]);
    }
  });

  test("in the quarantine, when nobody could read it", async () => {
    const aside = quarantineEntry(house.ctx, smsKeys.toSend(), entry("t1", { phone_number: 5 }), "no number");
    await house.ctx.redis.commands.rpush(quarantineOf(smsKeys.toSend()), aside);
    expect(await seen("t1")).toEqual([["sms", quarantineOf(smsKeys.toSend())]]);
  });
});

test("a report that came before it was noted that the provider took the message is told after that", async () => {
  const note = (uid: string, ...steps: (readonly [string, number])[]) =>
    noteSteps(
      house.ctx,
      steps.map(([step, at]) => ({ channel: "email", uid, step, at })),
    );
  const told = async (uid: string) =>
    (await traceMessage(house.ctx, uid))?.steps.map(({ step, at, lasted }) => [step, at, lasted]);
  note("early", ["queued", 100], ["delivered", 102], ["accepted", 103], ["complained", 110]);
  note("usual", ["queued", 100], ["accepted", 101], ["delivered", 102]);
  note("unknown", ["queued", 100], ["bounced", 102]);
  await notesSettled(house.ctx);
  expect(await told("early")).toEqual([
    ["queued", 100, 2],
    ["accepted", 102, 0],
    ["delivered", 102, 8],
    ["complained", 110, null],
  ]);
  expect(await told("usual")).toEqual([
    ["queued", 100, 1],
    ["accepted", 101, 1],
    ["delivered", 102, null],
  ]);
  expect(await told("unknown")).toEqual([
    ["queued", 100, 2],
    ["bounced", 102, null],
  ]);
});

describe("the routes for messages", () => {
  test("tell an administrator where a message is and what happened to it, and nobody else", async () => {
    const { ctx, admin } = house;
    const now = ctx.clock.now();
    noteSteps(ctx, [
      { channel: "email", uid: "e1", step: "queued", at: now - 10, address: "ada@example.com" },
      { channel: "email", uid: "e1", step: "retried", at: now - 8, provider: "ses", detail: "ServerError" },
    ]);
    await notesSettled(ctx);
    await ctx.redis.commands.zadd(emailKeys.retrying(), now + 5, entry("e1"));
    const path = "/api/1/admin/messages/e1";
    expect((await house.call("GET", path)).statusCode).toBe(401);
    const answer = await house.call("GET", path, { token: admin });
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.json()).toMatchObject({
      uid: "e1",
      channel: "email",
      seconds: 10,
      now: [{ place: emailKeys.retrying(), due: now + 5 }],
      steps: [
        { step: "queued", lasted: 2, provider: null },
        { step: "retried", lasted: null, provider: "ses", detail: "ServerError" },
      ],
    });
    expect(answer.body).not.toContain("ada@example.com");
  });

  test("refuse a uid that nobody knows and a page that makes no sense", async () => {
    const token = house.admin;
    const unknown = await house.call("GET", "/api/1/admin/messages/crl_em_none", { token });
    expect([unknown.statusCode, unknown.json().type]).toEqual([404, "unknown_message"]);
    for (const days of ["0", "31", "many"])
      expect((await house.call("GET", `/api/1/admin/providers/carried?days=${days}`, { token })).statusCode).toBe(422);
    expect((await house.call("GET", "/api/1/admin/providers/carried", { token })).json()).toEqual({ items: [] });
    expect((await house.call("GET", "/api/1/admin/messages", { token })).statusCode).toBe(422);
    expect((await house.call("GET", "/api/1/admin/messages?address=a&limit=0", { token })).statusCode).toBe(422);
    const none = await house.call("GET", "/api/1/admin/messages?address=nobody", { token });
    expect(none.json()).toEqual({ items: [] });
  });
});

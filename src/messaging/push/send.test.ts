import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { jobErrors } from "../../jobs/errors.ts";
import { jobKeys } from "../../jobs/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { acceptPushes, enqueuePushes, forgetHandover, pushEntries } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, token } from "./push.fixture.ts";
import { settings } from "./settings.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";
import { readFailure } from "./story.ts";

let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse();
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const raw = (key: string) => house.redis.topology.key(key as never);
const sentTo = () => house.sandbox.inbox.all().map(({ to }) => to);

test("a notification is queued, sent and rests in the cold set under the time it came there", async () => {
  const [uid] = await house.queue(1);
  await house.run("send");
  const [member, score] = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1", "WITHSCORES");
  expect(JSON.parse(member!)).toMatchObject({
    aud: "check",
    uid,
    retry: 0,
    push_token: token("n0"),
    push_ticket: { status: "ok" },
    provider: "expo",
    contents: { title: "Good morning" },
  });
  expect(Number(score)).toBe(JSON.parse(member!).initially_queued_at);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 1, succeeded: 1 });
  expect(sentTo()).toEqual([token("n0")]);
  expect(await house.violations()).toEqual([]);
});

test("250 notifications go out in three requests, and the run reports them", async () => {
  const sizes: number[] = [];
  const counting = house.another();
  const { push } = counting.ctx.providers;
  const real = push.send.bind(push);
  push.send = (messages) => {
    sizes.push(messages.length);
    return real(messages);
  };
  await house.queue(250);
  await house.run("send", counting);
  expect(sizes).toEqual([100, 100, 50]);
  expect(await house.redis.commands.hgetall(raw(keys.sendReport()))).toMatchObject({
    last_num_messages_attempted: "250",
    last_num_succeeded: "250",
    last_num_failed_permanently: "0",
    last_num_failed_transiently: "0",
    last_stop_reason: "list_exhausted",
  });
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect(await house.length(keys.cold())).toBe(250);
  expect(new Set(sentTo()).size).toBe(250);
});

test("requests that are answered in another order than they were sent settle their own notifications, and no others", async () => {
  const process = house.another({ config: [[settings.window, 300]] as never });
  const { push } = process.ctx.providers;
  const real = push.send.bind(push);
  let requests = 0;
  push.send = async (messages) => {
    const request = ++requests;
    const tickets = await real(messages);
    if (request < 3)
      await eventually(async () => (await house.length(keys.cold())) === 100 * (3 - request), "its turn");
    return tickets;
  };
  const uids = await house.queue(300);
  await house.run("send", process);
  const tickets = await house.redis.commands.zrange(raw(keys.cold()), 0, "-1");
  expect(tickets.map((ticket) => JSON.parse(ticket).uid).sort()).toEqual([...uids].sort());
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 300, succeeded: 300 });
});

test("a limit of 1000 a run makes the first run send 1000 and the second the rest", async () => {
  const limited = house.another({
    config: [
      [settings.maxPerRun, 1000],
      [settings.maxPerSecond, 100_000],
    ] as never,
  });
  await house.queue(1200);
  await house.run("send", limited);
  expect(await house.length(keys.cold())).toBe(1000);
  expect(await house.length(keys.toSend())).toBe(200);
  await house.run("send", limited);
  expect(await house.length(keys.cold())).toBe(1200);
});

test("a provider that is down is tried four times, each failure told to the failure job, and then given up", async () => {
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 4 } } });
  await house.queue(1);
  const failures: string[] = [];
  for (const delay of [0, 15, 60, 300]) {
    await house.clock.advance(delay);
    await house.run("send");
    const taken = await house.takeCallbacks();
    failures.push(...taken.map(({ kwargs }) => readFailure(kwargs.data_raw).failure_info.identifier));
    await house.runCallbacks(taken);
    if (delay < 300) {
      expect(await house.length(keys.retrying())).toBe(1);
      await house.run("send");
      expect(await house.length(keys.retrying())).toBe(1);
    }
  }
  expect(failures).toEqual(["ServerError", "ServerError", "ServerError", "ServerError"]);
  expect(await house.length(keys.retrying())).toBe(0);
  expect(await house.counts(pushTicketStats)).toEqual({
    queued: 1,
    retried: 3,
    failed_due_to_server_error: 4,
    abandoned: 1,
  });
});

test("a failure job that is delivered twice decides once", async () => {
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  await house.queue(1);
  await house.run("send");
  const taken = await house.takeCallbacks();
  await house.runCallbacks(taken);
  await house.runCallbacks(taken);
  expect(await house.length(keys.retrying())).toBe(1);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 1, retried: 1, failed_due_to_server_error: 1 });
});

test("refused credentials fail nobody: the queue is as it was, in order, and an urgent alert rings", async () => {
  house.sandbox.knobs.patch({ expo: { failNext: { status: 401, count: 1 } } });
  const uids = await house.queue(30);
  await house.run("send");
  const waiting = await house.redis.commands.lrange(raw(keys.toSend()), 0, -1);
  expect(waiting.map((entry) => JSON.parse(entry).uid)).toEqual(uids);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect(await house.redis.commands.hget(raw(keys.sendReport()), "last_stop_reason")).toBe("credentials");
  expect(house.alerts.recorded.some(({ level }) => level === "urgent")).toBe(true);
  expect(await house.takeCallbacks()).toEqual([]);
  await house.run("send");
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 30, succeeded: 30 });
});

test("a shutdown between two requests returns what was not sent to the head of the queue", async () => {
  const uids = await house.queue(300);
  const narrow = house.another({ config: [[settings.window, 100]] as never });
  await house.run("send", narrow, () => sentTo().length >= 100);
  const waiting = await house.redis.commands.lrange(raw(keys.toSend()), 0, -1);
  expect(waiting.map((entry) => JSON.parse(entry).uid)).toEqual(uids.slice(100));
  expect(await house.redis.commands.hget(raw(keys.sendReport()), "last_stop_reason")).toBe("signal");
});

test("what is no notification is set aside byte for byte, and the good ones around it are sent", async () => {
  await house.queue(1);
  await house.redis.commands.rpush(raw(keys.toSend()), "not json", Buffer.from([0xff, 0xfe]));
  await house.queue(1, { pushToken: token("second") });
  await house.run("send");
  expect(sentTo().sort()).toEqual([token("n0"), token("second")].sort());
  const aside = await house.redis.commands.lrange(raw(quarantineOf(keys.toSend())), 0, -1);
  const entries = aside.map((entry) => JSON.parse(entry));
  expect(entries.map(({ raw: text, raw_base64 }) => text ?? raw_base64).sort()).toEqual(["//4=", "not json"]);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 2, succeeded: 2 });
});

test("what could never be sent is refused before it is queued", async () => {
  const { ctx } = house.main;
  const refused = (more: Parameters<typeof newPush>[1]) => enqueuePushes(ctx, [newPush("a"), newPush("b", more)]);
  await expect(refused({ pushToken: "ExponentPushToken[]" })).rejects.toSatisfy(errors.invalid_push.matches);
  await expect(refused({ pushToken: token("y".repeat(50)) })).rejects.toSatisfy(errors.invalid_push.matches);
  const contents = { title: "", body: "x".repeat(4096), channel_id: null };
  await expect(refused({ contents })).rejects.toSatisfy(errors.invalid_push.matches);
  const failureJob = { name: "runners.nobody", kwargs: {} };
  await expect(refused({ failureJob })).rejects.toSatisfy(jobErrors.unknown_job.matches);
  const successJob = { name: "runners.test.success", kwargs: { data_raw: "mine" } };
  await expect(refused({ successJob })).rejects.toSatisfy(errors.invalid_push.matches);
  expect(await house.length(keys.toSend())).toBe(0);
  expect(await house.counts(pushTicketStats)).toEqual({});
});

test("a queue that would grow too long refuses all of a call, and a repeated call queues nothing", async () => {
  const { ctx } = house.main;
  const pushes = [newPush("a"), newPush("b")];
  expect(await enqueuePushes(ctx, pushes, { maxLength: 1 })).toEqual({ ok: false, reason: "backpressure" });
  const first = await enqueuePushes(ctx, pushes, { callUid: "call-1" });
  const second = await enqueuePushes(ctx, pushes, { callUid: "call-1" });
  expect(first).toMatchObject({ ok: true, duplicate: false });
  expect(second).toEqual({ ...first, duplicate: true });
  expect(await house.length(keys.toSend())).toBe(2);
  await house.clock.advance(601);
  expect(await enqueuePushes(ctx, pushes, { callUid: "call-1" })).toMatchObject({ duplicate: false });
});

test("a group that is handed over twice is accepted once, and counts on the day it was made", async () => {
  const { ctx } = house.main;
  const items = pushEntries(ctx, [newPush("a"), newPush("b")]);
  await house.clock.advance(86_400);
  expect(await acceptPushes(ctx, { uid: "group-1", items })).toEqual({ duplicate: false });
  expect(await acceptPushes(ctx, { uid: "group-1", items })).toEqual({ duplicate: true });
  expect(await house.length(keys.toSend())).toBe(2);
  expect(await house.counts(pushTicketStats, 1)).toEqual({ queued: 2 });
  await forgetHandover(ctx, "group-1");
  await house.clock.advance(3601);
  expect(await house.redis.commands.exists(raw(keys.handoverSeen({ group_uid: "group-1" })))).toBe(0);
});

test("a sender that dies at any command loses nothing, counts everything once, and queues each callback once", async () => {
  const names = ["good", "sandbox-unregistered-a", "also-good"];
  let accepted = 0;
  const deaths = await dieAtEveryCommand(house.server, {
    async prepare() {
      await house.reset();
      const failureJob = { name: "runners.test.failure", kwargs: { who: "me" } };
      await enqueuePushes(
        house.main.ctx,
        names.map((name) => newPush(name, { failureJob })),
      );
      await house.redis.commands.del(raw(jobKeys.hot()));
    },
    life: (redis) => house.run("send", house.another({ redis })),
    async afterlife({ command }) {
      await house.clock.advance(130);
      await house.run("send");
      const expected = { queued: 3, succeeded: 2, failed_due_to_device_not_registered: 1 };
      expect(await house.counts(pushTicketStats), command).toEqual(expected);
      const callbacks = await house.takeCallbacks();
      expect(callbacks.map(({ name, kwargs }) => [name, kwargs.who])).toEqual([["runners.test.failure", "me"]]);
      expect(await house.length(keys.cold())).toBe(2);
      expect(await house.length(keys.sendPurgatory())).toBe(0);
      expect(await house.length(keys.toSend())).toBe(0);
      expect(await house.violations()).toEqual([]);
      accepted = Math.max(accepted, sentTo().length);
    },
  });
  expect(deaths).toBeGreaterThan(8);
  // Between the provider's answer and the settling a death sends again; never more than once more.
  expect(accepted).toBe(4);
}, 60_000);

test("a sender that dies at any command with many times its window queued repeats at most the window", async () => {
  const WINDOW = 3;
  const config = [[settings.window, WINDOW]] as const;
  const good = Array.from({ length: 13 }, (_, at) => `good-${at}`);
  const gone = ["sandbox-unregistered-a", "sandbox-unregistered-b"];
  let most = 0;
  await dieAtEveryCommand(house.server, {
    async prepare() {
      await house.reset();
      const failureJob = (who: string) => ({ name: "runners.test.failure", kwargs: { who } });
      const names = [...good.slice(0, 5), gone[0]!, ...good.slice(5), gone[1]!];
      await enqueuePushes(
        house.main.ctx,
        names.map((name) => newPush(name, { failureJob: failureJob(name) })),
      );
      await house.redis.commands.del(raw(jobKeys.hot()));
    },
    life: (redis) => house.run("send", house.another({ redis, config })),
    async afterlife({ command }) {
      await house.clock.advance(130);
      await house.run("send", house.another({ config }));
      const sent = sentTo();
      expect(new Set(sent), command).toEqual(new Set(good.map(token)));
      const repeated = sent.length - good.length;
      expect(repeated, command).toBeLessThanOrEqual(WINDOW);
      most = Math.max(most, repeated);
      const callbacks = await house.takeCallbacks();
      expect(callbacks.map(({ kwargs }) => kwargs.who)).toEqual(gone);
      expect(await house.length(keys.cold())).toBe(good.length);
      expect(await house.counts(pushTicketStats)).toEqual({
        queued: good.length + gone.length,
        succeeded: good.length,
        failed_due_to_device_not_registered: gone.length,
      });
    },
  });
  expect(most).toBe(WINDOW);
}, 60_000);

test("an accepted request whose answer is lost counts as a passing failure, and the next try as the success", async () => {
  house.sandbox.knobs.patch({ expo: { dropConnectionAfterAccept: 1 } });
  await house.queue(1);
  await house.run("send");
  await house.settleCallbacks();
  await house.clock.advance(15);
  await house.run("send");
  expect(sentTo()).toHaveLength(2);
  expect(await house.counts(pushTicketStats)).toEqual({
    queued: 1,
    retried: 1,
    failed_due_to_network_error: 1,
    succeeded: 1,
  });
  expect(await house.counts(pushReceiptStats)).toEqual({});
});

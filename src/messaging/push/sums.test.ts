import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mortalConnection } from "../../../test/harness/chaos.ts";
import { domain } from "../../domain.ts";
import { jobKeys } from "../../jobs/index.ts";
import { audit, Catalogue } from "../../kernel/keyspace/index.ts";
import { messageLogKeys } from "../../mechanisms/message-log/index.ts";
import { providerKeys } from "../../providers/keys.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { enqueuePushes } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, rooms } from "./push.fixture.ts";
import { settings } from "./settings.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";

let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse({ sql: true });
});
afterAll(() => house.close());

const DEVICES = ["good", "sandbox-unregistered-a", "sandbox-slow-a", "sandbox-receipt-MessageTooBig-a"];
const LINE = [keys.toSend(), keys.sendPurgatory(), keys.retrying(), keys.cold(), keys.hot(), keys.ticketPurgatory()];

const failures = (counts: Record<string, number>) =>
  Object.entries(counts)
    .filter(([event]) => event.startsWith("failed_due_to_"))
    .reduce((sum, [, count]) => sum + count, 0);
const of = (counts: Record<string, number>, ...events: string[]) =>
  events.reduce((sum, event) => sum + (counts[event] ?? 0), 0);

async function inFlight(): Promise<number> {
  const lengths = await Promise.all(LINE.map((key) => house.length(key)));
  return lengths.reduce((sum, length) => sum + length, 0);
}

test("whatever fails and whoever dies, every notification ends once and the numbers of the day add up", async () => {
  const Step = fc.oneof(
    fc.record({ do: fc.constant("queue" as const), device: fc.constantFrom(...DEVICES) }),
    fc.record({ do: fc.constant("fail" as const), status: fc.constantFrom(429, 500, 503) }),
    fc.record({ do: fc.constant("cut" as const) }),
    fc.record({ do: fc.constantFrom("send" as const, "check" as const), dieAt: fc.integer({ min: 1, max: 14 }) }),
    fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(20, 400, 900) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(Step, { minLength: 4, maxLength: 16 }), async (steps) => {
      await house.reset();
      let queued = 0;
      const ended = new Map<string, number>();
      const settle = async () => {
        for (const { name, kwargs } of await house.settleCallbacks())
          if (name === "runners.push.default_success")
            ended.set(kwargs.data_raw, (ended.get(kwargs.data_raw) ?? 0) + 1);
      };
      for (const step of steps) {
        if (step.do === "queue") {
          await enqueuePushes(house.main.ctx, [newPush(step.device)]);
          queued += 1;
        } else if (step.do === "fail")
          house.sandbox.knobs.patch({ expo: { failNext: { status: step.status, count: 1 } } });
        else if (step.do === "cut") house.sandbox.knobs.patch({ expo: { dropConnectionAfterAccept: 1 } });
        else if (step.do === "wait") {
          await house.clock.advance(step.seconds);
          await house.run("ticket_hot_to_cold");
        } else {
          const redis = await mortalConnection(house.server, { dieAt: step.dieAt, death: "after" });
          await house.run(step.do, house.another({ redis })).catch(() => {});
          redis.commands.disconnect();
          await house.clock.advance(130);
        }
        await settle();
        expect(await house.violations()).toEqual([]);
      }
      house.sandbox.knobs.reset();
      for (let round = 0; round < 12 && (await inFlight()) > 0; round++) {
        await house.clock.advance(900);
        await house.run("send");
        await settle();
        await house.run("ticket_hot_to_cold");
        await house.run("check");
        await settle();
      }
      expect(await inFlight()).toBe(0);
      const tickets = await house.counts(pushTicketStats);
      const receipts = await house.counts(pushReceiptStats);
      expect(of(tickets, "queued")).toBe(queued);
      expect(of(tickets, "queued", "retried")).toBe(of(tickets, "succeeded") + failures(tickets));
      expect(of(tickets, "retried", "abandoned")).toBe(
        of(tickets, "failed_due_to_client_error_429", "failed_due_to_server_error", "failed_due_to_network_error"),
      );
      expect(of(tickets, "succeeded") + of(receipts, "retried")).toBe(of(receipts, "succeeded") + failures(receipts));
      expect(of(receipts, "retried", "abandoned")).toBe(
        of(
          receipts,
          "failed_due_to_not_ready_yet",
          "failed_due_to_client_error_429",
          "failed_due_to_server_error",
          "failed_due_to_network_error",
        ),
      );
      expect([...ended.values()].every((times) => times === 1)).toBe(true);
      expect(ended.size).toBe(of(receipts, "succeeded"));
    }),
    { numRuns: 12, seed: 7 },
  );
}, 60_000);

test("with a notification at every stage of its way the audit finds nothing wrong and knows every key", async () => {
  await house.reset();
  await enqueuePushes(house.main.ctx, [newPush("sandbox-slow-a"), newPush("good")]);
  await house.run("send");
  await house.clock.advance(900);
  await enqueuePushes(house.main.ctx, [newPush("cold")]);
  await house.run("send");
  await house.run("ticket_hot_to_cold");
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  await enqueuePushes(house.main.ctx, [newPush("retrying")]);
  await house.run("send");
  await house.runCallbacks(await house.takeCallbacks());
  await enqueuePushes(house.main.ctx, [newPush("waiting")]);
  const here = await Promise.all([keys.toSend(), keys.retrying(), keys.cold(), keys.hot()].map(house.length));
  expect(here).toEqual([1, 1, 1, 2]);
  const jobRoom = domain({ name: "jobs", keys: [jobKeys, providerKeys, messageLogKeys] });
  const result = await audit(house, new Catalogue([jobRoom, ...rooms]), { invariants, deep: true });
  expect(result.findings).toEqual([]);
});

test("an entry in two places, a ticket at a wrong score and a purgatory without measure are found", async () => {
  await house.reset();
  await house.queue(1);
  const name = (key: string) => house.redis.topology.key(key as never);
  const [waiting] = await house.redis.commands.lrange(name(keys.toSend()), 0, -1);
  await house.redis.commands.zadd(name(keys.retrying()), 1, waiting!);
  const ticket = JSON.stringify({ uid: "t", initially_queued_at: 10, last_queued_at: 9 });
  await house.redis.commands.zadd(name(keys.cold()), 11, ticket);
  const held = Array.from({ length: 601 }, () => "{}");
  await house.redis.commands.rpush(name(keys.ticketPurgatory()), ...held);
  await house.redis.commands.rpush(name(keys.hot()), JSON.stringify({ uid: "u", aud: "send" }));
  await house.redis.commands.rpush(name(keys.hot()), JSON.stringify({ uid: "v", aud: "check", push_ticket: {} }));
  expect(await house.violations({ unattended: true })).toEqual([
    expect.stringContaining("push:message_attempts:retrying and push:message_attempts:to_send"),
    'u in push:push_tickets:hot is not for "check"',
    "v in push:push_tickets:hot has no ticket",
    "t stands at 11, not at 10",
    "t was last queued before it was first queued",
    "push:push_tickets:purgatory holds 601",
    "push:push_tickets:purgatory holds 601 that nobody works on; start a worker",
  ]);
});

test("a purgatory whose run still works, or died just now, is attended", async () => {
  await house.reset();
  const name = (key: string) => house.redis.topology.key(key as never);
  const unattended = async () => (await house.violations({ unattended: true })).length > 0;
  await house.redis.commands.rpush(name(keys.sendPurgatory()), "{}");
  await house.redis.commands.hset(name(keys.sendReport()), "last_started_at", house.clock.now());
  await house.clock.advance(290);
  expect(await unattended()).toBe(false);
  await house.clock.advance(20);
  expect(await unattended()).toBe(true);
  await house.redis.commands.set(name(keys.sendLock()), "held", "EX", 60);
  expect(await unattended()).toBe(false);
});

test("entries that move while the audit looks are not taken for entries in two places", async () => {
  await house.reset();
  const uids = await house.queue(1500);
  const moving = house.another({ config: [[settings.maxPerSecond, 100_000]] as never });
  const [, ...looks] = await Promise.all([
    house.run("send", moving),
    ...Array.from({ length: 6 }, () => house.violations()),
  ]);
  expect(looks).toEqual(Array.from({ length: 6 }, () => []));
  expect(await house.length(keys.cold())).toBe(uids.length);
});

test("a thousand notifications cost at most 0.2 calls to Redis each, from the queue to the callbacks", async () => {
  await house.reset();
  await house.queue(1000);
  const redis = await mortalConnection(house.server);
  const counting = house.another({ redis, config: [[settings.maxPerSecond, 100_000]] as never });
  await house.run("send", counting);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold", counting);
  await house.run("check", counting);
  const callbacks = await house.takeCallbacks();
  for (let from = 0; from < callbacks.length; from += 500)
    await house.runCallbacks(callbacks.slice(from, from + 500), counting);
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 1000 });
  expect(redis.sent).toBeLessThan(200);
  redis.commands.disconnect();
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { calendarOf, readDayAsIs } from "../../mechanisms/dated-counters/index.ts";
import { listQuarantined } from "../../mechanisms/quarantine/index.ts";
import { pendingHash, type SmsEvent } from "./entries.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { reconcileReceipts } from "./reconciliation.ts";
import { openSms, type SmsHouse } from "./sms.fixture.ts";
import { smsEventStats, smsPollingStats, smsSendStats } from "./stats.ts";

const PERSON = "+14155550132";

let house: SmsHouse;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

/** A text that the provider took and holds at this status without a word. */
async function silentText(stuckAt: "accepted" | "queued" | "sending" = "accepted"): Promise<string> {
  house.sandbox.knobs.patch({ twilio: { stuckAt, callbacks: "off" } });
  await house.text(PERSON);
  await house.run(send);
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  return sid!;
}

const hashOf = async (sid: string) =>
  pendingHash.decode(await house.ctx.redis.commands.hgetallBuffer(keys.pendingItem({ sid })));

const tell = (event: Partial<SmsEvent> & { sid: string; status: string }) =>
  house.ctx.redis.commands.rpush(
    keys.event(),
    JSON.stringify({
      error_code: null,
      error_message: null,
      date_updated: null,
      information_received_at: house.base.clock.now(),
      received_via: "webhook",
      ...event,
    }),
  );

test("a text without news is asked about at 15, 30 and 45 minutes and given up at 60", async () => {
  await silentText("sending");
  for (let round = 1; round <= 4; round++) {
    await house.base.clock.advance(895);
    await house.run(receiptStaleDetection);
    expect(await house.callbacks()).toEqual([]);
    await house.base.clock.advance(10);
    await house.run(receiptStaleDetection);
    expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
    expect(await house.length(keys.recovery())).toBe(round < 4 ? 1 : 0);
    await house.run(receiptRecovery);
    await house.run(receiptReconciliation);
    await house.audit();
  }
  expect(await house.length(keys.pending())).toBe(0);
  const { events, words } = await house.counts(smsPollingStats);
  expect(words).toMatchObject({
    queued_for_recovery: { 0: 1, 1: 1, 2: 1 },
    abandoned: { 3: 1 },
    received: { "accepted:sending": 1, "sending:sending": 2 },
  });
  expect(events).toMatchObject({ detected_stale: 4, attempted: 3, received: 3 });
});

test("a text that the provider forgot is lost, and its failure is final", async () => {
  const sid = await silentText();
  house.sandbox.knobs.patch({ twilio: { deleteResource: sid } });
  await house.base.clock.advance(900);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  await house.run(receiptRecovery);
  await house.run(receiptReconciliation);
  expect(await house.length(keys.pending())).toBe(0);
  expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
  expect((await house.counts(smsPollingStats)).events).toMatchObject({ attempted: 1, error_client_404: 1 });
  expect((await house.counts(smsEventStats)).words).toMatchObject({
    removed: { "accepted:lost": 1 },
    failed: { lost: 1 },
  });
  await house.audit();
});

test("while the provider cannot be asked the question is put off, and the text comes due again", async () => {
  await silentText();
  await house.base.clock.advance(900);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  house.sandbox.knobs.patch({ twilio: { failNext: { status: 503, count: 1 } } });
  await house.run(receiptRecovery);
  expect((await house.counts(smsPollingStats)).words.error_server).toEqual({ "503": 1 });
  expect([await house.length(keys.event()), await house.length(keys.pending())]).toEqual([0, 1]);
  await house.audit();
});

test("a text that the carrier takes is updated once and ends once, and what is heard of it later is unknown", async () => {
  const sid = await silentText();
  await tell({ sid, status: "sending" });
  await tell({ sid, status: "sent", information_received_at: house.base.clock.now() + 1 });
  await house.run(receiptReconciliation);
  await tell({ sid, status: "delivered" });
  await house.base.clock.advance(61);
  await house.run(receiptReconciliation);
  const { words } = await house.counts(smsEventStats);
  expect(words).toMatchObject({
    updated: { "accepted:sending": 1 },
    removed: { "sending:sent": 1 },
    unknown: { delivered: 1 },
  });
  expect(await house.length(keys.pending())).toBe(0);
  expect(await house.callbacks()).toEqual(["runners.sms.default_success"]);
});

test("a text that is queued before midnight and sent after it counts wholly on the first day", async () => {
  const calendar = calendarOf(house.ctx);
  const { clock } = house.base;
  const first = calendar.unixDate(clock.now());
  await clock.advance(calendar.startOf(first + 1) - 10 - clock.now());
  await house.text(PERSON);
  await clock.advance(1_200);
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  await house.run(send);
  await clock.advance(901);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  expect((await readDayAsIs(house.ctx, smsSendStats, first)).events).toEqual({ queued: "1", succeeded_pending: "1" });
  expect((await readDayAsIs(house.ctx, smsPollingStats, first)).events).toEqual({
    detected_stale: "1",
    queued_for_recovery: "1",
  });
  expect((await readDayAsIs(house.ctx, smsSendStats, first + 1)).events).toEqual({});
});

test("news that is older than what is known changes nothing, not even the count of changes", async () => {
  const sid = await silentText();
  const later = house.base.clock.now() + 1000;
  await tell({ sid, status: "sending", date_updated: later });
  await house.run(receiptReconciliation);
  const before = await hashOf(sid);
  expect(before).toMatchObject({ message_resource_status: "sending", num_changes: 1 });
  await tell({ sid, status: "queued", date_updated: later - 10 });
  await tell({ sid, status: "sending" });
  await house.run(receiptReconciliation);
  expect(await hashOf(sid)).toEqual(before);
  const { events, words } = await house.counts(smsEventStats);
  expect(words.out_of_order).toEqual({ "sending:queued": 1 });
  expect(events).toMatchObject({ updated: 1, duplicate: 1, out_of_order: 1, found: 3, attempted: 3 });
  await house.audit();
});

/** Works news in while somebody else changes its message, as often as told. */
async function reconcileAmidChanges(sid: string, changes: number): Promise<void> {
  let left = changes;
  await house.ctx.locks.withLock(keys.reconciliationLock(), { kind: "owner", wait: "fail" }, (lock) =>
    reconcileReceipts(
      Object.assign(Object.create(house.ctx), {
        job: { name: "runners.sms.receipt_reconciliation" },
        shuttingDown: () => false,
        budget: { exhausted: () => false },
      }),
      lock,
      {
        async beforeCommit() {
          if (left-- > 0) await house.ctx.redis.commands.hincrby(keys.pendingItem({ sid }), "num_changes", 1);
        },
      },
    ),
  );
}

test("an event that races with another change of its message is judged again, and counts once", async () => {
  const sid = await silentText();
  await tell({ sid, status: "sending" });
  await reconcileAmidChanges(sid, 1);
  expect(await hashOf(sid)).toMatchObject({ message_resource_status: "sending", num_changes: 2 });
  expect((await house.counts(smsEventStats)).events).toMatchObject({ attempted: 1, updated: 1 });
  expect(await house.length(keys.eventPurgatory())).toBe(0);
});

test("events that race on and on are left to the next run in order, and the audit finds nothing wrong with that", async () => {
  const sid = await silentText();
  await tell({ sid, status: "sending" });
  await tell({ sid, status: "sent" });
  await reconcileAmidChanges(sid, 5);
  expect((await house.counts(smsEventStats)).events).toEqual({});
  const waiting = await house.ctx.redis.commands.lrange(keys.event(), 0, -1);
  expect(waiting.map((raw) => JSON.parse(raw).status)).toEqual(["sending", "sent"]);
  await house.audit();
  await house.run(receiptReconciliation);
  expect((await house.counts(smsEventStats)).words).toMatchObject({
    updated: { "accepted:sending": 1 },
    removed: { "sending:sent": 1 },
  });
  await house.audit();
});

test("a carrier's refusal ends the text with a final failure, and its number gets no more", async () => {
  const sid = await silentText();
  await tell({ sid, status: "undelivered", error_code: "30005" });
  await house.run(receiptReconciliation);
  expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
  expect(await house.query("select reason, reason_details from suppressed_phone_numbers")).toEqual([
    {
      reason: "Unreachable",
      reason_details: { identifier: "ApplicationErrorOther", subidentifier: "30005", extra: null },
    },
  ]);
});

test("a message whose hash is broken is set aside, and a half of one is cleared away", async () => {
  const sid = await silentText();
  await house.ctx.redis.commands.hset(keys.pendingItem({ sid }), "failure_job", "not json");
  await house.ctx.redis.commands.zadd(keys.pending(), 1, `SM${"0".repeat(32)}`);
  await house.base.clock.advance(900);
  await house.run(receiptStaleDetection);
  expect(await house.length(keys.pending())).toBe(0);
  expect(await listQuarantined(house.ctx, keys.pending())).toHaveLength(1);
  await house.audit();
});

test("a callback that is delivered twice decides once", async () => {
  await silentText();
  await house.base.clock.advance(900);
  await house.run(receiptStaleDetection);
  const raws = await house.ctx.redis.commands.lrange("jobs:hot", 0, -1);
  await house.callbacks();
  await house.ctx.redis.commands.rpush("jobs:hot", ...raws.filter((raw) => raw.includes("default_failure")));
  await house.callbacks();
  expect(await house.length(keys.recovery())).toBe(1);
  expect((await house.counts(smsPollingStats)).events.queued_for_recovery).toBe(1);
});

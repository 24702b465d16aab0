import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { listQuarantined } from "../../mechanisms/quarantine/index.ts";
import type { SmsOutcome } from "../../providers/sms.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { enqueueSms, smsEntries } from "./service.ts";
import { settings } from "./settings.ts";
import { openSms, type SmsContext, type SmsHouse } from "./sms.fixture.ts";
import { smsSendStats } from "./stats.ts";

const PERSON = "+14155550132";
const OTHER = "+14155550133";
const callbacks = {
  failureJob: { name: "runners.sms.default_failure", kwargs: {} },
  successJob: { name: "runners.sms.default_success", kwargs: {} },
};
const sidOf = (n: number) => `SM${String(n).padStart(32, "0")}`;

let house: SmsHouse;
let words = 0;
beforeAll(async () => {
  house = await openSms();
});
afterAll(() => house.close());
beforeEach(() => house.clear());

/** Another process whose provider does as told. */
function withProvider(
  provider: object,
  ...config: NonNullable<NonNullable<Parameters<SmsHouse["process"]>[0]>["config"]>
) {
  const ctx = house.process({ config });
  return Object.assign(ctx, { providers: { sms: provider } }) as SmsContext;
}

const took = (sid: string, status = "accepted"): SmsOutcome => ({
  ok: true,
  state: status === "sent" ? "succeeded" : "pending",
  resource: { sid, status, errorCode: null, errorMessage: null, dateUpdated: null },
});

/** As a run leaves it that dies after the claim. */
const die = () => house.ctx.redis.commands.lmove(keys.toSend(), keys.sendPurgatory(), "LEFT", "RIGHT");

/** As a run leaves it that dies between the provider's answer and writing it down. */
async function dieAfterRequest(body: string): Promise<void> {
  await house.text(PERSON, body);
  await house.ctx.providers.sms.create({ to: PERSON, body });
  await die();
}

test("while the provider cannot be asked about a text in doubt the doubt stays, and it is not sent a second time", async () => {
  for (const trouble of [{ status: 503 }, { status: 429 }, { status: 429, code: 20429 }]) {
    await house.clear();
    await dieAfterRequest(`in doubt ${++words}`);
    house.sandbox.knobs.patch({ twilio: { failNext: { count: 1, ...trouble } } });
    await house.run(send);
    expect(await house.callbacks()).toEqual(["runners.sms.default_failure"]);
    const [waiting] = await house.ctx.redis.commands.zrange(keys.retrying(), 0, "-1");
    expect(JSON.parse(waiting!)).toHaveProperty("unanswered_since");
    await house.base.clock.advance(15);
    await house.run(send);
    expect(house.outbox()).toHaveLength(1);
    expect(await house.length(keys.retrying())).toBe(0);
    await house.audit();
  }
});

const unsettled = async () =>
  [
    await house.ctx.redis.commands.lrange(keys.toSend(), 0, -1),
    await house.ctx.redis.commands.lrange(keys.sendPurgatory(), 0, -1),
  ].map((raws) => raws.map((raw) => JSON.parse(raw) as { uid: string; unanswered_since?: number }));

test("what a dead run left while the provider refuses us or rests goes back in order with its doubt, and is not sent a second time", async () => {
  const troubles = [
    { failNext: { status: 401, count: 99, code: 20003 } },
    { failNext: { status: 503, count: 99 } },
    { failNext: { status: 503, count: 99 }, window: 1 },
  ];
  for (const { window = 50, ...knobs } of troubles) {
    await house.clear();
    const ctx = house.process({ config: [[settings.window as never, window]] });
    for (const number of ["+14155550101", "+14155550102", "+14155550103"]) {
      const body = `left ${++words}`;
      await house.text(number, body);
      await house.ctx.providers.sms.create({ to: number, body });
      await die();
    }
    const last = await house.text(OTHER, `queued behind ${words}`);
    const [, left] = await unsettled();
    house.sandbox.knobs.patch({ twilio: knobs });
    for (let run = 0; run < 3; run++) {
      await house.run(send, ctx);
      await house.audit();
      const [waiting, held] = await unsettled();
      expect(held).toEqual([]);
      const uids = left!.map(({ uid }) => uid).filter((uid) => waiting!.some((one) => one.uid === uid));
      expect(waiting!.map(({ uid }) => uid)).toEqual(waiting!.length === 0 ? [] : [...uids, last]);
      for (const { uid, unanswered_since } of waiting!) expect(unanswered_since === undefined).toBe(uid === last);
    }
    house.sandbox.knobs.reset();
    for (let round = 0; round < 4; round++) {
      await house.callbacks();
      await house.base.clock.advance(301);
      await house.run(send, ctx);
    }
    expect(house.outbox().map(({ to }) => to)).toEqual(["+14155550101", "+14155550102", "+14155550103", OTHER]);
    expect(await unsettled()).toEqual([[], []]);
    await house.audit();
  }
});

test("a server error leaves open whether the text was taken, so it is looked up before the next try", async () => {
  const asked: string[] = [];
  const outage: SmsOutcome = {
    ok: false,
    identifier: "ServerError",
    subidentifier: "504",
    retryable: true,
    extra: null,
  };
  const outcomes = [outage, took(sidOf(1))];
  const ctx = withProvider({
    create: async () => {
      asked.push("create");
      return { ...outcomes.shift()!, provider: "here" };
    },
    list: async () => {
      asked.push("list");
      return { ok: true, messages: [] };
    },
  });
  await house.text(PERSON);
  await house.run(send, ctx);
  await house.callbacks();
  await house.base.clock.advance(15);
  await house.run(send, ctx);
  expect(asked).toEqual(["create", "list", "create"]);
});

test("two texts with the same words left in doubt are taken for one message each, and the one that was not sent is sent", async () => {
  const body = `twice the same ${++words}`;
  await dieAfterRequest(body);
  await house.text(PERSON, body);
  await die();
  await house.run(send);
  expect(house.outbox().map(({ text }) => text)).toEqual([body, body]);
  const { events } = await house.counts(smsSendStats);
  expect((events.succeeded_pending ?? 0) + (events.succeeded_immediate ?? 0)).toBe(2);
  expect(await house.length(keys.recentSids())).toBe(2);
  await house.audit();
});

test("a text in doubt is not taken for an equal one that was sent and ended meanwhile", async () => {
  const body = `hello again ${++words}`;
  const [doubtful] = smsEntries(house.ctx, [{ phoneNumber: PERSON, body, ...callbacks }]);
  const due = house.base.clock.now() + 30;
  const entry = { ...doubtful, retry: 1, unanswered_since: doubtful!.last_queued_at };
  await house.ctx.redis.commands.zadd(keys.retrying(), due, JSON.stringify(entry));
  house.sandbox.knobs.patch({ twilio: { callbacks: "off" } });
  await house.text(PERSON, body);
  await house.run(send);
  const [sid] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "-1");
  await house.ctx.redis.commands.del(keys.pending(), keys.pendingItem({ sid: sid! }));
  await house.base.clock.advance(31);
  await house.run(send);
  expect(house.outbox()).toHaveLength(2);
});

test("sids are remembered for as long as their texts could be in doubt, and no longer", async () => {
  await house.text(PERSON);
  await house.run(send);
  expect(await house.length(keys.recentSids())).toBe(1);
  await house.base.clock.advance(43_200 + 3_601);
  await house.text(OTHER);
  await house.run(send);
  expect(await house.length(keys.recentSids())).toBe(1);
});

test("a sid that is pending already ends in the quarantine with an alert, and the known message stays as it is", async () => {
  const ctx = withProvider({ create: async () => ({ ...took(sidOf(7)), provider: "here" }) });
  const first = await house.text(PERSON);
  await house.run(send, ctx);
  await house.text(OTHER);
  await house.run(send, ctx);
  expect(await house.ctx.redis.commands.hget(keys.pendingItem({ sid: sidOf(7) }), "uid")).toBe(first);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect(await listQuarantined(house.ctx, keys.toSend())).toMatchObject([
    { reason: "the provider gave it the sid of another message" },
  ]);
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 2, succeeded_pending: 1 });
});

test("a sid that the provider gives to two texts of one batch belongs to the first, and the other is set aside", async () => {
  let calls = 0;
  // While the first is written down the others are answered, so they are written down together.
  const ctx = withProvider({ create: async () => ({ ...took(sidOf(calls++ === 0 ? 6 : 7)), provider: "here" }) });
  const [, ...uids] = [await house.text("+14155550101"), await house.text(PERSON), await house.text(OTHER)];
  await house.run(send, ctx);
  const known = await house.ctx.redis.commands.hget(keys.pendingItem({ sid: sidOf(7) }), "uid");
  const [aside] = await listQuarantined(house.ctx, keys.toSend());
  expect(uids).toEqual([known, JSON.parse((aside as { raw: string }).raw).uid]);
  expect(await house.length(keys.sendPurgatory())).toBe(0);
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 3, succeeded_pending: 2 });
});

/** What another process does that takes the lock over, as this one sees it: its next renewal is refused. */
async function takeLockAway(ctx: SmsContext, key: string): Promise<void> {
  await house.ctx.redis.commands.del(key);
  const lock = ctx.locks.held.find((held) => held.key === key)!;
  await house.base.clock.advance(31);
  await eventually(() => lock.state === "lost", "the loss of the lock");
}

test("a sender whose lock was lost asks nothing more of the provider, and writes down what was answered", async () => {
  for (const number of ["+14155550101", "+14155550102", "+14155550103"]) await house.text(number);
  for (const lost of [keys.sendLock(), keys.providerLock()]) {
    let created = 0;
    const ctx = withProvider(
      {
        create: async () => {
          created += 1;
          await takeLockAway(ctx, lost);
          return { ...took(sidOf(words++)), provider: "here" };
        },
        list: async () => ({ ok: true, messages: [] }),
      },
      [settings.window as never, 1],
    );
    await house.run(send, ctx).catch(() => {});
    expect(created).toBe(1);
  }
  expect((await house.counts(smsSendStats)).events).toEqual({ queued: 3, succeeded_pending: 2 });
  expect(await house.length(keys.pending())).toBe(2);
  await house.base.clock.advance(121);
  await house.run(send);
  expect(house.outbox().map(({ to }) => to)).toEqual(["+14155550103"]);
  await house.audit();
});

test("whoever asks about silent texts and loses the lock asks no more", async () => {
  house.sandbox.knobs.patch({ twilio: { stuckAt: "accepted", callbacks: "off" } });
  await house.text(PERSON);
  await house.text(OTHER);
  await house.run(send);
  await house.base.clock.advance(901);
  await house.run(receiptStaleDetection);
  await house.callbacks();
  let asked = 0;
  const ctx = withProvider(
    {
      fetch: async (sid: string) => {
        asked += 1;
        await takeLockAway(ctx, keys.recoveryLock());
        return took(sid);
      },
    },
    [settings.window as never, 1],
  );
  await house.run(receiptRecovery, ctx).catch(() => {});
  expect(asked).toBe(1);
  await house.base.clock.advance(121);
  await house.run(receiptRecovery);
  expect([await house.length(keys.recovery()), await house.length(keys.event())]).toEqual([0, 2]);
  await house.audit();
});

test("two runs within one second share the pace, because a process has one for its provider", async () => {
  const times: number[] = [];
  const create = async () => {
    times.push(house.base.clock.monotonic());
    return { ...took(sidOf(words++), "sent"), provider: "here" };
  };
  const ctx = withProvider({ create }, [settings.maxPerSecond as never, 2]);
  for (let run = 0; run < 3; run++) {
    await house.text(PERSON);
    await house.run(send, ctx);
  }
  expect(times[2]! - times[0]!).toBeGreaterThanOrEqual(0.99);
});

test("without an address for reports a text is asked about after a minute already", async () => {
  const ctx = house.process({ config: [[settings.publicUrl as never, undefined]] });
  await house.text(PERSON);
  await house.run(send, ctx);
  const [, due] = await house.ctx.redis.commands.zrange(keys.pending(), 0, "0", "WITHSCORES");
  expect(Number(due) - house.base.clock.now()).toBeCloseTo(60, 0);
});

test("news that outran the answer to its request is worked in as soon as the message is known", async () => {
  const sid = sidOf(99);
  const news = {
    sid,
    status: "sent",
    error_code: null,
    error_message: null,
    date_updated: null,
    information_received_at: house.base.clock.now(),
    received_via: "webhook",
  };
  await house.ctx.redis.commands.rpush(keys.event(), JSON.stringify(news));
  await house.run(receiptReconciliation);
  expect(await house.length(keys.early())).toBe(1);
  await house.text(PERSON);
  const ctx = withProvider({ create: async () => ({ ...took(sid), provider: "here" }) });
  await house.run(send, ctx);
  expect(await house.length(keys.pending())).toBe(1);
  await house.base.clock.advance(2);
  await house.run(receiptReconciliation);
  expect([await house.length(keys.pending()), await house.length(keys.early())]).toEqual([0, 0]);
  expect(await house.callbacks()).toEqual(["runners.sms.default_success"]);
});

test("the sender makes way for 200 ms between two batches while silent texts wait for the provider too", async () => {
  const create = async () => ({ ...took(sidOf(words++), "sent"), provider: "here" });
  const ctx = withProvider({ create }, [settings.window as never, 500]);
  const texts = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ phoneNumber: PERSON, body: `many ${at}`, ...callbacks }));
  for (const waiting of [false, true]) {
    await house.clear();
    await enqueueSms(house.ctx, texts(500));
    await enqueueSms(house.ctx, texts(1));
    if (waiting) await house.ctx.redis.commands.rpush(keys.recovery(), sidOf(1));
    await house.run(send, ctx);
    expect(house.rests).toEqual(waiting ? [0.2] : []);
    expect(await house.length(keys.toSend())).toBe(0);
  }
});

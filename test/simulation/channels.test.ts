import { afterEach, expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import { jobKeys } from "../../src/jobs/index.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { audit, Catalogue } from "../../src/kernel/keyspace/index.ts";
import { calendarOf, readDayAsIs, type StatsFamily } from "../../src/mechanisms/dated-counters/index.ts";
import { keys as pushKeys } from "../../src/messaging/push/keys.ts";
import { newPush, openPushHouse } from "../../src/messaging/push/push.fixture.ts";
import {
  enqueuePushes,
  readFailure as readPushFailure,
  readSuccess as readPushSuccess,
  retryOrAbandon,
} from "../../src/messaging/push/service.ts";
import { settings as pushSettings } from "../../src/messaging/push/settings.ts";
import { pushReceiptStats, pushTicketStats } from "../../src/messaging/push/stats.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "../../src/messaging/sms/jobs.ts";
import { keys as smsKeys } from "../../src/messaging/sms/keys.ts";
import {
  DEFAULT_FAILURE,
  DEFAULT_SUCCESS,
  decideFailures,
  enqueueSms,
  readFailure as readSmsFailure,
  readSuccess as readSmsSuccess,
} from "../../src/messaging/sms/service.ts";
import { openSms } from "../../src/messaging/sms/sms.fixture.ts";
import { smsEventStats, smsPollingStats, smsSendStats, smsWebhookStats } from "../../src/messaging/sms/stats.ts";
import { mortalConnection } from "../harness/chaos.ts";
import type { TestContext } from "../harness/context.ts";

/**
 * Days of messages through providers that misbehave one time in ten, in every way the simulators know, while processes
 * die; afterwards the lines run empty. Every message must have ended exactly once, and every day must add up.
 *
 * The size here is what a test run has time for. By hand it can be as large as one likes:
 *   CARILLON_SIM_DAYS=7 CARILLON_SIM_MESSAGES=50000 npx vitest run test/simulation/channels.test.ts
 * CARILLON_SIM_SEED gives other days.
 */
const DAYS = Number(process.env.CARILLON_SIM_DAYS ?? 1);
const MESSAGES = Number(process.env.CARILLON_SIM_MESSAGES ?? 400);
const SEED = Number(process.env.CARILLON_SIM_SEED ?? 20261115);
const FAULTS = 0.1;
const STEP = 900;
const STEPS = Math.round((DAYS * 86_400) / STEP);
/** Longer than anything is waited for, tried again or asked about. */
const DRAIN_STEPS = (16 * 3600) / STEP;
const TIMEOUT = Math.max(240_000, MESSAGES * 60);

/** The same seed gives the same days. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
const random = seeded(SEED);
const strikes = () => random() < FAULTS;
const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
/** How many messages come in this step, so that all have come after the last. */
const arriving = (step: number) => Math.floor(((step + 1) * MESSAGES) / STEPS) - Math.floor((step * MESSAGES) / STEPS);

/** How often each message ended. */
class Ends {
  readonly #ends = new Map<string, number>();
  succeeded = 0;
  failed = 0;
  note(uid: string, how: "succeeded" | "failed"): void {
    this.#ends.set(uid, (this.#ends.get(uid) ?? 0) + 1);
    this[how] += 1;
  }
  expectOnceEach(uids: readonly string[]): void {
    expect(uids.filter((uid) => this.#ends.get(uid) !== 1).map((uid) => [uid, this.#ends.get(uid) ?? 0])).toEqual([]);
    expect(this.#ends.size).toBe(uids.length);
    // Either without the other would mean that the days were not as bad, or not as good, as they should be.
    expect(this.succeeded).toBeGreaterThan(uids.length / 2);
    expect(this.failed).toBeGreaterThan(uids.length / 100);
  }
}

interface Sums {
  of(...events: string[]): number;
  failures(): number;
}

/** The counts of a family on every day since the first. */
async function daysOf(ctx: KernelContext, family: StatsFamily, firstDate: number): Promise<readonly Sums[]> {
  const lastDate = calendarOf(ctx).unixDate(ctx.clock.now());
  const days: Sums[] = [];
  for (let date = firstDate; date <= lastDate; date++) {
    const { events } = await readDayAsIs(ctx, family, date);
    const of = (...names: string[]) => names.reduce((sum, name) => sum + Number(events[name] ?? 0), 0);
    const failed = Object.keys(events).filter((name) => name.startsWith("failed_due_to_"));
    days.push({ of, failures: () => of(...failed) });
  }
  return days;
}

async function expectOrder(ctx: KernelContext): Promise<void> {
  const invariants = domains.flatMap((room) => room.invariants ?? []);
  const report = await audit(ctx, new Catalogue(domains), { invariants, deep: true });
  expect(report.findings).toEqual([]);
}

/** A round trip to the server, in which whatever travels over other wires gets on too. */
async function moment({ commands }: KernelContext["redis"]): Promise<void> {
  await commands.ping();
  await new Promise(setImmediate);
}

/** Waits for work that may sleep on the clock: when nothing else seems to happen, time passes. */
async function finished({ clock, redis }: TestContext, work: Promise<void>): Promise<void> {
  let done = false;
  const ended = work
    .catch(() => {})
    .finally(() => {
      done = true;
    });
  for (let idle = 1; !done; idle++) {
    await moment(redis);
    if (!done && idle % 60 === 0) await clock.advance(5);
  }
  await ended;
}

let closing: () => Promise<void> = async () => {};
afterEach(() => closing());

test("days of notifications through a bad provider: each ends once, and every day adds up", {
  timeout: TIMEOUT,
}, async () => {
  const house = await openPushHouse({ sql: true });
  closing = () => house.close();
  const config = [[pushSettings.maxPerSecond, 100_000]] as never;
  const { ctx } = house.main;
  const main = house.another({ config });
  const firstDate = calendarOf(ctx).unixDate(house.clock.now());
  const uids: string[] = [];
  const ends = new Ends();
  let deaths = 0;

  const hear = async () => {
    for (let taken = await house.takeCallbacks(); taken.length > 0; taken = await house.takeCallbacks())
      for (let from = 0; from < taken.length; from += 500) {
        const some = taken.slice(from, from + 500);
        // Whoever calls back twice with one story must get the same answer, so the second time tells what the first decided.
        await house.runCallbacks(some);
        const failures = some
          .filter(({ name }) => name.endsWith("_failure"))
          .map(({ kwargs }) => readPushFailure(kwargs.data_raw));
        const verdicts = await retryOrAbandon(ctx, failures);
        for (const [at, { attempt }] of failures.entries())
          if (verdicts[at] !== "retry") ends.note(attempt.uid, "failed");
        for (const { name, kwargs } of some)
          if (name.endsWith("_success")) ends.note(readPushSuccess(kwargs.data_raw).attempt.uid, "succeeded");
      }
  };
  const run = async (job: "send" | "ticket_hot_to_cold" | "check", mayDie: boolean) => {
    if (!mayDie || !strikes()) return finished(house, house.run(job, main));
    const redis = await mortalConnection(house.server, {
      dieAt: 1 + Math.floor(random() * 14),
      death: oneOf(["before", "after"]),
    });
    await finished(house, house.run(job, house.another({ redis, config })));
    if (redis.dead) deaths += 1;
    redis.commands.disconnect();
  };

  for (let step = 0; step < STEPS + DRAIN_STEPS; step++) {
    const faulty = step < STEPS;
    house.sandbox.knobs.reset();
    if (faulty) {
      const now = house.clock.now();
      house.sandbox.knobs.patch({
        expo: {
          errorRate: FAULTS,
          failNext: strikes() ? { status: oneOf([400, 429, 500, 503]), count: 1 } : null,
          dropConnectionAfterAccept: strikes() ? 1 : false,
          malformed: random() < FAULTS / 3 ? oneOf(["json", "structure", "count"]) : null,
          ratePerSecond: strikes() ? 1 : null,
          outage: random() < FAULTS / 3 ? { from: now, until: now + 900 } : null,
          receiptDelaySeconds: strikes() ? 2000 : 5,
        },
      });
      const pushes = Array.from({ length: arriving(step) }, () => {
        const name = `n${Math.floor(random() * 1e6)}`;
        if (!strikes()) return newPush(name);
        return newPush(
          oneOf(["sandbox-unregistered-", "sandbox-slow-", "sandbox-receipt-MessageTooBig-"]) + name.slice(0, 3),
        );
      });
      const queued = pushes.length > 0 ? await enqueuePushes(ctx, pushes) : undefined;
      if (queued?.ok) uids.push(...queued.uids);
    }
    await run("send", faulty);
    await run("ticket_hot_to_cold", faulty);
    await run("check", faulty);
    await hear();
    await house.clock.advance(STEP);
  }

  expect(uids).toHaveLength(MESSAGES);
  const line = [pushKeys.toSend(), pushKeys.sendPurgatory(), pushKeys.retrying(), pushKeys.cold(), pushKeys.hot()];
  expect(await Promise.all([...line, pushKeys.ticketPurgatory()].map((key) => house.length(key)))).toEqual([
    0, 0, 0, 0, 0, 0,
  ]);
  ends.expectOnceEach(uids);
  expect(deaths).toBeGreaterThan(0);
  const passing = ["client_error_429", "server_error", "network_error"].map((cause) => `failed_due_to_${cause}`);
  const receipts = await daysOf(ctx, pushReceiptStats, firstDate);
  for (const [at, ticket] of (await daysOf(ctx, pushTicketStats, firstDate)).entries()) {
    const receipt = receipts[at]!;
    expect(ticket.of("queued", "retried")).toBe(ticket.of("succeeded") + ticket.failures());
    expect(ticket.of("retried", "abandoned")).toBe(ticket.of(...passing));
    expect(ticket.of("succeeded") + receipt.of("retried")).toBe(receipt.of("succeeded") + receipt.failures());
    expect(receipt.of("retried", "abandoned")).toBe(receipt.of("failed_due_to_not_ready_yet", ...passing));
  }
  expect(receipts.reduce((sum, day) => sum + day.of("succeeded"), 0)).toBe(ends.succeeded);
  await expectOrder(ctx);
});

test("days of texts through a bad provider: each ends once, and every day adds up", { timeout: TIMEOUT }, async () => {
  const house = await openSms();
  closing = () => house.close();
  const { ctx, base } = house;
  const firstDate = calendarOf(ctx).unixDate(base.clock.now());
  const uids: string[] = [];
  const ends = new Ends();
  let deaths = 0;

  const hear = async () => {
    const raws = await base.redis.commands.lrange(base.redis.topology.key(jobKeys.hot()), 0, -1);
    const heard = raws.map((raw) => JSON.parse(raw) as { name: string; kwargs: { data_raw: string } });
    const failures = heard
      .filter(({ name }) => name === DEFAULT_FAILURE)
      .map(({ kwargs }) => readSmsFailure(kwargs.data_raw));
    const verdicts: Awaited<ReturnType<typeof decideFailures>>[number][] = [];
    for (let from = 0; from < failures.length; from += 500)
      verdicts.push(...(await decideFailures(ctx, failures.slice(from, from + 500))));
    for (const [at, { sms }] of failures.entries())
      if (verdicts[at]!.succeeded && !verdicts[at]!.wantedToRetry) ends.note(sms.uid, "failed");
    for (const { name, kwargs } of heard)
      if (name === DEFAULT_SUCCESS) ends.note(readSmsSuccess(kwargs.data_raw).sms.uid, "succeeded");
    // The default callbacks decide once more, as a repeated job would, which must change nothing.
    await house.callbacks();
  };
  const run = async (job: typeof send, mayDie: boolean) => {
    if (!mayDie || !strikes()) return finished(base, house.run(job));
    const redis = await mortalConnection(base.server, {
      dieAt: 1 + Math.floor(random() * 14),
      death: oneOf(["before", "after"]),
    });
    await finished(base, house.run(job, house.process({ redis })));
    if (redis.dead) deaths += 1;
    redis.commands.disconnect();
  };
  /** Webhooks travel over a real wire; one that is late is worked in with the next step. */
  const webhooksArrive = async () => {
    for (let turn = 0; turn < 40; turn++) await moment(base.redis);
  };

  for (let step = 0; step < STEPS + DRAIN_STEPS; step++) {
    const faulty = step < STEPS;
    house.sandbox.knobs.reset();
    if (faulty) {
      const texts = Array.from({ length: arriving(step) }, (_, at) => ({
        phoneNumber: `+1415555${String(Math.floor(random() * 10_000)).padStart(4, "0")}`,
        body: `Time to breathe ${uids.length + at}`,
        failureJob: { name: DEFAULT_FAILURE, kwargs: {} },
        successJob: { name: DEFAULT_SUCCESS, kwargs: {} },
      }));
      const now = base.clock.now();
      const [sid] = await base.redis.commands.zrange(base.redis.topology.key(smsKeys.pending()), 0, "0");
      house.sandbox.knobs.patch({
        twilio: {
          errorRate: FAULTS,
          failNext: strikes() ? { status: oneOf([400, 429, 500, 503]), count: 1 } : null,
          dropConnectionAfterCreate: strikes() ? 1 : false,
          finalStatus: Object.fromEntries(
            texts.filter(strikes).map(({ phoneNumber }) => [
              phoneNumber,
              oneOf([
                { status: "failed" as const, code: 30003 },
                { status: "undelivered" as const, code: 30005 },
              ]),
            ]),
          ),
          stuckAt: strikes() ? oneOf(["accepted", "queued", "sending"]) : null,
          callbacks: oneOf([
            "on",
            "on",
            "on",
            "on",
            "off",
            "delay",
            "duplicate",
            "reorder",
            "badSignature",
            "blankField",
          ]),
          deleteResource: sid && strikes() ? sid : null,
          ratePerSecond: strikes() ? 2 : null,
          outage: random() < FAULTS / 3 ? { from: now, until: now + 900 } : null,
        },
      });
      const queued = texts.length > 0 ? await enqueueSms(ctx, texts) : undefined;
      if (queued?.ok) uids.push(...queued.uids);
    }
    await run(send, faulty);
    for (const pause of [10, STEP - 10]) {
      await base.clock.advance(pause);
      if (pause === 10) await webhooksArrive();
      await run(receiptReconciliation, faulty);
      await hear();
    }
    await run(receiptStaleDetection, faulty);
    await hear();
    await run(receiptRecovery, faulty);
  }

  expect(uids).toHaveLength(MESSAGES);
  const line = [smsKeys.toSend(), smsKeys.sendPurgatory(), smsKeys.retrying(), smsKeys.pending(), smsKeys.event()];
  expect(await Promise.all(line.map((key) => house.length(key)))).toEqual([0, 0, 0, 0, 0]);
  ends.expectOnceEach(uids);
  expect(deaths).toBeGreaterThan(0);
  for (const day of await daysOf(ctx, smsSendStats, firstDate)) {
    expect(day.of("queued", "retried")).toBe(day.of("succeeded_pending", "succeeded_immediate") + day.failures());
    expect(day.of("retried", "abandoned")).toBe(
      day.of(
        ...["application_error_ratelimit", "client_error_429", "server_error", "network_error"].map(
          (cause) => `failed_due_to_${cause}`,
        ),
      ),
    );
  }
  for (const day of await daysOf(ctx, smsEventStats, firstDate)) {
    const attempted = day.of("attempted");
    expect(day.of("received_via_webhook", "received_via_polling")).toBe(attempted);
    expect(day.of("pending", "succeeded", "failed")).toBe(attempted);
    expect(day.of("found", "unknown")).toBe(attempted);
    expect(day.of("updated", "duplicate", "out_of_order", "removed")).toBe(day.of("found"));
  }
  for (const day of await daysOf(ctx, smsWebhookStats, firstDate)) {
    const unread = ["body_read_error", "body_max_size_exceeded", "body_parse_error"];
    expect(day.of("verified", "signature_missing", "signature_invalid", ...unread)).toBe(day.of("received"));
    expect(day.of("accepted", "unprocessable")).toBe(day.of("verified"));
  }
  for (const day of await daysOf(ctx, smsPollingStats, firstDate)) {
    const errors = ["client_404", "client_429", "client_other", "server", "network", "internal"];
    expect(day.of("received", ...errors.map((error) => `error_${error}`))).toBe(day.of("attempted"));
  }
  await expectOrder(ctx);
});

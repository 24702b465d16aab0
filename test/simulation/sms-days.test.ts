import { afterEach, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import type { AnyRunner } from "../../src/jobs/runner.ts";
import { calendarOf } from "../../src/mechanisms/dated-counters/index.ts";
import { receiptReconciliation, receiptRecovery, receiptStaleDetection, send } from "../../src/messaging/sms/jobs.ts";
import { keys } from "../../src/messaging/sms/keys.ts";
import {
  DEFAULT_FAILURE,
  DEFAULT_SUCCESS,
  decideFailures,
  enqueueSms,
  readFailure,
  readSuccess,
} from "../../src/messaging/sms/service.ts";
import { settings } from "../../src/messaging/sms/settings.ts";
import { openSms } from "../../src/messaging/sms/sms.fixture.ts";
import { smsEventStats, smsPollingStats, smsSendStats, smsWebhookStats, stats } from "../../src/messaging/sms/stats.ts";
import { TWILIO_CALLBACK_FAULTS, TWILIO_MESSAGE_FAULTS, TWILIO_REQUEST_FAULTS } from "../../src/sandbox/faults.ts";
import {
  amid,
  daysOf,
  Ends,
  expectOrder,
  furnish,
  live,
  moment,
  nightly,
  rotateAll,
  Taken,
  TIMEOUT,
  total,
  Weather,
  withoutDatabase,
} from "./days.ts";

let closing: () => Promise<void> = async () => {};
afterEach(() => closing());

test("a week of texts through a bad provider: each ends once, and every day adds up", {
  timeout: TIMEOUT,
}, async () => {
  const house = await openSms();
  closing = () => house.close();
  await furnish(house.base.sql);
  const { ctx, base } = house;
  const weather = new Weather("sms");
  const firstDate = calendarOf(ctx).unixDate(base.clock.now());
  const uids: string[] = [];
  const ends = new Ends();
  const taken = new Taken(house.sandbox, ({ direction, text }) => (direction === "out" ? text : undefined));
  const hot = base.redis.topology.key(jobKeys.hot());
  let deathsOfSending = 0;

  const run = async (job: AnyRunner, faulty: boolean) => {
    const trouble = await amid(base, weather, faulty, {
      well: () => house.run(job),
      dying: (redis) => house.run(job, house.process({ redis })),
      withoutDatabase: () => house.run(job, withoutDatabase(ctx)),
    });
    if (job === send && (trouble === "death" || trouble === "connections")) deathsOfSending += 1;
  };
  const hear = async (faulty: boolean) => {
    const raws = await base.redis.commands.lrange(hot, 0, -1);
    const heard = raws.map((raw) => JSON.parse(raw) as { name: string; kwargs: { data_raw: string } });
    // A job whose process dies is delivered again, so after trouble the same callbacks run once more.
    const trouble = await amid(base, weather, faulty, {
      well: () => house.callbacks(),
      dying: (redis) => house.callbacks(house.process({ redis })),
      withoutDatabase: () => house.callbacks(withoutDatabase(ctx)),
    });
    if (trouble !== "none" && raws.length > 0) {
      await base.redis.commands.rpush(hot, ...raws);
      await house.callbacks();
    }
    // Whoever calls back twice with one story gets the same answer, so asking again tells what the first decided.
    const failures = heard
      .filter(({ name }) => name === DEFAULT_FAILURE)
      .map(({ kwargs }) => readFailure(kwargs.data_raw));
    for (let from = 0; from < failures.length; from += 500) {
      const some = failures.slice(from, from + 500);
      for (const [at, verdict] of (await decideFailures(ctx, some)).entries())
        if (verdict.succeeded && !verdict.wantedToRetry) ends.note(some[at]!.sms.uid, "failed");
    }
    for (const { name, kwargs } of heard)
      if (name === DEFAULT_SUCCESS) ends.note(readSuccess(kwargs.data_raw).sms.uid, "succeeded");
  };
  /** Webhooks travel over a real wire; one that is late is worked in with the next step. */
  const webhooksArrive = async () => {
    for (let turn = 0; turn < 40; turn++) await moment(base);
  };

  const night = (faulty: boolean) =>
    nightly(base, weather, faulty, {
      well: () => rotateAll(ctx, stats),
      dying: (redis) => rotateAll(house.process({ redis }), stats),
      withoutDatabase: () => rotateAll(withoutDatabase(ctx), stats),
    });
  const step = async (arriving: number, faulty: boolean, seconds: number) => {
    house.sandbox.knobs.reset();
    if (faulty) {
      const now = base.clock.now();
      const [sid] = await base.redis.commands.zrange(base.redis.topology.key(keys.pending()), 0, "0");
      house.sandbox.knobs.patch({
        twilio: {
          faultRates: weather.shares(TWILIO_REQUEST_FAULTS),
          messageFaultRates: weather.shares(TWILIO_MESSAGE_FAULTS),
          callbackFaultRates: weather.shares(TWILIO_CALLBACK_FAULTS),
          deleteResource: sid && weather.strikes() ? sid : null,
          ratePerSecond: weather.strikes() ? 2 : null,
          failNext: weather.strikes() ? { status: weather.oneOf([401, 403]), count: 1 } : null,
          outage: weather.strikes(0.03) ? { from: now, until: now + seconds } : null,
        },
      });
      const texts = Array.from({ length: arriving }, (_, at) => ({
        phoneNumber: `+1415${String(weather.below(10_000_000)).padStart(7, "0")}`,
        body: `Time to breathe ${uids.length + at}`,
        failureJob: { name: DEFAULT_FAILURE, kwargs: {} },
        successJob: { name: DEFAULT_SUCCESS, kwargs: {} },
      }));
      for (let from = 0; from < texts.length; from += 500) {
        const queued = await enqueueSms(ctx, texts.slice(from, from + 500));
        if (queued.ok) uids.push(...queued.uids);
      }
    }
    await run(send, faulty);
    await base.clock.advance(10);
    await webhooksArrive();
    await run(receiptReconciliation, faulty);
    await hear(faulty);
    await base.clock.advance(seconds - 10);
    await run(receiptReconciliation, faulty);
    await run(receiptStaleDetection, faulty);
    await hear(faulty);
    await run(receiptRecovery, faulty);
  };
  await live("sms", { step, night });

  const line = [keys.toSend(), keys.sendPurgatory(), keys.retrying(), keys.pending(), keys.event(), keys.early()];
  expect(await Promise.all(line.map((key) => house.length(key)))).toEqual(line.map(() => 0));
  ends.expectOnceEach(uids);
  for (const trouble of ["death", "database", "connections"] as const)
    expect(weather.struck[trouble]).toBeGreaterThan(0);
  expect(weather.deathsAtNight).toBeGreaterThan(1);

  const sent = await daysOf(ctx, smsSendStats, firstDate);
  const passing = ["application_error_ratelimit", "client_error_429", "server_error", "network_error"].map(
    (cause) => `failed_due_to_${cause}`,
  );
  for (const day of sent) {
    expect(day.of("queued", "retried")).toBe(day.of("succeeded_pending", "succeeded_immediate") + day.failures());
    expect(day.of("retried", "abandoned")).toBe(day.of(...passing));
  }
  expect(total(sent, "queued")).toBe(uids.length);
  for (const day of await daysOf(ctx, smsEventStats, firstDate)) {
    const attempted = day.of("attempted");
    expect(day.of("received_via_webhook", "received_via_polling")).toBe(attempted);
    expect(day.of("pending", "succeeded", "failed")).toBe(attempted);
    expect(day.of("found", "unknown")).toBe(attempted);
    expect(day.of("updated", "duplicate", "out_of_order", "removed")).toBe(day.of("found"));
  }
  const webhooks = await daysOf(ctx, smsWebhookStats, firstDate);
  for (const day of webhooks) {
    const unread = ["body_read_error", "body_max_size_exceeded", "body_parse_error"];
    expect(day.of("verified", "signature_missing", "signature_invalid", ...unread)).toBe(day.of("received"));
    expect(day.of("accepted", "unprocessable")).toBe(day.of("verified"));
  }
  expect(total(webhooks, "signature_invalid")).toBeGreaterThan(0);
  for (const day of await daysOf(ctx, smsPollingStats, firstDate)) {
    const errors = ["client_404", "client_429", "client_other", "server", "network", "internal"];
    expect(day.of("received", ...errors.map((error) => `error_${error}`))).toBe(day.of("attempted"));
  }
  // Before a text is sent again it is looked up, so that hardly anybody gets it twice; never more than were in doubt.
  const unanswered = total(sent, "failed_due_to_network_error");
  expect(taken.repeats).toBeLessThanOrEqual(deathsOfSending * settings.window.default + unanswered);
  expect(taken.repeats).toBeLessThan(uids.length / 100);
  await expectOrder(ctx);
});

import { afterEach, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import type { AnyRunner } from "../../src/jobs/runner.ts";
import { calendarOf } from "../../src/mechanisms/dated-counters/index.ts";
import { openEmail, sample } from "../../src/messaging/email/email.fixture.ts";
import { receiptReconciliation, send, staleReceiptDetection } from "../../src/messaging/email/jobs.ts";
import { keys } from "../../src/messaging/email/keys.ts";
import { decideFailures, enqueueMails, readFailure, readSuccess } from "../../src/messaging/email/service.ts";
import { settings } from "../../src/messaging/email/settings.ts";
import { emailEventStats, emailSendStats, emailWebhookStats, stats } from "../../src/messaging/email/stats.ts";
import { SES_MAIL_FAULTS, SES_NOTICE_FAULTS } from "../../src/sandbox/faults.ts";
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

const FAILURE = "runners.emails.default_failure";
const SUCCESS = "runners.emails.default_success";
/** What may go wrong with a request to the mail service. */
const REQUEST_FAULTS = [
  "throttle",
  "500",
  "503",
  "reset",
  "timeout-after-accept",
  "no-message-id",
  "MessageRejected",
  "credentials",
  "SendingPausedException",
  "AccountSuspendedException",
] as const;

/** Runs of the send job within one step, at most. */
const MOST_RUNS = 12;

let closing: () => Promise<void> = async () => {};
afterEach(() => closing());

test("a week of mails through a bad provider: each ends once, and every day adds up", {
  timeout: TIMEOUT,
}, async () => {
  const house = await openEmail();
  closing = () => house.close();
  await furnish(house.base.sql);
  const { base } = house;
  const config = [[settings.maxPerSecond, 100_000]] as never;
  const ctx = house.process({ config });
  const weather = new Weather("email");
  const firstDate = calendarOf(ctx).unixDate(base.clock.now());
  const uids: string[] = [];
  const ends = new Ends();
  const taken = new Taken(house.sandbox, ({ raw }) => /^X-Carillon-Email-Uid: (\S+)/im.exec(String(raw))?.[1]);
  const hot = base.redis.topology.key(jobKeys.hot());
  let deathsOfSending = 0;

  const run = async (job: AnyRunner, faulty: boolean) => {
    const trouble = await amid(base, weather, faulty, {
      well: () => house.run(job, ctx),
      dying: (redis) => house.run(job, house.process({ redis, config })),
      withoutDatabase: () => house.run(job, withoutDatabase(ctx)),
    });
    if (job === send && (trouble === "death" || trouble === "connections")) deathsOfSending += 1;
  };
  const waiting = async () => (await house.length(keys.toSend())) + (await house.length(keys.urgent()));
  const hear = async (faulty: boolean) => {
    const raws = await base.redis.commands.lrange(hot, 0, -1);
    const heard = raws.map((raw) => JSON.parse(raw) as { name: string; kwargs: { data_raw: string } });
    // A job whose process dies is delivered again, so after trouble the same callbacks run once more.
    const trouble = await amid(base, weather, faulty, {
      well: () => house.callbacks(ctx),
      dying: (redis) => house.callbacks(house.process({ redis, config })),
      withoutDatabase: () => house.callbacks(withoutDatabase(ctx)),
    });
    if (trouble !== "none" && raws.length > 0) {
      await base.redis.commands.rpush(hot, ...raws);
      await house.callbacks(ctx);
    }
    // Whoever calls back twice with one story gets the same answer, so asking again tells what the first decided.
    const failures = heard.filter(({ name }) => name === FAILURE).map(({ kwargs }) => readFailure(kwargs.data_raw));
    for (let from = 0; from < failures.length; from += 500) {
      const some = failures.slice(from, from + 500);
      for (const [at, verdict] of (await decideFailures(ctx, some)).entries())
        if (!verdict.wantedToRetry) ends.note(some[at]!.email.uid, "failed");
    }
    for (const { name, kwargs } of heard)
      if (name === SUCCESS) ends.note(readSuccess(kwargs.data_raw).email.uid, "succeeded");
  };
  /** Notifications travel over a real wire; one that is late is worked in with the next step. */
  const noticesArrive = async () => {
    for (let turn = 0; turn < 30; turn++) await moment(base);
  };

  const night = (faulty: boolean) =>
    nightly(base, weather, faulty, {
      well: () => rotateAll(ctx, stats),
      dying: (redis) => rotateAll(house.process({ redis, config }), stats),
      withoutDatabase: () => rotateAll(withoutDatabase(ctx), stats),
    });
  const step = async (arriving: number, faulty: boolean, seconds: number) => {
    house.sandbox.knobs.reset();
    if (faulty) {
      const now = base.clock.now();
      house.sandbox.knobs.patch({
        ses: {
          fault_rates: weather.shares(REQUEST_FAULTS),
          mail_fault_rates: weather.shares(SES_MAIL_FAULTS),
          notice_fault_rates: weather.shares(SES_NOTICE_FAULTS),
          signature_version: weather.oneOf(["1", "2"]),
          max_per_second: weather.strikes() ? 5 : null,
          quota_24h: weather.strikes(0.05) ? 5 : null,
          outage: weather.strikes(0.03) ? { from: now, until: now + seconds } : null,
        },
      });
      const mails = Array.from({ length: arriving }, (_, at) => {
        const to = `ada${weather.below(size(uids.length + at))}@example.com`;
        return weather.strikes(0.2)
          ? { email: to, template: "verifyEmailCode", parameters: { code: "123456" } }
          : sample(to);
      });
      for (let from = 0; from < mails.length; from += 500) {
        const queued = await enqueueMails(ctx, mails.slice(from, from + 500));
        if (queued.ok) uids.push(...queued.uids);
      }
    }
    // A run that rests after failures leaves mails to the next, which comes within seconds.
    for (let runs = 0; runs < MOST_RUNS && (runs === 0 || (await waiting()) > 0); runs++) await run(send, faulty);
    await noticesArrive();
    // The topic repeats what was not taken, 20 seconds apart.
    await base.clock.advance(63);
    await noticesArrive();
    await run(receiptReconciliation, faulty);
    await hear(faulty);
    await base.clock.advance(seconds - 63);
    await run(receiptReconciliation, faulty);
    await run(staleReceiptDetection, faulty);
    await hear(faulty);
  };
  await live("email", { step, night });

  const line = [
    ...[keys.toSend(), keys.urgent(), keys.sendPurgatory(), keys.retrying(), keys.urgentRetrying()],
    ...[keys.pending(), keys.event(), keys.eventPurgatory(), keys.early()],
  ];
  expect(await Promise.all(line.map((key) => house.length(key)))).toEqual(line.map(() => 0));
  ends.expectOnceEach(uids);
  for (const trouble of ["death", "database", "connections"] as const)
    expect(weather.struck[trouble]).toBeGreaterThan(0);
  expect(weather.deathsAtNight).toBeGreaterThan(1);

  const sent = await daysOf(ctx, emailSendStats, firstDate);
  for (const day of sent) {
    expect(day.of("accepted", "failed_permanently", "failed_transiently")).toBe(day.of("attempted"));
    expect(day.of("accepted")).toBeLessThanOrEqual(day.of("templated"));
    expect(day.of("templated")).toBeLessThanOrEqual(day.of("attempted"));
    expect(day.of("retried", "abandoned")).toBe(day.of("failed_transiently"));
    expect(day.of("queued", "retried")).toBe(day.of("attempted"));
  }
  expect(total(sent, "queued")).toBe(uids.length);
  for (const day of await daysOf(ctx, emailEventStats, firstDate))
    expect(day.of("succeeded", "bounced", "complaint")).toBe(day.of("attempted"));
  const webhooks = await daysOf(ctx, emailWebhookStats, firstDate);
  for (const day of webhooks) {
    const refused = ["signature_missing", "signature_invalid"];
    const unread = ["body_read_error", "body_max_size_exceeded", "body_parse_error"];
    expect(day.of("verified", ...refused, ...unread)).toBe(day.of("received"));
    expect(day.of("accepted", "unprocessable")).toBe(day.of("verified"));
  }
  for (const event of ["signature_invalid", "body_max_size_exceeded", "accepted"])
    expect(total(webhooks, event)).toBeGreaterThan(0);
  // A mail goes out again only where a run died with it, or where the provider's answer was lost.
  const unanswered = total(sent, "failed_transiently");
  expect(taken.repeats).toBeLessThanOrEqual(deathsOfSending * settings.window.default + unanswered);
  await expectOrder(ctx);
});

/** Mostly people who were never written to before, and now and then one whose address is suppressed by now. */
const size = (mails: number) => 1000 + mails * 10;

import { afterEach, expect, test } from "vitest";
import { domains } from "../../src/domains.ts";
import type { AnyRunner } from "../../src/jobs/runner.ts";
import {
  brokenBalances,
  calendarOf,
  readCounts,
  type StatsFamily,
  sweepDeltas,
} from "../../src/mechanisms/dated-counters/index.ts";
import * as email from "../../src/messaging/email/jobs.ts";
import { keys as emailKeys } from "../../src/messaging/email/keys.ts";
import * as links from "../../src/messaging/links/jobs.ts";
import { keys as linkKeys } from "../../src/messaging/links/keys.ts";
import { linkStats } from "../../src/messaging/links/stats.ts";
import { checkReceipts } from "../../src/messaging/push/check.ts";
import { ticketHotToCold } from "../../src/messaging/push/cold-to-hot.ts";
import { keys as pushKeys } from "../../src/messaging/push/keys.ts";
import { sendPush } from "../../src/messaging/push/send.ts";
import * as reminders from "../../src/messaging/reminders/jobs.ts";
import { countKeys, keys as reminderKeys } from "../../src/messaging/reminders/keys.ts";
import { registrationStats, reminderStats } from "../../src/messaging/reminders/stats.ts";
import * as sms from "../../src/messaging/sms/jobs.ts";
import { keys as smsKeys } from "../../src/messaging/sms/keys.ts";
import * as touch from "../../src/messaging/touch/jobs.ts";
import { keys as touchKeys } from "../../src/messaging/touch/keys.ts";
import { newTouchUid, sendTouches } from "../../src/messaging/touch/service.ts";
import { touchSendStats, touchStaleStats } from "../../src/messaging/touch/stats.ts";
import {
  EXPO_MESSAGE_FAULTS,
  EXPO_REQUEST_FAULTS,
  SES_MAIL_FAULTS,
  SES_NOTICE_FAULTS,
  TWILIO_CALLBACK_FAULTS,
  TWILIO_MESSAGE_FAULTS,
  TWILIO_REQUEST_FAULTS,
} from "../../src/sandbox/faults.ts";
import { amid, expectOrder, moment, rotateAll, Weather, withoutDatabase } from "./days.ts";
import { Population } from "./people.ts";
import { openPeopleHouse, type PeopleHouse } from "./people-house.ts";
import { application, ended, Ledger } from "./people-ledger.ts";

const size = {
  days: Number(process.env.CARILLON_SIM_DAYS ?? 2),
  people: Number(process.env.CARILLON_SIM_PEOPLE ?? 48),
};
/** 2026-10-24 00:00 UTC: London, Berlin and others change their clocks on the second day, New York and Los Angeles on the ninth. */
const START = 1_792_800_000;
const DAY = 86_400;
const STEP = 1800;
const STEPS = (size.days * DAY) / STEP;
/** Longer than any end is waited for, and than any link waits for its message. */
const DRAIN = 44 * 3600;
const DRAIN_STEP = 7200;
/** How often a job that nobody waits for comes on time. */
const PROMPT = 0.4;
const MAIL_REQUEST_FAULTS = ["throttle", "500", "503", "reset", "timeout-after-accept", "MessageRejected"] as const;

const families = domains.flatMap(({ stats = [] }) => stats);

let closing: () => Promise<void> = async () => {};
afterEach(() => closing());

function misbehave({ sandbox, base }: PeopleHouse, weather: Weather): void {
  const now = base.clock.now();
  const outage = () => (weather.strikes(0.01) ? { from: now, until: now + STEP } : null);
  sandbox.knobs.reset();
  sandbox.knobs.patch({
    expo: {
      faultRates: weather.shares(EXPO_REQUEST_FAULTS),
      messageFaultRates: weather.shares(EXPO_MESSAGE_FAULTS),
      outage: outage(),
    },
    twilio: {
      faultRates: weather.shares(TWILIO_REQUEST_FAULTS),
      messageFaultRates: weather.shares(TWILIO_MESSAGE_FAULTS),
      callbackFaultRates: weather.shares(TWILIO_CALLBACK_FAULTS),
      outage: outage(),
    },
    ses: {
      fault_rates: weather.shares(MAIL_REQUEST_FAULTS),
      mail_fault_rates: weather.shares(SES_MAIL_FAULTS),
      notice_fault_rates: weather.shares(SES_NOTICE_FAULTS),
      outage: outage(),
    },
  });
}

test("people in twelve zones live through bad days: one end a touch, one reminder a local day, no click lost, and every day adds up", {
  timeout: Math.max(600_000, size.days * (60_000 + size.people * 120)),
}, async () => {
  const weather = new Weather("people");
  const house = await openPeopleHouse(START, weather, [application]);
  closing = () => house.close();
  const { ctx, base } = house;
  const population = new Population(house, weather);
  const ledger = new Ledger(house, weather);
  await population.settle(size.people);
  const news = { priority: 1, uid: "crl_tpsms_news", body_format: "News for you", body_parameters: [] };
  const made = await house.call("POST", "/api/1/admin/touch_points", {
    body: {
      event_slug: "news",
      event_schema: { type: "object", properties: {} },
      selection_strategy: "random_with_replacement",
      messages: { sms: [news] },
    },
  });
  expect(made.statusCode).toBe(201);

  /** The application tells some people something, and hears how that went. Who is not answered asks again. */
  const tell = async (faulty: boolean) => {
    const touches = population.people
      .filter(() => weather.strikes(0.004))
      .map(({ sub }) => {
        const uid = newTouchUid();
        const callback = (how: "well" | "badly") => ({ name: ended.name, kwargs: { touch: uid, how } });
        const callbacks = { successCallback: callback("well"), failureCallback: callback("badly") };
        return { uid, userSub: sub, slug: "news", channel: "sms" as const, parameters: {}, ...callbacks };
      });
    if (touches.length === 0) return;
    const callUid = `call-${touches[0]!.uid}`;
    await amid(base, weather, faulty, {
      well: () => sendTouches(ctx, touches, { callUid }),
      dying: (redis) => sendTouches(house.process({ redis }), touches, { callUid }),
      withoutDatabase: () => sendTouches(withoutDatabase(ctx), touches, { callUid }),
    });
    await sendTouches(ctx, touches, { callUid });
    await base.redis.commands.del(touchKeys.handoverSeen({ group_uid: callUid }));
  };
  const arrive = async () => {
    for (let turn = 0; turn < 20; turn++) await moment(base);
  };
  const reach = async (time: number) => {
    const left = time - base.clock.now();
    if (left > 0) await base.clock.advance(left);
  };

  /** Jobs that nobody waits for come late now and then. */
  const sooner = async (faulty: boolean, ...runners: readonly AnyRunner[]) => {
    for (const runner of runners) if (!faulty || weather.strikes(PROMPT)) await house.job(runner, faulty);
  };

  const step = async (begins: number, seconds: number, faulty: boolean) => {
    if (faulty) {
      misbehave(house, weather);
      await ledger.seeRegistrations();
      await house.job(reminders.assignTime, faulty);
      await ledger.seeTimes();
    } else house.sandbox.knobs.reset();
    ledger.dropping = faulty;
    await house.job(reminders.send, faulty);
    await ledger.seeTimes();
    if (faulty) await tell(faulty);
    await ledger.seeTouches();
    for (const send of [touch.send, sms.send, email.send, sendPush]) await house.job(send, faulty);
    await base.clock.advance(40);
    await arrive();
    await sooner(faulty, sms.receiptReconciliation, email.receiptReconciliation);
    await house.callbacks(faulty);
    if (faulty) await population.act(seconds);
    await sooner(faulty, touch.log);
    // Whoever clicks while links are being stored is kept apart until they are.
    if (!faulty || weather.strikes(PROMPT))
      await house.job(links.persistLink, faulty, async () => {
        const codes = await base.redis.commands.zrange(linkKeys.persistPurgatory(), 0, "4");
        for (const code of codes) await population.click(code);
      });
    await sooner(faulty, links.delayedClickPersist);
    await reach(begins + seconds - 300);
    await sooner(faulty, ticketHotToCold, checkReceipts, sms.receiptStaleDetection, sms.receiptRecovery);
    await arrive();
    await sooner(faulty, email.staleReceiptDetection, sms.followWishesJob);
    await sooner(faulty, touch.staleDetection, links.leakedLinkDetection);
    await house.callbacks(faulty);
    await ledger.patience();
    await sweepDeltas(ctx);
    await ledger.seeRegistrations();
    await reach(begins + seconds);
  };
  const night = async (faulty: boolean) => {
    await amid(base, weather, faulty, {
      well: () => rotateAll(ctx, families),
      dying: (redis) => rotateAll(house.process({ redis }), families),
      withoutDatabase: () => rotateAll(withoutDatabase(ctx), families),
    });
    await population.support();
    await house.job(reminders.recheck, false);
  };

  for (let at = 0; at < STEPS; at++) {
    await step(START + at * STEP, STEP, true);
    if (at % (DAY / STEP) === DAY / STEP - 1) {
      await night(true);
      if (process.env.CARILLON_SIM_PROGRESS !== undefined)
        process.stderr.write(`people: day ${(at + 1) / (DAY / STEP)} of ${size.days}\n`);
    }
  }
  const until = START + size.days * DAY;
  for (let at = 0; at < DRAIN / DRAIN_STEP; at++) await step(until + at * DRAIN_STEP, DRAIN_STEP, false);
  await night(false);

  const lines = [
    ...[
      touchKeys.toSend(),
      touchKeys.sendPurgatory(),
      touchKeys.pending(),
      touchKeys.toLog(),
      touchKeys.logPurgatory(),
    ],
    ...[linkKeys.buffer(), linkKeys.toPersist(), linkKeys.persistPurgatory()],
    ...[linkKeys.delayed(), linkKeys.delayedPurgatory()],
    ...[reminderKeys.queued(), reminderKeys.sendPurgatory(), reminderKeys.handover()],
    ...[smsKeys.toSend(), smsKeys.pending(), emailKeys.toSend(), emailKeys.pending(), pushKeys.toSend()],
  ];
  // The way here is long, so all that is wrong is told, not only the first of it.
  expect.soft(await Promise.all(lines.map((key) => house.length(key)))).toEqual(lines.map(() => 0));
  for (const trouble of ["death", "database", "connections"] as const)
    expect.soft(weather.struck[trouble]).toBeGreaterThan(0);

  ledger.expectEnds();
  expect.soft(ledger.ended.well).toBeGreaterThan(ledger.ended.badly);
  expect.soft(ledger.ended.badly).toBeGreaterThan(0);
  expect.soft(ledger.expectTimes({ from: START + DAY, until })).toBeGreaterThan(size.people * (size.days - 2) * 0.5);
  ledger.expectReminders();

  const firstDate = calendarOf(ctx).unixDate(START) - 2;
  const lastDate = calendarOf(ctx).unixDate(base.clock.now()) + 2;
  const totals = async (family: StatsFamily) => {
    const { days } = await readCounts(ctx, family, firstDate, lastDate + 1);
    const sums: Record<string, number> = {};
    const wrong: string[] = [];
    for (const [date, { counts, breakdowns }] of days) {
      wrong.push(...brokenBalances(family.balances, counts).map((line) => `${family.name} ${date}: ${line}`));
      for (const [event, words] of Object.entries(breakdowns)) {
        const sum = Object.values(words).reduce((all, count) => all + count, 0);
        if (sum !== counts[event]) wrong.push(`${family.name} ${date}: ${event} is ${counts[event]}, its words ${sum}`);
      }
      for (const [event, count] of Object.entries(counts)) sums[event] = (sums[event] ?? 0) + count;
    }
    expect.soft(wrong).toEqual([]);
    return sums as Record<string, number>;
  };
  for (const family of families) await totals(family);
  const [touches, stale, link, reminder, registered] = await Promise.all(
    [touchSendStats, touchStaleStats, linkStats, reminderStats, registrationStats].map(totals),
  );
  expect.soft(touches).toMatchObject({ queued: ledger.touches.size, attempted: ledger.touches.size });
  // Whoever moves or chooses later hours while their reminder of the day waits keeps its time, and counts once.
  expect.soft(reminder).toMatchObject({
    time_assigned: ledger.times,
    sends_attempted: ledger.times,
    sent: ledger.reminders,
  });
  expect.soft(stale!.stale).toBeLessThanOrEqual(ledger.lost);
  const rows = await house.query<{ channel: string; count: string }>(
    "select channel, count(*)::text as count from user_daily_reminders group by channel",
  );
  const held = rows.reduce((sum, { count }) => sum + Number(count), 0);
  expect.soft(registered!.subscribed! - registered!.unsubscribed!).toBe(held);
  const counts = await base.redis.commands.hgetall(base.redis.topology.key(countKeys.counts()));
  expect.soft(counts).toEqual(Object.fromEntries(rows.map(({ channel, count }) => [channel, count])));
  // Every link that was made was stored or given up, once.
  const [{ stored }] = (await house.query<{ stored: number }>(
    "select count(*)::integer as stored from user_touch_links",
  )) as [{ stored: number }];
  expect.soft(link!.created).toBe(stored + link!.abandoned! + link!.leaked! - (await recovered()));
  async function recovered(): Promise<number> {
    const { days } = await readCounts(ctx, linkStats, firstDate, lastDate + 1);
    return [...days.values()].reduce((sum, day) => sum + (day.breakdowns.leaked?.recovered ?? 0), 0);
  }

  const kept = await house.query<{ code: string; uid: string; kind: string; parent: string | null; child: boolean }>(
    `select link.code, click.uid, click.track_type as kind, parent.uid as parent, click.child_known as child
     from user_touch_link_clicks as click join user_touch_links as link on link.id = click.user_touch_link_id
     left join user_touch_link_clicks as parent on parent.id = click.parent_id`,
  );
  const lasting = await house.query<{ code: string; at: number }>(
    "select code, extract(epoch from created_at)::float8 as at from user_touch_links",
  );
  const since = new Map(lasting.map(({ code, at }) => [code, at]));
  // Clicks of a link that was given up went with it, also when another one got its code later.
  const expected = population.clicks.filter((click) => click.counts && click.at >= (since.get(click.code) ?? Infinity));
  const landed = kept.filter(({ kind }) => kind === "on_click");
  expect.soft(landed.map(({ uid }) => uid).sort()).toEqual(expected.map(({ uid }) => uid).sort());
  const signedIn = expected.filter(({ login }) => login).map(({ uid }) => uid);
  expect
    .soft(
      kept
        .filter(({ kind }) => kind === "post_login")
        .map(({ parent }) => parent)
        .sort(),
    )
    .toEqual(signedIn.sort());
  expect
    .soft(
      landed
        .filter(({ child }) => child)
        .map(({ uid }) => uid)
        .sort(),
    )
    .toEqual(signedIn);
  expect.soft(signedIn.length).toBeGreaterThan(0);
  expect.soft(link!.robots).toBeGreaterThan(0);
  await expectOrder(ctx);
  if (process.env.CARILLON_SIM_PROGRESS !== undefined)
    process.stderr.write(
      `people: ${JSON.stringify({ ...population.done, ...weather.struck, touches, link, reminder })}\n`,
    );
});

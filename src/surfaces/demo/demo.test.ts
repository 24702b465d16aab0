import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { domains } from "../../domains.ts";
import { startSandbox } from "../../infrastructure/sandbox/service.ts";
import { settings as sandboxSettings } from "../../infrastructure/sandbox/settings.ts";
import { jobKeys } from "../../jobs/index.ts";
import { audit, Catalogue } from "../../kernel/keyspace/index.ts";
import {
  brokenBalances,
  calendarOf,
  isoDate,
  readCounts,
  type StatsFamily,
} from "../../mechanisms/dated-counters/index.ts";
import { DiskLayer } from "../../mechanisms/layered-cache/index.ts";
import { linkStats } from "../../messaging/links/stats.ts";
import { reminderStats } from "../../messaging/reminders/stats.ts";
import { touchQueueLength } from "../../messaging/touch/service.ts";
import { touchSendStats } from "../../messaging/touch/stats.ts";
import { createUser } from "../../people/users/service.ts";
import { smsSettings } from "../../providers/settings.ts";
import { houseSettings } from "../settings.ts";
import { createDemoApp, joined } from "./app.ts";
import { personAt } from "./cast.ts";
import { daysWithoutHistory } from "./days.ts";
import { fillHistory, refuseWhileFilling } from "./history.ts";
import { startDemo } from "./living.ts";
import { whyNoDemo } from "./permission.ts";
import { timeLeftBehind } from "./scratch.ts";
import { settings } from "./settings.ts";

let house: RoomsHouse;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "carillon-demo-test-"));
  house = await openRooms({
    rooms: domains.filter(({ name }) => !["users", "access", "operations"].includes(name)),
    settings: [
      [houseSettings.dataDir, folder],
      [sandboxSettings.port, 0],
      [sandboxSettings.smtpPort, 0],
    ],
  });
}, 120_000);
beforeEach(async () => {
  await house.clear(...families.map(({ table }) => table), "stat_rotations", "message_steps");
  await house.query("delete from touch_points where event_slug <> 'daily_reminder'");
});
afterAll(async () => {
  await house.close();
  rmSync(folder, { recursive: true, force: true });
});

const families: readonly StatsFamily[] = domains.flatMap(({ stats = [] }) => stats);
const TABLES = [
  ...["users", "touch_points", "user_email_addresses", "user_phone_numbers", "user_push_tokens"],
  ...["user_daily_reminders", "user_daily_reminder_settings", "daily_reminder_settings_log", "message_steps"],
  ...["user_touches", "user_touch_links", "user_touch_link_clicks", "stat_rotations", touchSendStats.table],
];

/** Everything in these tables, in a form that two moments can be compared by. */
async function everything(): Promise<Readonly<Record<string, string>>> {
  const rows = await Promise.all(
    TABLES.map(async (table) => {
      const [row] = await house.query<{ digest: string }>(
        `select count(*) || ' ' || coalesce(md5(string_agg(t::text, ',' order by t::text)), '') as digest from ${table} as t`,
      );
      return [table, row!.digest] as const;
    }),
  );
  return Object.fromEntries(rows);
}

/** The counts of all days together; every day must add up. */
async function sums(family: StatsFamily): Promise<Readonly<Record<string, number>>> {
  const today = calendarOf(house.ctx).unixDate(house.base.clock.now());
  const { days } = await readCounts(house.ctx, family, today - 60, today + 3);
  const total: Record<string, number> = {};
  for (const { counts } of days.values()) {
    expect(brokenBalances(family.balances, counts)).toEqual([]);
    for (const [event, count] of Object.entries(counts)) total[event] = (total[event] ?? 0) + count;
  }
  return total;
}

test("an empty database gets an app with people on every channel in several zones, and a second time changes nothing", async () => {
  const made = await createDemoApp(house.ctx, 20);
  expect(made).toMatchObject({ created: 20 });
  const before = await everything();
  expect(await createDemoApp(house.ctx, 20)).toMatchObject({ created: 0 });
  expect(await everything()).toEqual(before);
  const [{ zones, earliest }] = (await house.query<{ zones: number; earliest: number }>(
    "select count(distinct timezone)::integer as zones, extract(epoch from min(created_at))::float8 as earliest from users",
  )) as [{ zones: number; earliest: number }];
  expect(zones).toBeGreaterThan(5);
  expect(house.base.clock.now() - earliest).toBeGreaterThan(30 * 86_400);
  for (const table of ["user_email_addresses", "user_phone_numbers", "user_push_tokens", "user_daily_reminders"])
    expect((await house.query(`select 1 from ${table}`)).length).toBeGreaterThan(5);
  const points = await house.query<{ slug: string }>("select event_slug as slug from touch_points");
  expect(points.map(({ slug }) => slug)).toEqual(
    expect.arrayContaining(["welcome", "weekly_summary", "friend_joined"]),
  );
  await house.audit();
});

test("a database that somebody uses is left alone, and history refuses to draw its people in", async () => {
  await createUser(house.ctx, domains, { sub: "somebody-real" });
  expect(await createDemoApp(house.ctx, 5)).toBeUndefined();
  expect(await joined(house.ctx)).toEqual([]);
  expect(await startDemo(house.ctx, { founders: 5 })).toBeUndefined();
  await expect(fillHistory(house.ctx, { days: 2, people: 5 })).rejects.toMatchObject({ code: "demo_database_in_use" });
});

test("there is no demo when it is turned off or a provider is real", async () => {
  const off = house.process({ settings: [[settings.demo, "off"]] });
  const real = house.process({ settings: [[smsSettings.provider, ["twilio"]]] });
  expect(whyNoDemo(house.ctx.config)).toBeUndefined();
  for (const [ctx, why] of [
    [off, "CARILLON_DEMO"],
    [real, "CARILLON_SMS_PROVIDER"],
  ] as const) {
    expect(whyNoDemo(ctx.config)).toContain(why);
    expect(await startDemo(ctx, { founders: 5 })).toBeUndefined();
    await expect(fillHistory(ctx, { days: 2, people: 5 })).rejects.toMatchObject({ code: "demo_not_possible" });
  }
  expect(await house.query("select 1 from users")).toEqual([]);
});

test("history is not filled in beside a worker, and no worker starts while it is", async () => {
  const { commands, topology } = house.base.redis;
  await commands.zadd(topology.key(jobKeys.workers()), house.base.clock.now() - 5, "crl_wrk_alive");
  await expect(fillHistory(house.ctx, { days: 2, people: 5 })).rejects.toMatchObject({ code: "demo_beside_worker" });
  await commands.zadd(topology.key(jobKeys.workers()), house.base.clock.now() - 3600, "crl_wrk_alive");
  let refused = 0;
  const progress = () => {
    try {
      refuseWhileFilling(house.ctx);
    } catch (error) {
      if ((error as { code?: string }).code === "demo_under_way") refused += 1;
    }
  };
  await fillHistory(house.ctx, { days: 1, people: 3, progress });
  expect(refused).toBeGreaterThan(0);
  expect(() => refuseWhileFilling(house.ctx)).not.toThrow();
}, 60_000);

test("three days of a small crowd are lived through by the real pipeline, add up, and a second run adds nothing", async () => {
  // An instance that was asked for charts of an empty house keeps them until midnight.
  const disk = new DiskLayer(join(folder, "cache", "all-0"), house.base.clock);
  disk.write("charts", "daily_touch_send:1:91", { value: Buffer.from("{}"), checkedAt: 0, expiresAt: Infinity });
  await disk.close();
  const report = await fillHistory(house.ctx, { days: 3, people: 12, seed: 7 });
  const reopened = new DiskLayer(join(folder, "cache", "all-0"), house.base.clock);
  expect(reopened.read("charts", "daily_touch_send:1:91")).toBeUndefined();
  await reopened.close();
  expect(report).toMatchObject({ created: 12, failures: [], alreadyThere: 0, lived: [{ days: 3 }] });
  const touches = await sums(touchSendStats);
  for (const family of families) await sums(family);
  expect(touches.attempted).toBe(touches.queued);
  expect(touches.reachable).toBeGreaterThan(15);
  const reminders = await sums(reminderStats);
  expect(reminders.sent).toBeGreaterThan(10);
  // A beat that is too long would make them late.
  expect(reminders.skipped_sending ?? 0).toBeLessThan(reminders.sent! / 10);
  expect((await sums(linkStats)).created).toBeGreaterThan(5);
  expect((await house.query("select 1 from user_touch_link_clicks")).length).toBe(
    (await house.query("select 1 from user_touch_link_clicks where clicked_at is not null")).length,
  );
  const told = report.messages.reduce((sum, { count }) => sum + count, 0);
  expect(told).toBeGreaterThanOrEqual(touches.reachable!);
  const [{ latest }] = (await house.query<{ latest: number }>(
    "select extract(epoch from max(at))::float8 as latest from message_steps",
  )) as [{ latest: number }];
  expect(latest).toBeLessThanOrEqual(house.base.clock.now());
  const order = { invariants: domains.flatMap((room) => room.invariants ?? []), deep: true };
  expect((await audit(house.ctx, new Catalogue(domains), order)).findings).toEqual([]);

  const before = await everything();
  const again = await fillHistory(house.ctx, { days: 3, people: 12, seed: 7 });
  expect(again).toMatchObject({ created: 0, alreadyThere: 3, lived: [], runs: 0 });
  expect(await everything()).toEqual(before);

  // A house that has a present gets the days before it, and keeps the present.
  const longer = await fillHistory(house.ctx, { days: 4, people: 12, seed: 7 });
  expect(longer).toMatchObject({ failures: [], alreadyThere: 3, lived: [{ days: 1 }] });
  expect((await sums(touchSendStats)).queued).toBeGreaterThan(touches.queued!);
  expect((await audit(house.ctx, new Catalogue(domains), order)).findings).toEqual([]);
}, 120_000);

/**
 * Who was sent two reminders on one channel within hours; the hours of two days are farther apart. When they arrived says
 * nothing: some receipts are lost, and their mails are believed to have arrived a day later.
 */
async function remindedTwice(): Promise<readonly object[]> {
  const reminders = `
    select touches.user_id, touches.channel, touches.send_uid, min(steps.at) as sent_at
    from user_touches as touches
    join touch_points as points on points.id = touches.touch_point_id and points.event_slug = 'daily_reminder'
    join message_steps as steps on steps.uid = touches.send_uid and steps.step = 'dispatched'
    group by touches.user_id, touches.channel, touches.send_uid`;
  expect((await house.query(reminders)).length).toBeGreaterThan(0);
  return house.query(`
    with reminders as (${reminders})
    select one.user_id, one.channel, one.sent_at::text as first, other.sent_at::text as second
    from reminders as one
    join reminders as other on other.user_id = one.user_id and other.channel = one.channel
      and other.send_uid <> one.send_uid and other.sent_at between one.sent_at and one.sent_at + interval '8 hours'`);
}

test("a history that is stopped early ends with a whole day, adds up, and is gone on with by the next run", async () => {
  const stopping = new AbortController();
  const progress = (hours: number) => void (hours >= 8 && stopping.abort());
  const report = await fillHistory(house.ctx, { days: 3, people: 6, progress, signal: stopping.signal });
  expect(report.failures).toEqual([]);
  const today = calendarOf(house.ctx).unixDate(house.base.clock.now());
  const first = isoDate(today - 2);
  expect(report.lived).toEqual([{ from: first, to: first, days: 1 }]);
  for (const family of families) await sums(family);
  const order = { invariants: domains.flatMap((room) => room.invariants ?? []), deep: true };
  expect((await audit(house.ctx, new Catalogue(domains), order)).findings).toEqual([]);
  expect((await daysWithoutHistory(house.ctx, 3)).gaps).toEqual([{ from: today - 1, to: today }]);
  expect(existsSync(join(folder, "demo"))).toBe(false);

  const rest = await fillHistory(house.ctx, { days: 3, people: 6 });
  expect(rest).toMatchObject({ failures: [], alreadyThere: 1, lived: [{ from: isoDate(today - 1), days: 2 }] });
  expect(await remindedTwice()).toEqual([]);
}, 60_000);

test("a history whose process died is gone on with where its clock stood, and repeats nothing", async () => {
  const dies = (hours: number) => {
    if (hours >= 30) throw new Error("killed");
  };
  await expect(fillHistory(house.ctx, { days: 3, people: 8, progress: dies })).rejects.toThrow("killed");
  const diedAt = timeLeftBehind(join(folder, "demo"))!;
  const [before] = await house.query<{ latest: number; touches: number }>(
    "select extract(epoch from max(created_at))::float8 as latest, count(*)::integer as touches from user_touches",
  );
  expect(before!.touches).toBeGreaterThan(0);
  expect(diedAt).toBeGreaterThan(before!.latest - 1);

  const report = await fillHistory(house.ctx, { days: 3, people: 8 });
  expect(report).toMatchObject({ failures: [], created: 0, lived: [{ days: 3 }] });
  expect(timeLeftBehind(join(folder, "demo"))).toBeUndefined();
  expect(await remindedTwice()).toEqual([]);
  // What was written before the death was written once, and the rest after it.
  const [again] = await house.query<{ touches: number; counted: number }>(
    `select count(*)::integer as touches from user_touches where extract(epoch from created_at) <= ${before!.latest}`,
  );
  expect(again!.touches).toBe(before!.touches);
  for (const family of families) await sums(family);
  const order = { invariants: domains.flatMap((room) => room.invariants ?? []), deep: true };
  expect((await audit(house.ctx, new Catalogue(domains), order)).findings).toEqual([]);
}, 90_000);

test("a crowd gives the house something to do until the process ends, and nothing afterwards", async () => {
  const close = await startSandbox(house.ctx, { web: true, worker: true });
  const { clock } = house.base;
  const pass = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 5) {
      await clock.advance(5);
      await house.base.redis.commands.ping();
    }
  };
  const asleep = clock.sleeping;
  const demo = (await startDemo(house.ctx, { founders: 6 }))!;
  expect(demo.lines.join("\n")).toContain("CARILLON_DEMO=off");
  // The first minute shows a bit of everything.
  await pass(60);
  await eventually(() => (demo.crowd.done.joined ?? 0) >= 2 && demo.crowd.done.sessions! >= 6);
  await eventually(async () => {
    await pass(60);
    return (await touchQueueLength(house.ctx)) >= 8;
  });
  await demo.stop();
  const queued = await touchQueueLength(house.ctx);
  expect(demo.crowd.people.length).toBeGreaterThanOrEqual(6);
  await pass(1200);
  expect(await touchQueueLength(house.ctx)).toBe(queued);
  expect(clock.sleeping).toBe(asleep);
  await close();
});

test("everything about a person follows from their number, and no two share an address", () => {
  const people = Array.from({ length: 400 }, (_, number) => personAt(number));
  const addresses = people.flatMap(({ sub, email, phone, token }) => [sub, email, phone, token].filter(Boolean));
  expect(new Set(addresses).size).toBe(addresses.length);
  expect(personAt(17)).toEqual(people[17]);
});

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { VirtualClock } from "../../kernel/clock.ts";
import { calendarIn, isoDate } from "../../mechanisms/dated-counters/index.ts";
import { addPhones } from "../contacts/service.ts";
import { keys as linkKeys } from "../links/keys.ts";
import { PERSON } from "../links/links.fixture.ts";
import { createLinks, linkCallbacks } from "../links/service.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { send as sendTouchesJob } from "../touch/jobs.ts";
import { keys as touchKeys } from "../touch/keys.ts";
import { newTouchUid, sendTouches } from "../touch/service.ts";
import { rooms } from "../touch/touch.fixture.ts";
import { forecast } from "./forecast.ts";
import { reminders } from "./index.ts";
import { assignTime, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { reminderStats } from "./stats.ts";

/** Wednesday, 2026-11-18 00:00 in Los Angeles. */
const BEGINNING = 1_794_988_800;
const HOUR = 3_600;
const calendar = calendarIn("America/Los_Angeles");

let today = 0;
let midnight = 0;
let house: RoomsHouse;
beforeAll(async () => {
  house = await openRooms({ rooms: [...rooms, reminders], start: BEGINNING, persistence: "always" });
});
afterAll(() => house.close());
/** Time only goes on, so every test has a day of its own, which begins now. */
beforeEach(async () => {
  await house.clear("suppressed_phone_numbers", "user_touches");
  today = calendar.unixDate(house.ctx.clock.now()) + 1;
  midnight = calendar.startOf(today);
  await house.base.clock.advance(midnight - house.ctx.clock.now());
});

let people = 0;
async function person(sub: string, timezone: string) {
  await house.person(sub, { timezone, given_name: sub });
  const phoneNumber = `+1415555${String(1000 + ++people).slice(-4)}`;
  await addPhones(house.ctx, [
    { userSub: sub, verified: true, phoneNumber, receivesNotifications: true, cause: "verify" },
  ]);
}
async function as(sub: string, method: string, path: string, body?: object) {
  const minted = await house.call("POST", `/api/1/admin/users/${sub}/access_token`, { body: {} });
  return house.call(method, `/api/1/users/me${path}`, { token: minted.json().access_token, ...(body ? { body } : {}) });
}
const choose = (sub: string, start: number, end: number) =>
  as(sub, "POST", "/attributes/notification_time", {
    channel: "sms",
    days_of_week: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    time_range: { type: "explicit", start, end },
    timezone: "America/Los_Angeles",
    timezone_technique: "app",
  });
const queued = async () => {
  const flat = await house.ctx.redis.commands.zrange(keys.queued(), 0, "-1", "WITHSCORES");
  return flat.flatMap((raw, at) => (at % 2 === 0 ? [{ ...JSON.parse(raw), at: Number(flat[at + 1]) }] : []));
};
const at = (seconds: number) => house.base.clock.advance(midnight + seconds - house.ctx.clock.now());
/** Lets time pass as the schedule would: assigning every quarter of an hour, sending in between. */
async function pass(hours: number): Promise<void> {
  for (let quarter = 0; quarter < hours * 4; quarter++) {
    await house.run(assignTime);
    await house.base.clock.advance(450);
    await house.run(send);
    await house.base.clock.advance(450);
    await house.run(send);
  }
}
/** Every key with its contents, without those that only live for a while. */
async function everything(): Promise<Readonly<Record<string, unknown>>> {
  const { commands } = house.ctx.redis;
  // Redis may keep hashes and sets in another order after it has read them again.
  const read: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
    string: (name) => commands.get(name),
    list: (name) => commands.lrange(name, 0, -1),
    hash: (name) => commands.hgetall(name),
    set: async (name) => (await commands.smembers(name)).sort(),
    zset: (name) => commands.zrange(name, 0, "-1", "WITHSCORES"),
  };
  const names = (await commands.keys("*")).sort();
  const found = await Promise.all(
    names.map(async (name) => {
      const [left, type] = await Promise.all([commands.pttl(name), commands.type(name)]);
      return left === -1 ? [[name, await read[type]!(name)] as const] : [];
    }),
  );
  return Object.fromEntries(found.flat());
}

test("when the clock jumps back nobody gets a second time, nothing is sent early, and all goes on when it is right again", async () => {
  for (const sub of ["ada", "bob"]) {
    await person(sub, "America/Los_Angeles");
    await choose(sub, 8 * HOUR, 9 * HOUR);
  }
  await at(8 * HOUR - 600);
  await house.run(assignTime);
  const [times, cursor] = [await queued(), await house.ctx.redis.commands.hgetall(progress())];
  expect(times).toHaveLength(2);
  const back = house.process({ clock: new VirtualClock(midnight + 5 * HOUR) });
  await house.run(assignTime, back);
  await house.run(send, back);
  expect([await queued(), await house.ctx.redis.commands.hgetall(progress())]).toEqual([times, cursor]);
  const longAgo = house.process({ clock: new VirtualClock(midnight - 30 * HOUR) });
  await house.run(assignTime, longAgo);
  await house.run(send, longAgo);
  expect(await queued()).toEqual(times);
  expect(await house.ctx.redis.commands.hgetall(progress())).toEqual(cursor);
  await pass(3);
  const { events } = await house.counts(reminderStats, today);
  expect(events).toMatchObject({ time_assigned: 2, sends_attempted: 2, sent: 2 });
  await house.audit();
  function progress() {
    return keys.progress({ tz: "America/Los_Angeles", unix_date: today });
  }
});

test("when the clock jumps forward by a day, what is too late is counted and left out, without a burst", async () => {
  for (const sub of ["ada", "bob"]) {
    await person(sub, "America/Los_Angeles");
    await choose(sub, 8 * HOUR, 9 * HOUR);
  }
  await at(HOUR);
  await house.run(assignTime);
  expect(await queued()).toEqual([]);
  await at(25 * HOUR);
  await house.run(assignTime);
  await house.run(send);
  const { events, words } = await house.counts(reminderStats, today);
  expect(events).toEqual({ attempted: 2, overdue: 2, skipped_assigning_time: 2 });
  expect(words.skipped_assigning_time).toEqual({ sms: 2 });
  expect(await house.length(touchKeys.toSend())).toBe(0);
});

test("a Redis that dies and comes back with its data has every queue, purgatory, waiting touch, link and click, and all of it ends", async () => {
  await person("ada", "America/Los_Angeles");
  await choose("ada", 8 * HOUR, 9 * HOUR);
  await at(8 * HOUR - 600);
  await house.run(assignTime);
  const uid = newTouchUid();
  const [link] = await createLinks(house.ctx, [{ touchUid: uid, page: { identifier: "home" } }]);
  const { success: successCallback, failure: failureCallback } = linkCallbacks([link!.code]);
  const touch = {
    userSub: "ada",
    slug: "daily_reminder",
    channel: "sms" as const,
    parameters: { name: "Ada", time_of_day: "morning", url: link!.shortUrl },
  };
  await sendTouches(house.ctx, [{ ...touch, uid, successCallback, failureCallback }]);
  await house.run(sendTouchesJob);
  await house.call("POST", "/api/1/notifications/complete", { token: "", body: { code: link!.code }, headers: PERSON });
  // Runs that died with a touch and a reminder in their hands.
  await sendTouches(house.ctx, [touch]);
  const { commands } = house.ctx.redis;
  await commands.lmove(touchKeys.toSend(), touchKeys.sendPurgatory(), "LEFT", "RIGHT");
  const [member, score] = await commands.zpopmin(keys.queued());
  await commands.zadd(keys.sendPurgatory(), score!, member!);
  await house.base.clock.advance(HOUR);
  const before = await everything();
  await house.base.server.crashAndRestart();
  expect(await everything()).toEqual(before);
  await house.run(send);
  await house.run(sendTouchesJob);
  const texts = (await commands.lrange(smsKeys.toSend(), 0, -1)).map((raw) => JSON.parse(raw).uid);
  expect(new Set(texts).size).toBe(3);
  expect(await house.length(touchKeys.pending())).toBe(2);
  expect((await house.counts(reminderStats, today)).events).toMatchObject({ sends_attempted: 1, sent: 1 });
  expect(await house.length(linkKeys.clicks({ code: link!.code }))).toBe(1);
  await house.audit();
});

test("a purgatory that a finished run left behind is found by the audit, and one of a run that was stopped is not", async () => {
  const { commands } = house.ctx.redis;
  await house.run(send);
  await house.run(sendTouchesJob);
  await commands.zadd(keys.sendPurgatory(), 1, JSON.stringify({ uid: "crl_udr_x", unix_date: today }));
  await expect(house.audit()).rejects.toThrow("daily_reminders:send_purgatory is not empty");
  await commands.hset(keys.sendReport(), "stop_reason", "backpressure");
  await house.audit();
  await commands.hset(keys.sendReport(), "stop_reason", "list_exhausted", "started_at", house.ctx.clock.now() + 1);
  await house.audit();
  await commands.del(keys.sendPurgatory());
});

test("whoever has just come is left alone for as long as the installation wants, and sees so in the days ahead", async () => {
  await at(7 * HOUR);
  await person("ada", "America/Los_Angeles");
  await choose("ada", 8 * HOUR, 9 * HOUR);
  const quiet = house.process({ settings: [[settings.quietFirst, 12 * HOUR]] });
  expect((await forecast(house.ctx, "ada")).items).toHaveLength(14);
  expect((await forecast(quiet, "ada")).items[0]).toMatchObject({ date: isoDate(today + 1), earliest_local: "08:00" });
  await at(8 * HOUR - 600);
  await house.run(assignTime);
  await at(9 * HOUR);
  await house.run(send, quiet);
  const { events, words } = await house.counts(reminderStats, today);
  expect([events.sent, words.skipped_sending]).toEqual([undefined, { sms: 1 }]);
  await at(32 * HOUR - 600);
  await house.run(assignTime);
  await at(33 * HOUR);
  await house.run(send, quiet);
  expect((await house.counts(reminderStats, today + 1)).events).toMatchObject({ sends_attempted: 1, sent: 1 });
  await house.audit();
});

test("whoever moves or chooses later hours while their reminder waits keeps its time, and counts once", async () => {
  for (const [sub, zone] of [
    ["ada", "America/Los_Angeles"],
    ["bob", "America/Los_Angeles"],
  ] as const) {
    await person(sub, zone);
    await choose(sub, 8 * HOUR, 14 * HOUR);
  }
  await person("eve", "Pacific/Honolulu");
  await at(8 * HOUR - 600);
  await house.run(assignTime);
  const times = await queued();
  expect(times).toHaveLength(2);
  // Hawaii is two hours behind, and its same day comes to these hours again.
  await as("ada", "PATCH", "", { timezone: "Pacific/Honolulu" });
  await choose("bob", 9 * HOUR, 14 * HOUR);
  // One of them is being sent at that moment.
  await house.ctx.redis.commands.zrem(keys.queued(), JSON.stringify({ uid: times[0].uid, unix_date: today }));
  await house.ctx.redis.commands.zadd(
    keys.sendPurgatory(),
    times[0].at,
    JSON.stringify({ uid: times[0].uid, unix_date: today }),
  );
  await at(10 * HOUR - 600);
  await house.run(assignTime);
  const mine = async () => (await queued()).filter(({ uid }) => times.some((each) => each.uid === uid));
  expect(await mine()).toEqual(times.slice(1));
  await house.audit();
  await pass(8);
  const { events } = await house.counts(reminderStats, today);
  expect(events.time_assigned).toBe(events.sends_attempted);
  expect(events.attempted).toBe(events.time_assigned! + (events.skipped_assigning_time ?? 0));
  await house.audit();
}, 120_000);

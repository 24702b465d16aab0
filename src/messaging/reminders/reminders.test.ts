import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { MortalSql } from "../../../test/harness/chaos-sql.ts";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { calendarIn, sweepDeltas } from "../../mechanisms/dated-counters/index.ts";
import { addEmails, addPhones, registerPushTokens } from "../contacts/service.ts";
import { leakedLinkDetection } from "../links/jobs.ts";
import { keys as linkKeys } from "../links/keys.ts";
import { keys as touchKeys } from "../touch/keys.ts";
import { touchSettings } from "../touch/service.ts";
import { rooms } from "../touch/touch.fixture.ts";
import { reminders } from "./index.ts";
import { assignTime, recheck, send } from "./jobs.ts";
import { countKeys, keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { registrationStats, reminderStats } from "./stats.ts";
import { weekdayBit } from "./window.ts";

/** Wednesday, 2026-11-18 00:00 in Los Angeles. */
const BEGINNING = 1_794_988_800;
const HOUR = 3_600;
const calendar = calendarIn("America/Los_Angeles");

/** The day that a test begins on, and its first instant. */
let today = 0;
let midnight = 0;

let house: RoomsHouse;
beforeAll(async () => {
  house = await openRooms({ rooms: [...rooms, reminders], start: BEGINNING });
});
afterAll(() => house.close());
beforeEach(begin);

/** Time only goes on, so every test has a day of its own, which begins now. */
async function begin(): Promise<void> {
  await house.clear("suppressed_emails", "suppressed_phone_numbers");
  today = calendar.unixDate(house.ctx.clock.now()) + 1;
  midnight = calendar.startOf(today);
  await house.base.clock.advance(midnight - house.ctx.clock.now());
}

let people = 0;
async function person(sub: string, timezone: string | null, channels: readonly ("email" | "sms" | "push")[] = ["sms"]) {
  await house.person(sub, timezone === null ? {} : { timezone, given_name: sub });
  const common = { userSub: sub, verified: true };
  const phoneNumber = `+1415555${String(1000 + ++people).slice(-4)}`;
  if (channels.includes("sms"))
    await addPhones(house.ctx, [{ ...common, phoneNumber, receivesNotifications: true, cause: "verify" }]);
  if (channels.includes("email"))
    await addEmails(house.ctx, [{ ...common, email: `${sub}@example.com`, cause: "identity" }]);
  if (channels.includes("push"))
    await registerPushTokens(house.ctx, [{ userSub: sub, token: `ExponentPushToken[${sub}-token]`, platform: "ios" }]);
}
/** Access tokens do not live as long as these tests, so every call has one of its own. */
async function as(sub: string, method: string, path: string, body?: object) {
  const minted = await house.call("POST", `/api/1/admin/users/${sub}/access_token`, { body: {} });
  return house.call(method, `/api/1/users/me${path}`, { token: minted.json().access_token, ...(body ? { body } : {}) });
}
const choose = (sub: string, start: number, end: number, more: object = {}) =>
  as(sub, "POST", "/attributes/notification_time", {
    channel: "sms",
    days_of_week: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    time_range: { type: "explicit", start, end },
    timezone: "America/Los_Angeles",
    timezone_technique: "app",
    ...more,
  });
const queued = async () => {
  const flat = await house.ctx.redis.commands.zrange(keys.queued(), 0, "-1", "WITHSCORES");
  return flat.flatMap((raw, at) => (at % 2 === 0 ? [{ ...JSON.parse(raw), at: Number(flat[at + 1]) }] : []));
};
const touches = async () => {
  const raws = await house.ctx.redis.commands.lrange(touchKeys.toSend(), 0, -1);
  await house.ctx.redis.commands.del(touchKeys.toSend());
  return raws.map((raw) => JSON.parse(raw));
};
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
const at = (seconds: number) => house.base.clock.advance(midnight + seconds - house.ctx.clock.now());

test("somebody in each of three far zones gets one reminder a local day, inside their hours, for three days", async () => {
  const zones = { kir: "Pacific/Kiritimati", lax: "America/Los_Angeles", pago: "Pacific/Pago_Pago" };
  for (const [sub, zone] of Object.entries(zones)) {
    await person(sub, zone);
    await choose(sub, 8 * HOUR, 9 * HOUR, { timezone: zone });
  }
  const got = new Map<string, string[]>();
  for (let day = 0; day < 3; day++) {
    for (let step = 0; step < 24; step++) {
      await pass(1);
      for (const { user_sub, queued_at } of await touches()) {
        const zone = zones[user_sub as keyof typeof zones];
        const there = calendarIn(zone);
        const date = there.unixDate(queued_at);
        const hour = (queued_at - there.startOf(date)) / HOUR;
        expect(hour).toBeGreaterThanOrEqual(8);
        expect(hour).toBeLessThanOrEqual(9.3);
        got.set(user_sub, [...(got.get(user_sub) ?? []), String(date)]);
      }
    }
    const open = await house.ctx.redis.commands.keys("daily_reminders:progress:timezones:*");
    expect(open.length).toBeLessThanOrEqual(3);
  }
  for (const dates of got.values()) {
    expect(new Set(dates).size).toBe(dates.length);
    expect(dates.length).toBe(3);
  }
  expect(got.size).toBe(3);
  await house.run(leakedLinkDetection);
  await house.audit();
}, 180_000);

test("a window that began is used from now on, one that ended within the hour at once, and an older one not at all", async () => {
  await person("ada", "America/Los_Angeles");
  await choose("ada", 8 * HOUR, 9 * HOUR);
  const when = async (seconds: number) => {
    await house.ctx.redis.commands.del(
      keys.queued(),
      ...(await house.ctx.redis.commands.keys("daily_reminders:progress:*")),
    );
    await at(seconds);
    await house.run(assignTime);
    return (await queued()).filter(({ unix_date }) => unix_date === today).map((one) => one.at - midnight);
  };
  const [first] = await when(8.5 * HOUR);
  expect(first).toBeGreaterThanOrEqual(8.5 * HOUR);
  expect(first).toBeLessThanOrEqual(9 * HOUR);
  expect(await when(9 * HOUR + 59 * 60)).toEqual([9 * HOUR + 59 * 60]);
  expect(await when(10 * HOUR + 60)).toEqual([]);
  const { events } = await house.counts(reminderStats, today);
  expect(events).toMatchObject({ attempted: 3, overdue: 3, time_assigned: 2, skipped_assigning_time: 1 });
  const last = (await house.call("GET", "/api/1/admin/daily_reminders/last_assign_time_job")).json();
  expect(last).toMatchObject({ stale: 1, stop_reason: "list_exhausted" });
});

test("when clocks change, hours count from midnight: an eight o'clock reminder comes at nine in spring, at seven in autumn", async () => {
  const local = (time: number) =>
    new Intl.DateTimeFormat("en-GB", { timeZone: "America/Los_Angeles", hour: "2-digit", minute: "2-digit" }).format(
      time * 1000,
    );
  const spring = calendar.startOf(calendar.unixDate(Date.UTC(2027, 2, 14, 20) / 1000));
  const autumn = calendar.startOf(calendar.unixDate(Date.UTC(2027, 10, 7, 20) / 1000));
  expect([local(spring + 28_800), local(autumn + 28_800)]).toEqual(["09:00", "07:00"]);
  await person("ada", "America/Los_Angeles");
  await choose("ada", 28_800, 28_800);
  for (const day of [spring, autumn]) {
    await house.ctx.redis.commands.del(
      keys.queued(),
      ...(await house.ctx.redis.commands.keys("daily_reminders:progress:*")),
    );
    await house.base.clock.advance(day + 27_000 - house.ctx.clock.now());
    await house.run(assignTime);
    expect((await queued()).map((one) => local(one.at))).toContain(local(day + 28_800));
    const { items } = (await as("ada", "GET", "/daily_reminders/next")).json();
    expect(items[0]).toMatchObject({ clocks_change: true, earliest_local: local(day + 28_800) });
  }
});

test("a window over midnight belongs to the day it began on", async () => {
  await person("ada", "America/Los_Angeles");
  const friday = Array.from({ length: 7 }, (_, ahead) => today + ahead).find((date) => weekdayBit(date) === 32)!;
  await choose("ada", 82_800, 90_000, { days_of_week: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"] });
  await house.base.clock.advance(calendar.startOf(friday) + 82_800 - 1_200 - house.ctx.clock.now());
  await pass(30);
  const { items } = (await as("ada", "GET", "/daily_reminders/next")).json();
  expect(items.map(({ weekday }: { weekday: string }) => weekday)).not.toContain("Saturday");
  expect((await touches()).length).toBe(1);
});

test("a person who moves to another zone on the same day is not reminded twice for that day", async () => {
  await person("ada", "Asia/Tokyo");
  await choose("ada", 8 * HOUR, 9 * HOUR, { timezone: "Asia/Tokyo" });
  await pass(24);
  const before = (await touches()).length;
  await as("ada", "PATCH", "", { timezone: "America/Los_Angeles" });
  expect(await house.query("select timezone from user_daily_reminders")).toEqual([{ timezone: "America/Los_Angeles" }]);
  const dates = new Set<number>();
  for (let step = 0; step < 48; step++) {
    await pass(1);
    for (const { queued_at } of await touches()) dates.add(calendarIn("America/Los_Angeles").unixDate(queued_at));
  }
  expect(before).toBe(1);
  expect(dates.size).toBeGreaterThanOrEqual(1);
  const rows = await house.query<{ last_unix_date: number }>("select last_unix_date from user_daily_reminders");
  expect(rows[0]!.last_unix_date).toBeGreaterThan(today);
  await house.run(leakedLinkDetection);
  await house.audit();
}, 120_000);

test("a zone that nobody knows is skipped with a warning, and everybody else is reminded", async () => {
  await person("ada", "America/Los_Angeles");
  await person("bob", "America/Los_Angeles");
  await choose("ada", 8 * HOUR, 9 * HOUR);
  await house.query("update users set timezone = 'Mars/Olympus' where sub = 'bob'");
  await at(8 * HOUR);
  await pass(2);
  expect((await touches()).map(({ user_sub }) => user_sub)).toEqual(["ada"]);
  expect(house.ctx.alerts.recorded.some(({ identifier }) => identifier === "daily_reminders:unknown_zone")).toBe(true);
});

test("each channel carries its own links: a short one in texts, a second and long one that ends mails, none in notifications", async () => {
  await person("ada", "America/Los_Angeles", ["sms", "email", "push"]);
  await choose("ada", 8 * HOUR, 8 * HOUR + 60, { channel: "all" });
  await at(8 * HOUR - 600);
  await pass(1);
  const sent = new Map((await touches()).map((touch) => [touch.channel, touch]));
  const code = (url: string) => url.split("/l/")[1]!.length;
  expect(sent.get("push")!).toMatchObject({
    success_callback: null,
    event_parameters: { name: "ada", time_of_day: "morning" },
  });
  expect(code(sent.get("sms")!.event_parameters.url)).toBe(4);
  expect(code(sent.get("email")!.event_parameters.unsubscribe_url)).toBe(86);
  expect(sent.get("email")!.success_callback.kwargs.codes).toHaveLength(2);
  expect(await house.length(linkKeys.buffer())).toBe(3);
  const { events, words } = await house.counts(reminderStats, today);
  expect(events).toMatchObject({ sends_attempted: 3, sent: 3, links: 3 });
  expect(words.sent).toEqual({ sms: 1, email: 1, push: 1 });
  await house.audit();
});

test("a reminder whose registration is gone is lost, and one that is an hour late is left out", async () => {
  for (const sub of ["ada", "bob"]) {
    await person(sub, "America/Los_Angeles");
    await choose(sub, 8 * HOUR, 8 * HOUR + 60);
  }
  await at(8 * HOUR - 600);
  await house.run(assignTime);
  const { sms } = (await as("ada", "GET", "/daily_reminders")).json();
  expect((await as("ada", "DELETE", "/daily_reminders", { uid: sms.uid })).statusCode).toBe(204);
  expect((await as("ada", "DELETE", "/daily_reminders", { uid: sms.uid })).statusCode).toBe(404);
  await at(8 * HOUR + 61 * 60 + 60);
  await house.run(send);
  const { events, words } = await house.counts(reminderStats, today);
  expect(events).toMatchObject({ sends_attempted: 2, sends_lost: 1, skipped_sending: 1 });
  expect(words.skipped_sending).toEqual({ sms: 1 });
  expect((await house.counts(registrationStats)).words.unsubscribed).toEqual({ "sms:user": 1 });
});

test("while touches have no room reminders stay where they are, without links, and are sent later", async () => {
  await person("ada", "America/Los_Angeles");
  await person("bob", "America/Los_Angeles");
  for (const sub of ["ada", "bob"]) await choose(sub, 8 * HOUR, 8 * HOUR + 60);
  await at(8 * HOUR - 600);
  await house.run(assignTime);
  await at(8 * HOUR + 120);
  const ctx = house.process({ settings: [[touchSettings.queueLimit, 1]] });
  await house.run(send, ctx);
  expect([await house.length(keys.sendPurgatory()), await house.length(linkKeys.buffer())]).toEqual([1, 1]);
  expect((await house.call("GET", "/api/1/admin/daily_reminders/last_send_job")).json().stop_reason).toBe(
    "backpressure",
  );
  await house.run(send);
  expect((await touches()).length).toBe(2);
  await house.audit();
});

test("what somebody chose decides when they hear from us, on every channel, and is kept with its reasons", async () => {
  await person("ada", null, ["sms", "email", "push"]);
  expect((await as("ada", "GET", "/daily_reminder_settings")).json().email).toEqual({
    start: 21_600,
    end: 39_600,
    days: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    is_real: false,
  });
  await choose("ada", 72_000, 73_800, { days_of_week: ["Monday", "Wednesday", "Friday"] });
  const all = (await as("ada", "GET", "/daily_reminder_settings")).json();
  expect([all.sms.is_real, all.email, all.push]).toMatchObject([
    true,
    { start: 72_000, end: 73_800, days: ["Monday", "Wednesday", "Friday"], is_real: false },
    { start: 72_000, is_real: false },
  ]);
  const held = (await as("ada", "GET", "/daily_reminders")).json();
  expect(held.email).toMatchObject({ start_time: 72_000, day_of_week_mask: 42, destinations: ["ada@example.com"] });
  await choose("ada", 1, 2, { channel: "email", days_of_week: [] });
  expect((await as("ada", "GET", "/daily_reminders")).json().email).toBeNull();
  await choose("ada", 1, 2, { channel: "email" });
  const { words } = await house.counts(registrationStats);
  expect(words.subscribed).toMatchObject({ "email:update_notification_time": 1, "email:email_added": 1 });
  expect(words.unsubscribed).toEqual({ "email:update_notification_time": 1 });
  const log = (await house.call("GET", "/api/1/admin/users/ada/daily_reminder_settings_log")).json();
  expect(log.items).toHaveLength(3);
  expect(log.items[0].reason).toMatchObject({ source: "user", old: { mask: 0 } });
  const shown = (await house.call("GET", "/api/1/admin/users/ada/daily_reminders")).json();
  expect(Object.keys(shown.reminders)).toEqual(Object.keys(shown.settings));
  expect(shown.settings.email.days).toHaveLength(shown.reminders.email.day_of_week_mask === 127 ? 7 : 0);
  expect((await house.call("GET", "/api/1/admin/users/nobody/daily_reminders")).statusCode).toBe(404);
  for (const bad of [
    { timezone: "Nowhere" },
    { time_range: { type: "explicit", start: 5, end: 4 } },
    { channel: "fax" },
  ])
    expect((await choose("ada", 1, 2, bad)).statusCode).toBe(422);
  expect((await house.call("GET", "/api/1/admin/daily_reminders/counts")).json()).toEqual({
    email: 1,
    sms: 1,
    push: 1,
  });
  await house.audit();
});

test("reminders come and go with what makes somebody reachable", async () => {
  await person("ada", "America/Los_Angeles", ["push"]);
  await person("bob", "America/Los_Angeles", ["email"]);
  await registerPushTokens(house.ctx, [{ userSub: "bob", token: "ExponentPushToken[ada-token]", platform: "ios" }]);
  expect((await house.call("DELETE", "/api/1/admin/users/bob")).statusCode).toBe(204);
  await house.base.clock.advance(6);
  await sweepDeltas(house.ctx);
  const { words } = await house.counts(registrationStats);
  expect(words.subscribed).toEqual({ "push:push_token_added": 2, "email:email_added": 1 });
  expect(words.unsubscribed).toMatchObject({
    "push:unreachable": 1,
    "push:account_deleted": 1,
    "email:account_deleted": 1,
  });
  expect(await house.query("select 1 from user_daily_reminders")).toEqual([]);
  expect((await house.call("GET", "/api/1/admin/daily_reminders/counts")).json()).toEqual({
    email: 0,
    sms: 0,
    push: 0,
  });
});

test("people are asked again for their times when the choices became better after they chose", async () => {
  await person("ada", "America/Los_Angeles");
  await as("ada", "GET", "/wants_notification_time_prompt");
  await house.base.clock.advance(10);
  await choose("ada", 1, 2);
  expect((await as("ada", "GET", "/wants_notification_time_prompt")).json().channels).toEqual([]);
  await house.base.clock.advance(10);
  await house.call("POST", "/api/1/admin/daily_reminders/settings_improved");
  expect((await as("ada", "GET", "/wants_notification_time_prompt")).json()).toMatchObject({
    wants_notification_time_prompt: true,
    channels: ["sms"],
  });
});

test("counts that drifted are corrected after five equal looks, with a warning", async () => {
  await person("ada", "America/Los_Angeles");
  await house.ctx.redis.commands.hincrby(countKeys.counts(), "sms", 3);
  let done = false;
  const running = house.run(recheck).finally(() => {
    done = true;
  });
  while (!done) {
    await new Promise((resolve) => setImmediate(resolve));
    await house.base.clock.advance(0.5);
  }
  await running;
  expect((await house.call("GET", "/api/1/admin/daily_reminders/counts")).json().sms).toBe(1);
  expect(house.ctx.alerts.recorded.some(({ identifier }) => identifier === "daily_reminders:counts_drifted")).toBe(
    true,
  );
});

test("assigning times survives a death at every command: everybody gets one time a day", async () => {
  const small = [
    [settings.page, 2],
    [settings.group, 1],
  ] as const;
  await dieAtEveryCommand(house.base.server, {
    prepare: async () => {
      await begin();
      for (const sub of ["ada", "bob", "cyd"]) {
        await person(sub, "America/Los_Angeles");
        await choose(sub, 1_000, 1_000 + HOUR);
      }
    },
    life: (redis) => house.run(assignTime, house.process({ redis, settings: small })),
    afterlife: async () => {
      await house.base.clock.advance(121);
      await house.run(assignTime);
      const mine = (await queued()).filter((one) => one.at > house.ctx.clock.now() - HOUR);
      expect(new Set(mine.map(({ uid }) => uid)).size).toBe(3);
      expect(new Set(mine.map(({ uid, unix_date }) => `${uid} ${unix_date}`)).size).toBe(mine.length);
      await house.audit();
    },
  });
}, 180_000);

test("sending reminders survives a death at every command and statement: everybody is reminded once", async () => {
  const prepare = async () => {
    await begin();
    for (const sub of ["ada", "bob"]) {
      await person(sub, "America/Los_Angeles");
      await choose(sub, 1_000, 1_060);
    }
    await house.run(assignTime);
    await house.base.clock.advance(1_200);
  };
  const afterlife = async () => {
    await house.base.clock.advance(121);
    await house.run(send);
    const sent = await touches();
    expect(sent.map(({ user_sub }) => user_sub).sort()).toEqual(["ada", "bob"]);
    for (const key of [keys.sendPurgatory(), keys.handover()]) expect(await house.length(key)).toBe(0);
    // Whoever moves or chooses later hours today is not reminded again.
    expect(await house.query("select uid from user_daily_reminders where last_unix_date is null")).toEqual([]);
    await house.audit();
  };
  await dieAtEveryCommand(house.base.server, {
    prepare,
    life: (redis) => house.run(send, house.process({ redis })),
    afterlife,
  });
  await prepare();
  const whole = new MortalSql(house.base.sql);
  await house.run(send, house.process({ sql: whole }));
  for (let dieAt = 1; dieAt <= whole.sent; dieAt++)
    for (const death of ["before", "after"] as const) {
      await prepare();
      await house.run(send, house.process({ sql: new MortalSql(house.base.sql, { dieAt, death }) })).catch(() => {});
      await afterlife();
    }
}, 240_000);

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { statisticsDomain } from "../../insight/statistics/index.ts";
import { calendarIn, calendarOf, readDayAsIs } from "../../mechanisms/dated-counters/index.ts";
import {
  addEmails,
  addPhones,
  optIn,
  optOut,
  registerPushTokens,
  suppressPhones,
  unsuppressPhones,
} from "../contacts/service.ts";
import { contactMethodStats } from "../contacts/stats.ts";
import { leakedLinkDetection } from "../links/jobs.ts";
import { keys as linkKeys } from "../links/keys.ts";
import { createLinks, linkSettings, recordTouches } from "../links/service.ts";
import { linkStats } from "../links/stats.ts";
import { keys as touchKeys } from "../touch/keys.ts";
import { rooms } from "../touch/touch.fixture.ts";
import { reminders } from "./index.ts";
import { assignTime, send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { registrationStats, reminderStats } from "./stats.ts";

/** Wednesday, 2026-11-18 00:00 in Los Angeles. */
const BEGINNING = 1_794_988_800;
const HOUR = 3_600;
const ZONE = "America/Los_Angeles";
const PHONE = "+14155550101";
const calendar = calendarIn(ZONE);

let house: RoomsHouse;
let today = 0;
beforeAll(async () => {
  house = await openRooms({
    rooms: [...rooms, reminders],
    start: BEGINNING,
    settings: [[linkSettings.webRoot, "https://example.test"]],
  });
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear(
    "suppressed_emails",
    "suppressed_phone_numbers",
    "daily_reminder_stats",
    "user_touches",
    "touch_campaigns",
  );
  today = calendar.unixDate(house.ctx.clock.now()) + 1;
  await house.base.clock.advance(calendar.startOf(today) - house.ctx.clock.now());
});

const person = (sub: string) => house.person(sub, { timezone: ZONE, given_name: sub });
const withMail = async (sub: string, email: string) => {
  const token = await person(sub);
  await addEmails(house.ctx, [{ userSub: sub, email, verified: true, cause: "identity" }]);
  return token;
};
const withPhone = async (sub: string, phoneNumber: string) => {
  const token = await person(sub);
  await addPhones(house.ctx, [
    { userSub: sub, phoneNumber, verified: true, receivesNotifications: true, cause: "verify" },
  ]);
  return token;
};
const channels = async () =>
  (
    await house.query<{ sub: string; channel: string }>(
      `select sub, channel from user_daily_reminders as held join users on users.id = held.user_id order by sub, channel`,
    )
  ).map(({ sub, channel }) => `${sub} ${channel}`);
const counts = async () => (await house.call("GET", "/api/1/admin/daily_reminders/counts")).json();
const words = async () => (await house.counts(registrationStats)).words;
const outcome = (answer: { statusCode: number; body: string }) => [answer.statusCode, JSON.parse(answer.body).type];

test("who leaves with the link of a mail gets no more reminders by mail, on every account of the address", async () => {
  await withMail("ada", "Shared@Example.com");
  await withMail("bob", "shared@example.com");
  expect(await counts()).toEqual({ email: 2, sms: 0, push: 0 });
  const methods = await house.counts(contactMethodStats);
  const [link] = await createLinks(house.ctx, [
    { touchUid: "crl_tch_mail", page: { identifier: "unsubscribe" }, codeStyle: "long" },
  ]);
  await recordTouches(house.ctx.sql.tables() as never, [
    {
      row_uid: "crl_tch_r_mail",
      uid: "crl_tch_mail",
      user_sub: "ada",
      channel: "email",
      touch_point_id: null,
      destination: "Shared@Example.com",
      message: {},
      created_at: house.ctx.clock.now(),
    },
  ]);
  const left = await house.call("POST", "/api/1/notifications/unsubscribe_by_email", {
    token: "",
    body: { email: "SHARED@example.com", code: link!.code },
  });
  expect(left.statusCode).toBe(202);
  expect(await house.query("select reason from suppressed_emails")).toEqual([{ reason: "User" }]);
  expect(await channels()).toEqual([]);
  expect([(await words()).unsubscribed, await counts()]).toEqual([{ "email:user": 2 }, { email: 0, sms: 0, push: 0 }]);
  expect(await house.counts(contactMethodStats)).toEqual(methods);
  await house.audit();
});

test("who switches an address off while signed in does so for their own account alone", async () => {
  const ada = await withMail("ada", "shared@example.com");
  await withMail("bob", "shared@example.com");
  const { emails } = (await house.call("GET", "/api/1/users/me/contact_methods", { token: ada })).json();
  const path = `/api/1/users/me/contact_methods/${emails[0].uid}/disable_notifications`;
  for (let times = 0; times < 2; times++) expect((await house.call("POST", path, { token: ada })).statusCode).toBe(204);
  expect(await channels()).toEqual(["bob email"]);
  expect((await words()).unsubscribed).toEqual({ "email:user": 1 });
  const { words: methods } = await house.counts(contactMethodStats);
  expect(methods.disabled_notifications).toEqual({ "email:unsubscribe": 1 });
  await house.audit();
});

test("reminders that begin with an account, or come from an older list, are counted as such", async () => {
  await person("ada");
  await person("bob");
  const mail = (userSub: string, begins?: "account_created" | "klaviyo") => ({
    userSub,
    email: `${userSub}@example.com`,
    verified: true,
    cause: "identity" as const,
    begins,
  });
  await addEmails(house.ctx, [mail("ada", "account_created"), mail("bob")]);
  const number = { userSub: "ada", phoneNumber: PHONE, verified: true, receivesNotifications: true } as const;
  await addPhones(house.ctx, [{ ...number, cause: "migration", begins: "klaviyo" }]);
  expect((await words()).subscribed).toEqual({ "email:account_created": 1, "email:email_added": 1, "sms:klaviyo": 1 });
  // What began before does not begin again.
  await addPhones(house.ctx, [{ ...number, cause: "migration", begins: "klaviyo" }]);
  expect((await words()).subscribed).toMatchObject({ "sms:klaviyo": 1 });
});

test("a push token that moves takes its reminder along", async () => {
  await person("ada");
  await person("bob");
  const token = "ExponentPushToken[a-moving-token]";
  await registerPushTokens(house.ctx, [{ userSub: "ada", token, platform: "ios" }]);
  expect(await channels()).toEqual(["ada push"]);
  await registerPushTokens(house.ctx, [{ userSub: "bob", token, platform: "ios" }]);
  expect(await channels()).toEqual(["bob push"]);
  expect(await words()).toEqual({
    subscribed: { "push:push_token_added": 2 },
    unsubscribed: { "push:unreachable": 1 },
  });
  const { words: methods } = await house.counts(contactMethodStats);
  expect(methods).toEqual({ created: { "push:enabled:app": 2 }, deleted: { "push:reassigned": 1 } });
  await house.audit();
});

test("reminders by text end with STOP and come back with START, and follow a number that is suppressed and released", async () => {
  await withPhone("ada", PHONE);
  await optOut(house.ctx, [PHONE]);
  expect(await channels()).toEqual([]);
  await optIn(house.ctx, [PHONE]);
  expect(await channels()).toEqual(["ada sms"]);
  expect(await words()).toEqual({
    subscribed: { "sms:phone_verify_finish": 1, "sms:sms_start": 1 },
    unsubscribed: { "sms:sms_stop": 1 },
  });
  expect(await counts()).toEqual({ email: 0, sms: 1, push: 0 });
  await suppressPhones(house.ctx, [{ phoneNumber: PHONE, reason: "Unreachable" }]);
  expect(await channels()).toEqual([]);
  await unsuppressPhones(house.ctx, { phoneNumbers: [PHONE] });
  expect(await channels()).toEqual(["ada sms"]);
  expect((await words()).unsubscribed).toEqual({ "sms:sms_stop": 1, "sms:unreachable": 1 });
  await house.audit();
});

test("a campaign by text reaches those who get reminders by text, with a short link, and nobody else", async () => {
  await withPhone("ada", PHONE);
  const bob = await withPhone("bob", "+14155550102");
  await withMail("cy", "cy@example.com");
  const never = { channel: "sms", days_of_week: [], time_range: { type: "preset", preset: "morning" } };
  const place = { timezone: ZONE, timezone_technique: "browser" };
  await house.call("POST", "/api/1/users/me/attributes/notification_time", {
    token: bob,
    body: { ...never, ...place },
  });
  const body = { touch_point_event_slug: "daily_reminder" };
  const preview = await house.call("POST", "/api/1/admin/campaigns/preview", { body: { ...body, channel: "sms" } });
  expect(preview.json()).toMatchObject({ people: 1, everybody: 3 });
  const answer = await house.call("POST", "/api/1/admin/sms/marketing_sms", { body });
  expect(answer.statusCode).toBe(202);
  await house.work(house.ctx, ["runners.touch.send"]);
  const touches = (await house.ctx.redis.commands.lrange(touchKeys.toSend(), 0, -1)).map((raw) => JSON.parse(raw));
  expect(touches).toMatchObject([
    {
      user_sub: "ada",
      channel: "sms",
      event_parameters: { name: "ada", url: expect.stringMatching(/^example\.test\/l\/.{4,6}$/) },
    },
  ]);
  expect((await house.counts(reminderStats)).events).toEqual({});
});

test("only their owner and administrators reach reminders", async () => {
  const ada = await withPhone("ada", PHONE);
  const bob = await person("bob");
  for (const { method, path, access } of reminders.routes) {
    expect([path, access]).toEqual([path, path.startsWith("/api/1/admin") ? "admin" : "user"]);
    const url = path.replace("{sub}", "ada");
    const body = method === "GET" ? {} : { body: {} };
    expect([path, (await house.call(method, url, { token: "", ...body })).statusCode]).toEqual([path, 401]);
    if (access === "admin")
      expect([path, (await house.call(method, url, { token: ada, ...body })).statusCode]).toEqual([path, 403]);
  }
  const { sms } = (await house.call("GET", "/api/1/users/me/daily_reminders", { token: ada })).json();
  const stolen = await house.call("DELETE", "/api/1/users/me/daily_reminders", { token: bob, body: { uid: sms.uid } });
  expect(outcome(stolen)).toEqual([404, "reminder_not_found"]);
  expect(outcome(await house.call("GET", "/api/1/admin/users/nobody/daily_reminders/next"))).toEqual([
    404,
    "user_not_found",
  ]);
  for (const job of ["last_assign_time_job", "last_send_job"])
    expect(outcome(await house.call("GET", `/api/1/admin/daily_reminders/${job}`))).toEqual([
      404,
      "reminders_run_not_finished",
    ]);
});

const inHours = async (seconds: number) =>
  house.base.clock.advance(calendar.startOf(today) + seconds - house.ctx.clock.now());

test("dashboards show the queue, how far each day is in each zone, and everything that a run did", async () => {
  await withPhone("ada", PHONE);
  await inHours(7.9 * HOUR);
  await house.run(assignTime);
  const info = async (path: string) => (await house.call("GET", `/api/1/admin/daily_reminders/${path}`)).json();
  expect(await info("queued_info")).toMatchObject({ length: 1, overdue: 0, oldest: expect.any(Number) });
  const progress = await info("progress_info");
  expect(progress.progress_by_date_and_timezone[today][ZONE]).toEqual({
    start_time: 28_800,
    uid: expect.stringMatching(/^crl_udr_/),
    finished: false,
  });
  const run = await info("last_assign_time_job");
  expect(run).toMatchObject({
    start_unix_date: progress.earliest_unix_date,
    end_unix_date: today,
    unique_timezones: 1,
    attempted: 1,
    overdue: 0,
    stale: 0,
    sms_queued: 1,
    push_queued: 0,
    email_queued: 0,
    stop_reason: "list_exhausted",
  });
  expect(run.queries).toBeGreaterThanOrEqual(run.pairs);
  await inHours(11.1 * HOUR);
  expect((await info("queued_info")).overdue).toBe(1);
  await house.ctx.redis.commands.zadd(
    keys.queued(),
    "XX",
    house.ctx.clock.now(),
    (await house.ctx.redis.commands.zrange(keys.queued(), 0, "0"))[0]!,
  );
  await house.run(send);
  expect(await info("last_send_job")).toMatchObject({
    attempted: 1,
    lost: 0,
    stale: 0,
    links: 1,
    sms: 1,
    push: 0,
    email: 0,
    stop_reason: "list_exhausted",
  });
});

test("no more times are assigned while too many reminders wait for theirs", async () => {
  await withPhone("ada", PHONE);
  await inHours(8 * HOUR);
  await house.ctx.redis.commands.zadd(
    keys.queued(),
    9e9,
    '{"uid":"crl_udr_x","unix_date":1}',
    9e9,
    '{"uid":"crl_udr_y","unix_date":1}',
  );
  const full = house.process({ settings: [[settings.queuedLimit, 1]] });
  await house.run(assignTime, full);
  expect((await house.call("GET", "/api/1/admin/daily_reminders/last_assign_time_job")).json()).toMatchObject({
    stop_reason: "backpressure",
    attempted: 0,
  });
});

test("a reminder that cannot be read is set aside and counts nowhere, and its neighbours are sent", async () => {
  await withPhone("ada", PHONE);
  await inHours(8 * HOUR);
  await house.run(assignTime);
  const [member] = await house.ctx.redis.commands.zrange(keys.queued(), 0, "0");
  await house.ctx.redis.commands.zadd(
    keys.queued(),
    house.ctx.clock.now() - 1,
    "nonsense",
    house.ctx.clock.now(),
    member!,
  );
  await house.run(send);
  expect(await house.ctx.redis.commands.llen("quarantine:daily_reminders:queued")).toBe(1);
  expect((await house.counts(reminderStats, today)).events).toMatchObject({ sends_attempted: 1, sent: 1 });
});

test("days that passed while nobody assigned times are left out with a warning and without counts", async () => {
  await withPhone("ada", PHONE);
  await house.run(assignTime);
  await house.base.clock.advance(6 * 86_400);
  await house.run(assignTime);
  expect(house.ctx.alerts.recorded.some(({ identifier }) => identifier === "daily_reminders:days_left_out")).toBe(true);
  expect(Number(await house.ctx.redis.commands.get(keys.earliest()))).toBeGreaterThanOrEqual(today + 3);
  expect((await house.counts(reminderStats, today + 1)).events).toEqual({});
  await house.audit();
});

test("when Redis lost how far reminders got, people are told, and hours long past are not caught up", async () => {
  await withPhone("ada", PHONE);
  await house.query(`insert into daily_reminder_stats (retrieved_for, retrieved_at) values ('2026-01-01', now())`);
  await inHours(13 * HOUR);
  await house.run(assignTime);
  expect(house.ctx.alerts.recorded.some(({ identifier }) => identifier === "daily_reminders:progress_lost")).toBe(true);
  const { events } = await house.counts(reminderStats, today);
  expect(events).toMatchObject({ attempted: 1, overdue: 1, skipped_assigning_time: 1 });
  expect(await house.length(keys.queued())).toBe(0);
});

test("links of a reminder whose run died before it was sent are given up by their age, and the person is reminded once", async () => {
  await withPhone("ada", PHONE);
  await inHours(8 * HOUR);
  await house.run(assignTime);
  const [member] = await house.ctx.redis.commands.zrange(keys.queued(), 0, "0");
  await house.ctx.redis.commands.zadd(keys.queued(), house.ctx.clock.now(), member!);
  const mortal = house.process();
  const { run } = mortal.redis;
  Object.assign(mortal.redis, {
    run: (script: { name: string }, ...rest: unknown[]) =>
      script.name === "daily_reminders.dispatch"
        ? Promise.reject(new Error("died"))
        : (run as (...all: unknown[]) => Promise<unknown>).call(mortal.redis, script, ...rest),
  });
  await expect(house.run(send, mortal)).rejects.toThrow("died");
  expect([await house.length(keys.sendPurgatory()), await house.length(linkKeys.buffer())]).toEqual([1, 1]);
  await house.base.clock.advance(121);
  await house.run(send);
  expect((await house.counts(reminderStats, today)).events).toMatchObject({ sends_attempted: 1, sent: 1, links: 1 });
  await house.base.clock.advance(144_001);
  await house.run(leakedLinkDetection);
  expect((await house.counts(linkStats)).words.leaked).toEqual({ abandoned: 2 });
});

test("what reminders of a day did becomes a row three days later, and not before", async () => {
  await withPhone("ada", PHONE);
  await inHours(8 * HOUR);
  await house.run(assignTime);
  const statistics = calendarOf(house.ctx);
  const rotate = statisticsDomain(() => [reminders]).runners!.find(({ name }) => name === "runners.stats.rotate")!;
  const rows = () =>
    house.query<{ attempted: number }>("select attempted from daily_reminder_stats where attempted > 0");
  for (const [days, expected] of [
    [2, []],
    [3, [{ attempted: 1 }]],
  ] as const) {
    await house.base.clock.advance(statistics.startOf(today + days) + 2 * HOUR - house.ctx.clock.now());
    await house.run(rotate, house.ctx, { family: "daily_reminders" });
    expect(await rows()).toEqual(expected);
  }
  expect((await readDayAsIs(house.ctx, reminderStats, today)).events).toEqual({});
});

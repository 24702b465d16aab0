import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { calendarOf, isoDate, sweepDeltas } from "../../mechanisms/dated-counters/index.ts";
import { rotatePreferences } from "../../people/users/jobs.ts";
import { keys as userKeys } from "../../people/users/keys.ts";
import { rooms } from "../touch/touch.fixture.ts";
import { reminders } from "./index.ts";
import { recheck } from "./jobs.ts";
import { preferenceOf } from "./preferences.ts";

let house: RoomsHouse;
beforeAll(async () => {
  house = await openRooms({ rooms: [...rooms, reminders], start: 1_794_988_800 });
});
afterAll(() => house.close());
beforeEach(() => house.clear("user_notification_setting_stats"));

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
async function choose(sub: string, preset: string | readonly [number, number], more: object = {}) {
  const minted = await house.call("POST", `/api/1/admin/users/${sub}/access_token`, { body: {} });
  const time_range =
    typeof preset === "string" ? { type: "preset", preset } : { type: "explicit", start: preset[0], end: preset[1] };
  const answer = await house.call("POST", "/api/1/users/me/attributes/notification_time", {
    token: minted.json().access_token,
    body: {
      channel: "sms",
      days_of_week: DAYS,
      time_range,
      timezone: "Europe/Berlin",
      timezone_technique: "browser",
      ...more,
    },
  });
  expect(answer.statusCode).toBe(202);
}
async function shown() {
  await house.base.clock.advance(6);
  await sweepDeltas(house.ctx);
  return (await house.call("GET", "/api/1/admin/user_notification_settings")).json();
}
const today = () => calendarOf(house.ctx).unixDate(house.ctx.clock.now());
const changes = () => house.ctx.redis.commands.hgetall(userKeys.preferenceDay({ unix_date: today() }));

test("a choice for texts is named by its time of day, hours of one's own count as any, and no day as none", () => {
  const presets = {
    unspecified: "text-any",
    morning: "text-morning",
    afternoon: "text-afternoon",
    evening: "text-evening",
  };
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 127 }),
      fc.constantFrom(...Object.keys(presets)),
      fc.boolean(),
      (mask, preset, own) => {
        const range = own
          ? { type: "explicit" as const, start: 0, end: 1 }
          : { type: "preset" as const, preset: preset as keyof typeof presets };
        const wanted = own ? "text-any" : presets[preset as keyof typeof presets];
        expect(preferenceOf({ mask, range })).toBe(mask === 0 ? "unset" : wanted);
      },
    ),
  );
  expect(preferenceOf(undefined)).toBe("unset");
});

test("every user is counted with one preference, each change of it once, until they leave", async () => {
  await house.person("ada");
  await house.person("bob");
  expect((await shown()).counts).toMatchObject({ unset: 2, "text-any": 0 });
  await choose("ada", "morning");
  await choose("ada", "morning");
  await choose("ada", [60, 120]);
  await choose("ada", "evening", { channel: "email" });
  await choose("bob", "evening", { channel: "all" });
  await choose("bob", "evening", { days_of_week: [] });
  expect((await shown()).counts).toEqual({
    unset: 1,
    "text-any": 1,
    "text-morning": 0,
    "text-afternoon": 0,
    "text-evening": 0,
  });
  expect(await changes()).toEqual({
    "unset:text-morning": "1",
    "text-morning:text-any": "1",
    "unset:text-evening": "1",
    "text-evening:unset": "1",
  });
  await house.audit();
  await house.call("DELETE", "/api/1/admin/users/ada");
  expect((await shown()).counts).toMatchObject({ unset: 1, "text-any": 0 });
});

test("the changes of a day become rows when it is over, and are shown by day", async () => {
  await house.person("ada");
  await choose("ada", "afternoon");
  await shown();
  const day = today();
  await house.base.clock.advance(26 * 3_600);
  await house.run(rotatePreferences);
  await house.run(rotatePreferences);
  const { labels, transitions } = await shown();
  expect(labels.at(-1)).toBe(isoDate(day));
  expect(labels).toHaveLength(30);
  expect(transitions).toEqual({ "unset:text-afternoon": [...Array(29).fill(0), 1] });
  expect(await house.ctx.redis.commands.exists(userKeys.preferenceDay({ unix_date: day }))).toBe(0);
  expect(await house.ctx.redis.commands.get(userKeys.preferenceEarliest())).toBe(String(day + 1));
});

test("counts that drifted from what people chose are corrected at night", async () => {
  await house.person("ada");
  await choose("ada", "evening");
  await shown();
  await house.ctx.redis.commands.hset(userKeys.preferenceCounts(), "unset", 7, "text-evening", 0);
  const checked = house.run(recheck);
  let over = false;
  void checked.finally(() => {
    over = true;
  });
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    await house.base.clock.advance(0.5);
  }
  await checked;
  expect((await shown()).counts).toMatchObject({ unset: 0, "text-evening": 1 });
});

test("a field that is no preference, or no change of one, is found by the audit", async () => {
  await house.ctx.redis.commands.hset(userKeys.preferenceCounts(), "by-pigeon", 1);
  await expect(house.audit()).rejects.toThrow("by-pigeon");
  await house.ctx.redis.commands.del(userKeys.preferenceCounts());
  await house.ctx.redis.commands.hset(userKeys.preferenceDay({ unix_date: today() }), "unset:unset", 1);
  await expect(house.audit()).rejects.toThrow("unset:unset");
});

test("setting a time says where a person is, and how that is known", async () => {
  await house.person("ada", { timezone: "America/Los_Angeles" });
  await choose("ada", "morning");
  await choose("ada", "morning", { timezone: "Asia/Tokyo", timezone_technique: "app-guessed" });
  await choose("ada", "evening", { timezone: "Asia/Tokyo" });
  const { items } = (await house.call("GET", "/api/1/admin/users/ada/timezone_log")).json();
  const common = { source: "update_notification_time" };
  expect(items).toMatchObject([
    { ...common, timezone: "Asia/Tokyo", style: "app", guessed: true },
    { ...common, timezone: "Europe/Berlin", style: "browser", guessed: false },
  ]);
  expect(items).toHaveLength(2);
});

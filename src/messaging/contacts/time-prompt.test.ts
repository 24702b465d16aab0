import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { operations } from "../../infrastructure/operations/index.ts";
import { statisticsDomain } from "../../insight/statistics/index.ts";
import { contacts } from "./index.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { addEmails, addPhones, type Channel, installEffects, registerPushTokens, suppressPhones } from "./service.ts";

let server: TestServer;
let token = "";
/** When each channel's settings were last chosen, as the reminders room would know it. */
const chosenAt = new Map<Channel, number>();
const takeAway = installEffects({
  reminderSettings: {
    olderThan: async (_ctx, _sub, since) => [...chosenAt].filter(([, at]) => at <= since).map(([channel]) => channel),
  },
});

beforeAll(async () => {
  server = await openTestServer({ domains: [operations, statisticsDomain(() => [contacts]), contacts] });
});
afterAll(async () => {
  takeAway();
  await server.close();
});
beforeEach(async () => {
  chosenAt.clear();
  // What a process remembers of the marker is over.
  await server.ctx.clock.advance(61);
  await server.ctx.flush();
  await server.ctx.sql.script("delete from suppressed_phone_numbers; delete from users;");
  await server.call("POST", "/api/1/admin/users", { token: server.admin, body: { sub: "ada" } });
  const issued = await server.call("POST", "/api/1/admin/users/ada/access_token", { token: server.admin, body: {} });
  token = issued.json().access_token;
});

const marker = () => server.ctx.redis.topology.key(keys.settingsImprovedAt());
const prompt = async () =>
  (await server.call("GET", "/api/1/users/me/wants_notification_time_prompt", { token })).json();
const improve = () => server.call("POST", "/api/1/admin/daily_reminder_settings_improved", { token: server.admin });

test("whoever asks first sets the time that reminder settings must be newer than, and it stays", async () => {
  const first = Math.floor(server.ctx.clock.now());
  expect(await prompt()).toEqual({ wants_notification_time_prompt: false, channels: [], potential_channels: [] });
  expect(await server.ctx.redis.commands.get(marker())).toBe(String(first));
  expect(await server.ctx.redis.commands.ttl(marker())).toBe(-1);
  await server.ctx.clock.advance(1000);
  await prompt();
  expect(await server.ctx.redis.commands.get(marker())).toBe(String(first));
});

test("channels whose times were chosen before that moment are asked about again, and later ones are not", async () => {
  const improvedAt = 1_700_000_000;
  await server.ctx.redis.commands.set(marker(), improvedAt);
  chosenAt.set("push", improvedAt - 1).set("phone", improvedAt + 1);
  expect(await prompt()).toMatchObject({ wants_notification_time_prompt: true, channels: ["push"] });
  chosenAt.set("push", improvedAt + 1);
  expect(await prompt()).toMatchObject({ wants_notification_time_prompt: false, channels: [] });
});

test("an administrator has everybody asked again, at once here and within a minute elsewhere", async () => {
  await prompt();
  chosenAt.set("email", server.ctx.clock.now() + 50);
  await server.ctx.clock.advance(100);
  expect(await prompt()).toMatchObject({ wants_notification_time_prompt: false });
  const now = Math.floor(server.ctx.clock.now());
  const answer = await improve();
  expect([answer.statusCode, answer.json()]).toEqual([200, { improved_at: now }]);
  expect(await prompt()).toMatchObject({ wants_notification_time_prompt: true, channels: ["email"] });
  await server.ctx.redis.commands.set(marker(), now - 500);
  expect((await prompt()).channels).toEqual(["email"]);
  await server.ctx.clock.advance(61);
  expect((await prompt()).channels).toEqual([]);
});

test("channels with a usable address are named as possible, and a suppressed number or a silent device is none", async () => {
  const { ctx } = server;
  await addEmails(ctx, [{ userSub: "ada", email: "ada@example.com", verified: true, cause: "identity" }]);
  await addPhones(ctx, [
    { userSub: "ada", phoneNumber: "+14155550132", verified: true, receivesNotifications: true, cause: "identity" },
  ]);
  await registerPushTokens(ctx, [{ userSub: "ada", token: "ExponentPushToken[abcdefghij]", platform: "ios" }]);
  expect((await prompt()).potential_channels).toEqual(["email", "sms", "push"]);
  await suppressPhones(ctx, [{ phoneNumber: "+14155550132", reason: "Stop" }]);
  const disable = { push_token: "ExponentPushToken[abcdefghij]" };
  await server.call("POST", "/api/1/notifications/push/tokens/disable", { token, body: disable });
  expect((await prompt()).potential_channels).toEqual(["email"]);
});

test("only the signed-in may ask, and only administrators may have everybody asked", async () => {
  const ask = await server.call("GET", "/api/1/users/me/wants_notification_time_prompt");
  expect(ask.statusCode).toBe(401);
  const bump = await server.call("POST", "/api/1/admin/daily_reminder_settings_improved", { token });
  expect(bump.statusCode).toBe(403);
});

test("a marker that lies ahead of the clock is found by the audit", async () => {
  const broken = async () => (await Promise.all(invariants.map(({ check }) => check(server.ctx)))).flat();
  await prompt();
  expect(await broken()).toEqual([]);
  await server.ctx.redis.commands.set(marker(), Math.floor(server.ctx.clock.now()) + 60);
  expect(await broken()).toEqual([expect.stringContaining("is 60 s ahead")]);
});

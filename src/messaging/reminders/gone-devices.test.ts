import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { silentLog } from "../../kernel/log.ts";
import { PushChannel } from "../../providers/channels.ts";
import { sandboxClients } from "../../sandbox/clients.ts";
import { SANDBOX_TWILIO, Sandbox } from "../../sandbox/sandbox.ts";
import { registerPushTokens } from "../contacts/service.ts";
import { contactMethodStats } from "../contacts/stats.ts";
import { keys as pushKeys } from "../push/keys.ts";
import { newPush, token } from "../push/push.fixture.ts";
import { enqueuePushes } from "../push/service.ts";
import { pushTicketStats, pushTokenStats } from "../push/stats.ts";
import { rooms } from "../touch/touch.fixture.ts";
import { reminders } from "./index.ts";
import { registrationStats } from "./stats.ts";

/** From the answer of the provider to the reminders of the device's owner, through all the rooms between. */
let house: RoomsHouse;
let sandbox: Sandbox;
beforeAll(async () => {
  const address = () => ({ url: sandbox.url, twilio: SANDBOX_TWILIO });
  house = await openRooms({
    rooms: [...rooms, reminders],
    providers: (ctx) => {
      const around = { clock: ctx.clock, log: silentLog, userAgent: "carillon/test" };
      return { push: new PushChannel(ctx, sandboxClients(address, around).push) };
    },
  });
  sandbox = await Sandbox.start({ clock: house.base.clock, log: silentLog, publicUrl: "http://127.0.0.1:9" });
});
afterAll(async () => {
  await sandbox.close();
  await house.close();
});
beforeEach(() => house.clear());

const tokensAndReminders = async () => ({
  tokens: (
    await house.query<{ sub: string; token: string }>(
      "select sub, token from user_push_tokens as held join users on users.id = held.user_id order by sub, token",
    )
  ).map((row) => `${row.sub} ${row.token}`),
  reminded: (
    await house.query<{ sub: string }>(
      "select sub from user_daily_reminders as held join users on users.id = held.user_id order by sub",
    )
  ).map(({ sub }) => sub),
});

test("a device that its first ticket calls gone loses its token, and with its last one a person loses the reminder by push", async () => {
  const gone = (sub: string) => `sandbox-unregistered-${sub}`;
  const register = (userSub: string, name: string) =>
    registerPushTokens(house.ctx, [{ userSub, token: token(name), platform: "ios" }]);
  let bearer = "";
  for (const sub of ["ada", "bob", "eve"]) {
    bearer = await house.person(sub, { timezone: "America/Los_Angeles" });
    await register(sub, gone(sub));
  }
  await register("bob", "other-of-bob");
  await register("eve", "other-of-eve");
  // A device that is switched off does not keep a reminder.
  const off = { token: bearer, body: { push_token: token("other-of-eve") } };
  expect((await house.call("POST", "/api/1/notifications/push/tokens/disable", off)).statusCode).toBe(204);
  expect((await tokensAndReminders()).reminded).toEqual(["ada", "bob", "eve"]);

  await enqueuePushes(
    house.ctx,
    ["ada", "bob", "eve"].map((sub) => newPush(gone(sub))),
  );
  await house.work();
  expect(await tokensAndReminders()).toEqual({
    tokens: [`bob ${token("other-of-bob")}`, `eve ${token("other-of-eve")}`],
    reminded: ["bob"],
  });
  expect(await house.length(pushKeys.retrying())).toBe(0);
  expect((await house.counts(pushTicketStats)).events).toEqual({ queued: 3, failed_due_to_device_not_registered: 3 });
  expect((await house.counts(pushTokenStats)).events).toEqual({ created: 5, deleted_due_to_unrecognized_ticket: 3 });
  expect((await house.counts(contactMethodStats)).words.deleted).toEqual({ "push:device_not_registered": 3 });
  expect((await house.counts(registrationStats)).words.unsubscribed).toEqual({ "push:unreachable": 2 });
  await house.audit();
});

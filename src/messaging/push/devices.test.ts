import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { passTimeUntil } from "../../../test/harness/time.ts";
import { calendarOf, readCounts, rotate, sweepDeltas } from "../../mechanisms/dated-counters/index.ts";
import { createUser, deleteUser } from "../../people/users/service.ts";
import { contactMethodsOf, registerPushTokens } from "../contacts/service.ts";
import { keys } from "./keys.ts";
import { enqueuePushes } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, rooms, token } from "./push.fixture.ts";
import { pushReceiptStats, pushTicketStats, pushTokenStats } from "./stats.ts";

let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse({ sql: true });
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.reset();
  await house.sql.script("truncate users, stat_deltas, stat_rotations cascade");
  for (const sub of ["ada", "bob"]) await createUser(house.main.ctx, [], { sub });
});

/** The schedule alone would start the send job at the next full minute; virtual seconds pass quicker than requests. */
const UNTIL_SCHEDULED = 50;

const register = (userSub: string, name: string) =>
  registerPushTokens(house.main.ctx, [{ userSub, token: token(name), platform: "ios" }]);
const tokens = async () =>
  (
    await sql<{ token: string; sub: string; confirmed: number | null }>`
      select token, users.sub, extract(epoch from last_confirmed_at)::float8 as confirmed
      from user_push_tokens join users on users.id = user_id order by token`.execute(house.sql.tables())
  ).rows;

test("a device that the provider no longer knows loses its token at the first ticket, without another try", async () => {
  await register("ada", "sandbox-unregistered-a");
  await enqueuePushes(house.main.ctx, [newPush("sandbox-unregistered-a"), newPush("sandbox-unregistered-b")]);
  await house.run("send");
  await house.settleCallbacks();
  expect(await tokens()).toEqual([]);
  expect(await house.length(keys.retrying())).toBe(0);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 2, failed_due_to_device_not_registered: 2 });
  expect(await house.counts(pushTokenStats)).toEqual({ created: 1, deleted_due_to_unrecognized_ticket: 1 });
});

test("a receipt may say so too, and a good one notes that the device works", async () => {
  await register("ada", "good");
  await register("bob", "sandbox-receipt-DeviceNotRegistered-a");
  await enqueuePushes(house.main.ctx, [newPush("good"), newPush("sandbox-receipt-DeviceNotRegistered-a")]);
  await house.run("send");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  const checkedAt = house.clock.now();
  await house.settleCallbacks();
  expect(await tokens()).toEqual([{ token: token("good"), sub: "ada", confirmed: checkedAt }]);
  const { push_tokens: shown } = await contactMethodsOf(house.main.ctx, "ada");
  expect(shown).toMatchObject([{ platform: "ios", last_confirmed_at: checkedAt }]);
  expect(await house.counts(pushTokenStats)).toEqual({ created: 2, deleted_due_to_unrecognized_receipt: 1 });
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 1, failed_due_to_device_not_registered: 1 });
});

test("a device that moved to somebody else while its notification was under way, and is gone, is gone for its new owner", async () => {
  await register("ada", "sandbox-receipt-DeviceNotRegistered-m");
  await enqueuePushes(house.main.ctx, [newPush("sandbox-receipt-DeviceNotRegistered-m")]);
  await house.run("send");
  await register("bob", "sandbox-receipt-DeviceNotRegistered-m");
  expect((await tokens()).map(({ sub }) => sub)).toEqual(["bob"]);
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  await house.run("check");
  await house.settleCallbacks();
  expect(await tokens()).toEqual([]);
  const counts = { created: 1, reassigned: 1, deleted_due_to_unrecognized_receipt: 1 };
  expect(await house.counts(pushTokenStats)).toEqual(counts);
});

test("a callback that finds SQL away fails as a whole, and its repeat does everything once", async () => {
  await register("ada", "sandbox-unregistered-s");
  await enqueuePushes(house.main.ctx, [newPush("sandbox-unregistered-s")]);
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  await house.run("send");
  await house.runCallbacks(await house.takeCallbacks());
  await house.clock.advance(15);
  await enqueuePushes(house.main.ctx, [newPush("sandbox-unregistered-other")]);
  await house.run("send");
  const callbacks = await house.takeCallbacks();
  const away = house.another();
  Object.defineProperty(away.ctx, "sql", {
    value: {
      tables: () => {
        throw new Error("SQL is away");
      },
    },
  });
  await expect(house.runCallbacks(callbacks, away)).rejects.toThrow("SQL is away");
  expect(await tokens()).toHaveLength(1);
  for (let repeat = 0; repeat < 2; repeat++) await house.runCallbacks(callbacks);
  expect(await tokens()).toEqual([]);
  expect(await house.counts(pushTokenStats)).toEqual({ created: 1, deleted_due_to_unrecognized_ticket: 1 });
  expect(await house.length(keys.retrying())).toBe(0);
});

test("tokens that are registered, moved, evicted and deleted with their user are counted by what happened", async () => {
  for (let device = 0; device < 11; device++) await register("ada", `device-${device}`);
  await register("ada", "device-10");
  await register("bob", "device-10");
  expect(await house.counts(pushTokenStats)).toEqual({
    created: 11,
    refreshed: 1,
    reassigned: 1,
    deleted_due_to_token_limit: 1,
  });
  await deleteUser(house.main.ctx, rooms, "ada");
  await house.clock.advance(120);
  await sweepDeltas(house.main.ctx);
  expect(await house.counts(pushTokenStats)).toMatchObject({ created: 11, deleted_due_to_user_deletion: 9 });
});

test("a day of tokens becomes a row that says how many there were at its end", async () => {
  await register("ada", "one");
  await register("bob", "two");
  await house.clock.advance(86_400);
  await register("bob", "three");
  await rotate(house.main.ctx, pushTokenStats, { calendar: calendarOf(house.main.ctx) });
  const yesterday = calendarOf(house.main.ctx).unixDate(house.clock.now()) - 1;
  const { days } = await readCounts(house.main.ctx, pushTokenStats, yesterday, yesterday + 1);
  expect(days.get(yesterday)).toMatchObject({ counts: { created: 2, total: 2 } });
});

test("the tickets of a day stay open through the next one, and are a row a quarter past the midnight after that", async () => {
  const calendar = calendarOf(house.main.ctx);
  const day = calendar.unixDate(house.clock.now());
  await enqueuePushes(house.main.ctx, [newPush("late")]);
  await house.clock.advance(calendar.startOf(day + 1) + 900 - house.clock.now());
  expect(await rotate(house.main.ctx, pushTicketStats, { calendar })).toMatchObject({ dates: [] });
  await house.run("send");
  await house.clock.advance(calendar.startOf(day + 2) + 900 - house.clock.now());
  expect(await rotate(house.main.ctx, pushTicketStats, { calendar })).toMatchObject({ dates: [day] });
  const { rows } = await sql`select queued, succeeded, retried from push_ticket_stats`.execute(house.sql.tables());
  expect(rows).toEqual([{ queued: 1, succeeded: 1, retried: 0 }]);
});

test("on an idle house a notification reaches the provider at once, and its success is known a quarter of an hour later", async () => {
  await register("ada", "quick");
  const { worker } = house.main;
  await worker.start();
  try {
    await house.clock.advance(5);
    await enqueuePushes(house.main.ctx, [newPush("quick")]);
    const took = await passTimeUntil(house, () => house.sandbox.inbox.all().length === 1, { limit: 60, step: 0.1 });
    expect(took).toBeLessThan(UNTIL_SCHEDULED);
    await passTimeUntil(house, async () => (await tokens())[0]?.confirmed != null, { limit: 1300, step: 5 });
  } finally {
    await worker.stop();
  }
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 1, succeeded: 1 });
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 1 });
}, 60_000);

test("a message that fails in passing is sent again after 15 s by a running house, not at the next full minute", async () => {
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  const worker = house.another().worker;
  await worker.start();
  try {
    await house.clock.advance(5);
    await enqueuePushes(house.main.ctx, [newPush("again")]);
    const took = await passTimeUntil(house, () => house.sandbox.inbox.all().length === 1, { limit: 60, step: 0.5 });
    expect(took).toBeGreaterThanOrEqual(15);
    expect(took).toBeLessThan(UNTIL_SCHEDULED);
  } finally {
    await worker.stop();
  }
}, 60_000);

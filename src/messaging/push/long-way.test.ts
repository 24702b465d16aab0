import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { migrate } from "../../kernel/sql/index.ts";
import { calendarOf, rotate } from "../../mechanisms/dated-counters/index.ts";
import {
  messageLogKeys,
  messageLogMigrations,
  messageLogSettings,
  notesSettled,
  storyOf,
} from "../../mechanisms/message-log/index.ts";
import { keys } from "./keys.ts";
import { enqueuePushes } from "./outbox.ts";
import { newPush, openPushHouse, type PushHouse, token } from "./push.fixture.ts";
import { pushReceiptStats, pushTicketStats } from "./stats.ts";

/** Hours and days of notifications: outages, midnights, refused credentials, and the story that is told of them. */
let house: PushHouse;
beforeAll(async () => {
  house = await openPushHouse({ sql: true });
  await migrate(house.sql, [{ domain: "messages", migrations: messageLogMigrations }]);
});
afterAll(() => house.close());
beforeEach(() => house.reset());

const raw = (key: string) => house.redis.topology.key(key as never);
const sentTo = () => house.sandbox.inbox.all().map(({ to }) => to);

/** What the schedule would do in so many seconds, callbacks included. */
async function live(seconds: number, step = 15): Promise<void> {
  for (let passed = 0; passed < seconds; passed += step) {
    await house.clock.advance(step);
    await house.run("send");
    await house.run("ticket_hot_to_cold");
    await house.run("check");
    await house.settleCallbacks();
  }
}

/** A process whose requests are written down, group by group. */
function watched() {
  const { push } = house.main.ctx.providers;
  const requests: string[][] = [];
  const real = push.send;
  push.send = (messages) => {
    requests.push(messages.map(({ to }) => to));
    return real.call(push, messages);
  };
  return {
    requests,
    stop: () => {
      push.send = real;
    },
  };
}

test("a provider that is down for an hour gets each notification four times at most, in order, and then the next ones", async () => {
  const { requests, stop } = watched();
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1_000_000 } } });
  const early = Array.from({ length: 90 }, (_, at) => newPush(`early-${at}`));
  await enqueuePushes(house.main.ctx, early);
  await live(425, 25);
  await live(3075, 615);
  expect(await house.counts(pushTicketStats)).toEqual({
    queued: 90,
    retried: 270,
    failed_due_to_server_error: 360,
    abandoned: 90,
  });
  const late = Array.from({ length: 90 }, (_, at) => newPush(`late-${at}`));
  await enqueuePushes(house.main.ctx, late);
  await live(100, 25);
  house.sandbox.knobs.reset();
  await live(500, 50);
  stop();
  const tries = new Map<string, number>();
  for (const to of requests.flat()) tries.set(to, (tries.get(to) ?? 0) + 1);
  expect(early.every(({ pushToken }) => tries.get(pushToken) === 4)).toBe(true);
  expect(late.every(({ pushToken }) => tries.get(pushToken)! <= 4)).toBe(true);
  expect(sentTo()).toEqual(late.map(({ pushToken }) => pushToken));
  // However often they fail, nobody overtakes anybody.
  const order = [...early, ...late].map(({ pushToken }) => pushToken);
  for (const request of requests) {
    const places = request.map((to) => order.indexOf(to));
    expect(places).toEqual([...places].sort((one, other) => one - other));
  }
  expect(await house.violations()).toEqual([]);
}, 60_000);

test("while credentials are refused nothing fails or moves, one urgent alert rings an hour, and then all goes on", async () => {
  house.sandbox.knobs.patch({ expo: { failNext: { status: 403, count: 1_000_000 } } });
  const uids = await house.queue(150);
  const urgent = () => house.alerts.recorded.filter(({ level }) => level === "urgent").length;
  const before = urgent();
  for (let minute = 0; minute < 55; minute += 5) {
    await house.run("send");
    await house.clock.advance(300);
  }
  expect(urgent() - before).toBe(1);
  await house.clock.advance(400);
  await house.run("send");
  expect(urgent() - before).toBe(2);
  const waiting = await house.redis.commands.lrange(raw(keys.toSend()), 0, -1);
  expect(waiting.map((entry) => JSON.parse(entry).uid)).toEqual(uids);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 150 });
  house.sandbox.knobs.reset();
  await house.run("send");
  expect(await house.length(keys.cold())).toBe(150);
});

test("receipts that our credentials are refused for stay where they are, and are had later", async () => {
  await house.queue(3);
  await house.run("send");
  await house.clock.advance(900);
  await house.run("ticket_hot_to_cold");
  house.sandbox.knobs.patch({ expo: { failNext: { status: 401, count: 1 } } });
  await house.run("check");
  expect(await house.length(keys.hot())).toBe(3);
  expect(await house.takeCallbacks()).toEqual([]);
  expect(await house.redis.commands.hget(raw(keys.checkReport()), "last_stop_reason")).toBe("credentials");
  await house.run("check");
  expect(await house.takeCallbacks()).toHaveLength(3);
  expect(await house.counts(pushReceiptStats)).toEqual({ succeeded: 3 });
});

test("a Redis that forgets all scripts amid a run is told them again, and the run goes on", async () => {
  await house.queue(300);
  const process = house.another();
  const { push } = process.ctx.providers;
  const real = push.send.bind(push);
  push.send = async (messages) => {
    const tickets = await real(messages);
    await house.redis.commands.script("FLUSH");
    return tickets;
  };
  await house.run("send", process);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 300, succeeded: 300 });
  expect(sentTo()).toHaveLength(300);
});

test("a device of another project does not fail the ninety-nine beside it", async () => {
  const stranger = token("n50");
  house.sandbox.knobs.patch({ expo: { projects: { [stranger]: "@somebody/else" } } });
  await house.queue(100);
  await house.run("send");
  expect(new Set(sentTo()).size).toBe(100);
  expect(await house.counts(pushTicketStats)).toEqual({ queued: 100, succeeded: 100 });
});

test("what is queued ten seconds before midnight and confirmed after it counts on its day, and becomes one row two days on", async () => {
  const { ctx } = house.main;
  const calendar = calendarOf(ctx);
  const day = calendar.unixDate(house.clock.now());
  const midnight = (days: number) => calendar.startOf(day + days);
  await house.clock.advance(midnight(1) - 10 - house.clock.now());
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  await house.queue(1);
  await house.run("send");
  await house.settleCallbacks();
  await live(30);
  await live(1200, 100);
  expect(house.clock.now()).toBeGreaterThan(midnight(1) + 1190);
  expect(await house.counts(pushTicketStats)).toEqual({});
  const tickets = { queued: 1, retried: 1, failed_due_to_server_error: 1, succeeded: 1 };
  expect(await house.counts(pushTicketStats, 1)).toEqual(tickets);
  expect(await house.counts(pushReceiptStats, 1)).toEqual({ succeeded: 1 });
  await house.clock.advance(midnight(2) + 900 - house.clock.now());
  const rotateBoth = async () => [
    (await rotate(ctx, pushTicketStats, { calendar })).dates,
    (await rotate(ctx, pushReceiptStats, { calendar })).dates,
  ];
  const warnings = () => house.main.ctx.alerts.recorded.map(({ identifier }) => identifier);
  expect(await rotateBoth()).toEqual([[day], [day]]);
  const { rows } = await sql`
    select tickets.queued, tickets.retried, tickets.succeeded as accepted, receipts.succeeded as confirmed
    from push_ticket_stats as tickets join push_receipt_stats as receipts using (retrieved_for)`.execute(
    house.sql.tables(),
  );
  expect(rows).toEqual([{ queued: 1, retried: 1, accepted: 1, confirmed: 1 }]);
  // A day that is stored in parts adds up as a whole.
  await house.redis.commands.set(raw(pushReceiptStats.earliest()), day);
  expect((await rotate(ctx, pushReceiptStats, { calendar })).dates).toEqual([day]);
  expect(warnings()).not.toContain("stats:mismatch");
});

test("a day whose numbers do not add up is stored as it is, and told of", async () => {
  const { ctx } = house.main;
  const calendar = calendarOf(ctx);
  const day = calendar.unixDate(house.clock.now()) + 10;
  await house.clock.advance(calendar.startOf(day) + 60 - house.clock.now());
  await house.queue(1);
  await house.run("send");
  await house.redis.commands.hincrby(raw(pushTicketStats.day(day)), "succeeded", 1);
  await house.redis.commands.hset(raw(pushReceiptStats.day(day)), "retried", 1);
  await house.redis.commands.set(raw(pushReceiptStats.earliest()), day);
  await house.clock.advance(2 * 86_400 + 1800);
  await rotate(ctx, pushTicketStats, { calendar });
  await rotate(ctx, pushReceiptStats, { calendar });
  const told = ctx.alerts.recorded.filter(({ identifier }) => identifier === "stats:mismatch");
  expect(told.map(({ text }) => text)).toEqual([
    expect.stringContaining("queued + retried is 1"),
    expect.stringContaining("retried + abandoned is 1"),
    expect.stringContaining("push_tickets.succeeded + retried is 3, and succeeded + "),
  ]);
});

test("the story of a notification names every stage with its time, its provider and why it failed", async () => {
  const begun = house.clock.now();
  house.sandbox.knobs.patch({ expo: { failNext: { status: 503, count: 1 } } });
  const queued = await enqueuePushes(house.main.ctx, [newPush("sandbox-slow-a"), newPush("good")], { callUid: "once" });
  await enqueuePushes(house.main.ctx, [newPush("sandbox-slow-a"), newPush("good")], { callUid: "once" });
  await house.run("send");
  await house.settleCallbacks();
  await live(4 * 1000, 100);
  await notesSettled(house.main.ctx);
  const uids = queued.ok ? queued.uids : [];
  const story = async (uid: string) =>
    (await storyOf(house.main.ctx, uid)).map(({ step, provider, detail }) => [step, provider, detail]);
  const sent = [
    ["queued", null, null],
    ["failed", "expo", "ServerError"],
    ["retried", null, null],
    ["accepted", "expo", null],
  ];
  expect(await story(uids[1]!)).toEqual([...sent, ["confirmed", "expo", null]]);
  const again = [
    ["failed", "expo", "NotReadyYet"],
    ["retried", null, null],
  ];
  expect(await story(uids[0]!)).toEqual([
    ...sent,
    ...again,
    ...again,
    ...again,
    ["failed", "expo", "NotReadyYet"],
    ["abandoned", null, null],
  ]);
  const [first] = await storyOf(house.main.ctx, uids[0]!);
  expect(first!.at).toBe(begun);
});

test("a process that keeps no stories sends all the same", async () => {
  const silent = house.another({ config: [[messageLogSettings.enabled, false]] as never });
  await enqueuePushes(silent.ctx, [newPush("quiet")]);
  await house.run("send", silent);
  expect(await house.redis.commands.exists(raw(messageLogKeys.buffer()))).toBe(0);
  expect(await house.length(keys.cold())).toBe(1);
});

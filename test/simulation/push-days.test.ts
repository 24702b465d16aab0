import { afterEach, expect, test } from "vitest";
import { calendarOf } from "../../src/mechanisms/dated-counters/index.ts";
import { keys } from "../../src/messaging/push/keys.ts";
import { newPush, openPushHouse } from "../../src/messaging/push/push.fixture.ts";
import { enqueuePushes, readFailure, readSuccess, retryOrAbandon } from "../../src/messaging/push/service.ts";
import { settings } from "../../src/messaging/push/settings.ts";
import { pushReceiptStats, pushTicketStats, stats } from "../../src/messaging/push/stats.ts";
import { EXPO_MESSAGE_FAULTS, EXPO_REQUEST_FAULTS } from "../../src/sandbox/faults.ts";
import {
  amid,
  daysOf,
  Ends,
  expectOrder,
  furnish,
  live,
  nightly,
  rotateAll,
  Taken,
  TIMEOUT,
  total,
  Weather,
  withoutDatabase,
} from "./days.ts";

let closing: () => Promise<void> = async () => {};
afterEach(() => closing());

test("a week of notifications through a bad provider: each ends once, and every day adds up", {
  timeout: TIMEOUT,
}, async () => {
  const house = await openPushHouse({ sql: true });
  closing = () => house.close();
  const weather = new Weather("push");
  const config = [[settings.maxPerSecond, 100_000]] as never;
  const main = house.another({ config });
  const { ctx } = main;
  await furnish(ctx.sql);
  const firstDate = calendarOf(ctx).unixDate(house.clock.now());
  const uids: string[] = [];
  const ends = new Ends();
  const taken = new Taken(house.sandbox, ({ text }) => text);
  let deathsOfSending = 0;

  const run = async (job: "send" | "ticket_hot_to_cold" | "check", faulty: boolean) => {
    const trouble = await amid(house, weather, faulty, {
      well: () => house.run(job, main),
      dying: (redis) => house.run(job, house.another({ redis, config })),
      withoutDatabase: () => house.run(job, { ...main, ctx: withoutDatabase(ctx) }),
    });
    if (job === "send" && (trouble === "death" || trouble === "connections")) deathsOfSending += 1;
  };
  const hear = async (faulty: boolean) => {
    for (let some = await house.takeCallbacks(); some.length > 0; some = await house.takeCallbacks())
      for (let from = 0; from < some.length; from += 500) {
        const heard = some.slice(from, from + 500);
        // A job whose process dies is delivered again, so after trouble the same callbacks run once more.
        const trouble = await amid(house, weather, faulty, {
          well: () => house.runCallbacks(heard, main),
          dying: (redis) => house.runCallbacks(heard, house.another({ redis, config })),
          withoutDatabase: () => house.runCallbacks(heard, { ...main, ctx: withoutDatabase(ctx) }),
        });
        if (trouble !== "none") await house.runCallbacks(heard, main);
        // Whoever calls back twice with one story gets the same answer, so asking again tells what the first decided.
        const failures = heard
          .filter(({ name }) => name.endsWith("_failure"))
          .map(({ kwargs }) => readFailure(kwargs.data_raw));
        const verdicts = await retryOrAbandon(ctx, failures);
        for (const [at, { attempt }] of failures.entries())
          if (verdicts[at] !== "retry") ends.note(attempt.uid, "failed");
        for (const { name, kwargs } of heard)
          if (name.endsWith("_success")) ends.note(readSuccess(kwargs.data_raw).attempt.uid, "succeeded");
      }
  };

  const night = (faulty: boolean) =>
    nightly(house, weather, faulty, {
      well: () => rotateAll(ctx, stats),
      dying: (redis) => rotateAll(house.another({ redis }).ctx, stats),
      withoutDatabase: () => rotateAll(withoutDatabase(ctx), stats),
    });
  const step = async (arriving: number, faulty: boolean, seconds: number) => {
    house.sandbox.knobs.reset();
    if (faulty) {
      const now = house.clock.now();
      house.sandbox.knobs.patch({
        expo: {
          faultRates: weather.shares(EXPO_REQUEST_FAULTS),
          messageFaultRates: weather.shares(EXPO_MESSAGE_FAULTS),
          ratePerSecond: weather.strikes() ? 1 : null,
          outage: weather.strikes(0.03) ? { from: now, until: now + seconds } : null,
          receiptDelaySeconds: weather.strikes() ? 2000 : 5,
          failNext: weather.strikes() ? { status: weather.oneOf([401, 403]), count: 1 } : null,
          malformed: weather.strikes(0.05) ? weather.oneOf(["errors", "item"] as const) : null,
        },
      });
      const pushes = Array.from({ length: arriving }, (_, at) =>
        newPush(`n${weather.below(1e6)}`, {
          contents: { title: "Good morning", body: `A minute for you ${uids.length + at}`, channel_id: "daily" },
        }),
      );
      for (let from = 0; from < pushes.length; from += 500) {
        const queued = await enqueuePushes(ctx, pushes.slice(from, from + 500));
        if (queued.ok) uids.push(...queued.uids);
      }
    }
    await run("send", faulty);
    await run("ticket_hot_to_cold", faulty);
    await run("check", faulty);
    await hear(faulty);
    await house.clock.advance(seconds);
  };
  await live("push", { step, night });

  const line = [keys.toSend(), keys.sendPurgatory(), keys.retrying(), keys.cold(), keys.hot(), keys.ticketPurgatory()];
  expect(await Promise.all(line.map((key) => house.length(key)))).toEqual(line.map(() => 0));
  ends.expectOnceEach(uids);
  for (const trouble of ["death", "database", "connections"] as const)
    expect(weather.struck[trouble]).toBeGreaterThan(0);
  expect(weather.deathsAtNight).toBeGreaterThan(1);

  const tickets = await daysOf(ctx, pushTicketStats, firstDate);
  const receipts = await daysOf(ctx, pushReceiptStats, firstDate);
  const passing = ["client_error_429", "server_error", "network_error"].map((cause) => `failed_due_to_${cause}`);
  for (const [at, ticket] of tickets.entries()) {
    const receipt = receipts[at]!;
    expect(ticket.of("queued", "retried")).toBe(ticket.of("succeeded") + ticket.failures());
    expect(ticket.of("retried", "abandoned")).toBe(ticket.of(...passing));
    expect(ticket.of("succeeded") + receipt.of("retried")).toBe(receipt.of("succeeded") + receipt.failures());
    expect(receipt.of("retried", "abandoned")).toBe(receipt.of("failed_due_to_not_ready_yet", ...passing));
  }
  expect(total(tickets, "queued")).toBe(uids.length);
  expect(total(receipts, "succeeded")).toBe(ends.succeeded);
  // A device gets a notification again only where a run died with it, or where the provider's answer was lost.
  const unanswered = total(tickets, "failed_due_to_network_error");
  expect(taken.repeats).toBeLessThanOrEqual(deathsOfSending * settings.window.default + unanswered);
  await expectOrder(ctx);
});

import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { expires, family, hash, integer, list, literal, mapOf, member, string } from "../../kernel/keyspace/index.ts";
import { calendarOf, defineDailyStats } from "../dated-counters/index.ts";
import { type TakenWebhook, WebhookDesk } from "./index.ts";

const keys = family("bell", {
  event: list("bell:event", member, { doc: "news" }),
  unprocessable: list("bell:webhook_unprocessable", member, { doc: "what makes no sense" }),
  seen: string("bell:webhook_seen:{id}", literal("1"), { doc: "came before", ttl: expires(600) }),
  day: hash("stats:bell_webhooks:daily:{unix_date}", mapOf(integer), { doc: "event to count" }),
  earliest: string("stats:bell_webhooks:daily:earliest", integer, { doc: "earliest day" }),
});
const stats = defineDailyStats({
  name: "bell_webhooks",
  table: "bell_webhook_stats",
  events: {
    received: {},
    verified: {},
    accepted: {},
    unprocessable: {},
    signature_missing: {},
    signature_invalid: {},
    body_parse_error: {},
    body_max_size_exceeded: {},
    body_read_error: {},
  },
  held: 2,
  keys,
});

let house: TestContext;
beforeAll(async () => {
  house = await openTestContext({ start: 1_700_000_000 });
});
beforeEach(() => house.flush());
afterAll(() => house.close());

function openDesk(ctx: KernelContext = house) {
  const told: string[] = [];
  const desk = new WebhookDesk(ctx, {
    stats,
    event: keys.event(),
    unprocessable: keys.unprocessable(),
    kept: 3,
    flagTtl: 600,
    queued: () => told.push("queued"),
    manyForged: (count) => told.push(`${count} forged`),
  });
  return { desk, told };
}

const now = () => house.clock.now();
const news = (raw: string, id?: string): TakenWebhook => ({
  at: now(),
  kind: "news",
  raw,
  ...(id === undefined ? {} : { flag: keys.seen({ id }) }),
});
const forged = (): TakenWebhook => ({ at: now(), kind: "refused", refusal: "signature_invalid" });
const listed = (key: string) => house.redis.commands.lrange(key, 0, -1);
async function counted(at = now()): Promise<Record<string, number>> {
  const held = await house.redis.commands.hgetall(stats.day(calendarOf(house).unixDate(at)));
  return Object.fromEntries(Object.entries(held).map(([event, count]) => [event, Number(count)]));
}

test("a burst becomes a few calls, and every webhook is counted and queued in its order", async () => {
  const { desk, told } = openDesk();
  const { commands } = house.redis;
  await commands.config("RESETSTAT");
  await Promise.all(Array.from({ length: 1200 }, (_, index) => desk.take(news(`n${index}`))));
  expect(await listed(keys.event())).toEqual(Array.from({ length: 1200 }, (_, index) => `n${index}`));
  expect(await counted()).toEqual({ received: 1200, verified: 1200, accepted: 1200 });
  const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await commands.info("commandstats"))?.[1];
  expect([Number(calls), told.length]).toEqual([3, 3]);
});

test("a repeat is counted and brings its news no second time until its flag is over", async () => {
  const { desk, told } = openDesk();
  await Promise.all([desk.take(news("a", "1")), desk.take(news("a", "1")), desk.take(news("b", "2"))]);
  await desk.take(news("a", "1"));
  expect(await listed(keys.event())).toEqual(["a", "b"]);
  expect(await counted()).toEqual({ received: 4, verified: 4, accepted: 4 });
  expect(told).toEqual(["queued"]);
  await house.clock.advance(601);
  await desk.take(news("a", "1"));
  expect(await listed(keys.event())).toEqual(["a", "b", "a"]);
});

test("of webhooks that make no sense the newest are kept", async () => {
  const { desk, told } = openDesk();
  for (const raw of ["1", "2", "3", "4", "5"]) await desk.take({ at: now(), kind: "senseless", raw });
  expect(await listed(keys.unprocessable())).toEqual(["5", "4", "3"]);
  expect(await counted()).toEqual({ received: 5, verified: 5, unprocessable: 5 });
  expect(told).toEqual([]);
});

test("each webhook counts on the day of its arrival, also in a group over midnight", async () => {
  const { desk } = openDesk();
  const midnight = calendarOf(house).startOf(calendarOf(house).unixDate(now()) + 1);
  await house.clock.advance(midnight - now() + 0.01);
  await Promise.all([midnight - 0.01, midnight, midnight].map((at) => desk.take({ at, kind: "nothing" })));
  expect(await counted(midnight - 1)).toEqual({ received: 1, verified: 1, accepted: 1 });
  expect(await counted()).toEqual({ received: 2, verified: 2, accepted: 2 });
});

test("twenty forged webhooks in a row are told once, and one that fits begins a new row", async () => {
  const { desk, told } = openDesk();
  for (let count = 0; count < 19; count++) await desk.take(forged());
  await desk.take({ at: now(), kind: "nothing" });
  for (let count = 0; count < 19; count++) await desk.take(forged());
  expect(told).toEqual([]);
  await Promise.all(Array.from({ length: 30 }, () => desk.take(forged())));
  expect(told).toEqual(["20 forged"]);
});

test("whatever comes, every webhook has one outcome, and what was accepted with news is in the queue", async () => {
  const taken = fc.oneof(
    fc.constantFrom("signature_missing", "body_read_error").map((refusal) => ({ kind: "refused", refusal }) as const),
    fc.string().map((raw) => ({ kind: "senseless", raw }) as const),
    fc.constant({ kind: "nothing" } as const),
    fc.string().map((raw) => ({ kind: "news", raw }) as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(taken, { maxLength: 40 }), async (all) => {
      await house.flush();
      const { desk } = openDesk();
      await Promise.all(all.map((each) => desk.take({ at: now(), ...each })));
      const { received = 0, verified = 0, accepted = 0, unprocessable = 0, ...refused } = await counted();
      const sum = Object.values(refused).reduce((total, count) => total + count, 0);
      expect([received, verified, received - verified]).toEqual([all.length, accepted + unprocessable, sum]);
      expect(await listed(keys.event())).toEqual(all.flatMap((each) => (each.kind === "news" ? [each.raw] : [])));
    }),
    { numRuns: 40 },
  );
});

test("a process that dies at any command has answered nobody, and the sender that comes again finds its news once", async () => {
  let answered = 0;
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: () => house.flush(),
    async life(redis) {
      const { desk } = openDesk(house.process({ redis }));
      const answers = await Promise.allSettled([desk.take(news("a", "1")), desk.take(forged())]);
      answered = answers.filter(({ status }) => status === "fulfilled").length;
    },
    async afterlife({ kind }) {
      expect([answered, (await counted()).received ?? 0]).toEqual([0, kind === "before" ? 0 : 2]);
      await openDesk().desk.take(news("a", "1"));
      expect(await listed(keys.event())).toEqual(["a"]);
    },
  });
  expect(deaths).toBe(2);
});

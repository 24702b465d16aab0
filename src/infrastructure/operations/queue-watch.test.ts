import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { domains } from "../../domains.ts";
import { Config } from "../../kernel/config.ts";
import { Catalogue, family, list, text, zset } from "../../kernel/keyspace/index.ts";
import { keys } from "./keys.ts";
import { warnOfQueues, watchedIn } from "./queue-watch.ts";
import { settings } from "./settings.ts";

const AGE = 900;
const LONG = 10;
const bells = family("bells", {
  toRing: list("bells:to_ring", text, { doc: "bells that wait to be rung" }),
  retrying: zset("bells:retrying", text, { doc: "bells to ring again", score: "unix time from which", due: true }),
  cracked: list("bells:cracked", text, { doc: "bells that nobody can ring, newest first", lingers: true }),
  rung: zset("bells:rung", text, { doc: "bells that were rung", score: "unix time at which" }),
});
const catalogue = new Catalogue([{ name: "bells", keys: [bells] }]);

let world: TestContext;
beforeAll(async () => {
  world = await openTestContext();
});
afterAll(() => world.close());
beforeEach(() => world.flush());

/** What a look warns of. Each is another worker's, which remembers nothing by itself. */
async function look(): Promise<readonly string[]> {
  const config = new Config([]).with([settings.queueAge, AGE], [settings.queueLength, LONG]);
  const ctx = Object.assign(world.process({ config }), { catalogue });
  await warnOfQueues(ctx);
  return ctx.alerts.recorded.map(({ identifier, text }) => `${identifier} ${text}`);
}
const wait = (seconds: number) => world.clock.advance(seconds);
const push = (...entries: string[]) => world.redis.commands.rpush(bells.toRing(), ...entries);

test("a queue whose first entry is not taken for fifteen minutes is warned of once an hour, until it is taken", async () => {
  await push("a", "b");
  expect(await look()).toEqual([]);
  await wait(AGE - 1);
  expect(await look()).toEqual([]);
  await wait(1);
  expect(await look()).toEqual([
    "queue:old nobody has taken the first entry of bells:to_ring for 900 s, and 2 wait: see the last run of its job",
  ]);
  await wait(3599);
  expect(await look()).toEqual([]);
  await wait(1);
  expect(await look()).toHaveLength(1);
  await wait(3600);
  await world.redis.commands.lpop(bells.toRing());
  expect(await look()).toEqual([]);
  // The next one has its own time.
  await wait(AGE);
  expect(await look()).toHaveLength(1);
  // Nothing is remembered of a queue that is empty once the hour is over.
  await world.redis.commands.del(bells.toRing());
  await look();
  await wait(3600);
  await look();
  expect(await world.redis.commands.exists(keys.queues())).toBe(0);
});

test("a queue from which entries are taken is not warned of however long ago they came, unless it stays too long", async () => {
  const entries = (count: number, name: string) => Array.from({ length: count }, (_, at) => `${name}${at}`);
  for (const round of ["a", "b", "c", "d"]) {
    await world.redis.commands.del(bells.toRing());
    await push(...entries(LONG, round));
    expect(await look()).toEqual([]);
    await wait(600);
  }
  for (const [round, warnings] of [
    ["e", 0],
    ["f", 0],
    ["g", 1],
    ["h", 0],
  ] as const) {
    await world.redis.commands.del(bells.toRing());
    await push(...entries(LONG + 1, round));
    const told = await look();
    expect(told, round).toHaveLength(warnings);
    for (const text of told)
      expect(text).toContain("queue:long bells:to_ring has held more than 10 entries for 1200 s");
    await wait(600);
  }
  // One look that finds it short, and its time begins anew.
  await world.redis.commands.ltrim(bells.toRing(), 0, 3);
  expect(await look()).toEqual([]);
  await wait(3600);
  await world.redis.commands.del(bells.toRing());
  await push(...entries(LONG + 1, "i"));
  expect(await look()).toEqual([]);
});

test("of a sorted set only what is due waits, and what is meant to stay is not warned of", async () => {
  const now = world.clock.now();
  for (let at = 0; at <= LONG; at++) await world.redis.commands.zadd(bells.retrying(), now + 7200, `later${at}`);
  await world.redis.commands.zadd(bells.rung(), now - 86_400, "yesterday");
  await world.redis.commands.lpush(bells.cracked(), "old");
  for (let waited = 0; waited <= 7200; waited += AGE) {
    expect(await look()).toEqual([]);
    await wait(AGE);
  }
  expect(await look()).toEqual([
    expect.stringContaining("queue:old nobody has taken the first entry of bells:retrying"),
  ]);
});

test("every queue of the channels, of touches and of links is watched, and nothing that only remembers is", () => {
  const watched = watchedIn(new Catalogue(domains).entries).map(({ pattern }) => pattern);
  expect(watched.sort()).toEqual([
    "daily_reminders:handover",
    "daily_reminders:queued",
    "daily_reminders:send_purgatory",
    "email:event",
    "email:event:early",
    "email:reconciliation_purgatory",
    "email:retrying",
    "email:retrying:urgent",
    "email:send_purgatory",
    "email:to_send",
    "email:to_send:urgent",
    "messages:log",
    "push:message_attempts:purgatory",
    "push:message_attempts:retrying",
    "push:message_attempts:to_send",
    "push:push_tickets:hot",
    "push:push_tickets:purgatory",
    "sms:event",
    "sms:event:early",
    "sms:event:purgatory",
    "sms:pending",
    "sms:recovery",
    "sms:recovery_purgatory",
    "sms:retrying",
    "sms:send_purgatory",
    "sms:to_send",
    "touch:handover:email",
    "touch:handover:push",
    "touch:handover:sms",
    "touch:log_purgatory",
    "touch:send_purgatory",
    "touch:to_log",
    "touch:to_send",
    "touch_links:delayed_clicks",
    "touch_links:delayed_clicks_purgatory",
    "touch_links:persist_purgatory",
    "touch_links:to_persist",
  ]);
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dieAtEveryCommand, mortalConnection } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { openRedis } from "./connection.ts";
import { defineScript, type Script } from "./script.ts";

let ctx: TestContext;
let add: Script<readonly ["total"], readonly ["by"], number>;
let set: Script<readonly ["total"], readonly ["to"], number>;
let keep: Script<readonly ["kept"], readonly ["...values"], number>;

beforeAll(async () => {
  ctx = await openTestContext();
  const lua = (name: string, body: string) => {
    const path = join(ctx.server.directory, `${name}.lua`);
    writeFileSync(path, body);
    return pathToFileURL(path);
  };
  writeFileSync(join(ctx.server.directory, "fragment.lua"), "local function amount(text) return tonumber(text) end\n");
  add = defineScript({
    name: "test.add",
    file: lua("add", "-- include: fragment.lua\nreturn redis.call('INCRBY', KEYS[1], amount(ARGV[1]))"),
    keys: ["total"],
    args: ["by"],
    idempotent: false,
    reply: (total: number) => total,
  });
  set = defineScript({
    name: "test.set",
    file: lua("set", "redis.call('SET', KEYS[1], ARGV[1]) return tonumber(ARGV[1])"),
    keys: ["total"],
    args: ["to"],
    idempotent: true,
    reply: (total: number) => total,
  });
  keep = defineScript({
    name: "test.keep",
    file: lua("keep", "for at = 1, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end return #ARGV"),
    keys: ["kept"],
    args: ["...values"],
    idempotent: false,
    reply: (count: number) => count,
  });
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

test("a key with a TTL obeys the virtual clock", async () => {
  await ctx.redis.commands.set("a", "1", "PX", 60_000);
  await ctx.clock.advance(59);
  expect(await ctx.redis.commands.pttl("a")).toBeLessThanOrEqual(1000);
  await ctx.clock.advance(1);
  expect(await ctx.redis.commands.get("a")).toBeNull();
});

test("scripts get every text, number and byte as it was given, few or many, long or short, alone or beside others", async () => {
  const value = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.string({ unit: "binary-ascii", maxLength: 60 }),
    fc
      .tuple(fc.string({ unit: "grapheme", maxLength: 3 }), fc.integer({ min: 0, max: 3000 }))
      .map(([end, size]) => "x".repeat(size) + end),
    fc.integer(),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  );
  const values = fc.array(value, { maxLength: 100 });
  await fc.assert(
    fc.asyncProperty(values, values, async (some, others) => {
      await ctx.flush();
      const counts = [ctx.redis.run(keep, ["some"], some), ctx.redis.run(keep, ["others"], others)];
      expect(await Promise.all(counts)).toEqual([some.length, others.length]);
      for (const [key, given] of [["some", some] as const, ["others", others] as const])
        expect(await ctx.redis.commands.lrangeBuffer(key, 0, -1)).toEqual(
          given.map((one) => (Buffer.isBuffer(one) ? one : Buffer.from(String(one)))),
        );
    }),
    { numRuns: 50 },
  );
});

test("a death before a command leaves it undone, a death after it leaves it done", async () => {
  const seen: string[] = [];
  const deaths = await dieAtEveryCommand(ctx.server, {
    prepare: () => ctx.flush(),
    life: async (connection) => {
      await connection.commands.incr("n");
      await connection.commands.incr("n");
    },
    afterlife: async (death) => {
      seen.push(`${death.at} ${death.kind} ${await ctx.redis.commands.get("n")}`);
    },
  });
  expect(deaths).toBe(4);
  expect(seen).toEqual(["1 before null", "1 after 1", "2 before 1", "2 after 2"]);
});

test("a script with a fragment runs, and the server learns it again after it forgot it", async () => {
  expect(await ctx.redis.run(add, ["total"], [5])).toBe(5);
  await ctx.redis.commands.script("FLUSH");
  expect(await ctx.redis.run(add, ["total"], [5])).toBe(10);
  await ctx.redis.commands.script("FLUSH");
  const many = await Promise.all(Array.from({ length: 20 }, () => ctx.redis.run(add, ["total"], [1])));
  expect(many).toEqual(Array.from({ length: 20 }, (_, n) => 11 + n));
});

test("a lost reply is reported as an unknown outcome and never repeated unless that is harmless", async () => {
  const first = await mortalConnection(ctx.server, { dieAt: 1, death: "after" });
  await expect(first.run(add, ["total"], [5])).rejects.toMatchObject({ code: "outcome_unknown" });
  expect(await ctx.redis.commands.get("total")).toBe("5");
  const second = await mortalConnection(ctx.server, { dieAt: 1, death: "after" });
  await expect(second.run(set, ["total"], [7])).rejects.toMatchObject({ code: "redis_unavailable" });
  expect(await ctx.redis.commands.get("total")).toBe("7");
});

test("a key of the wrong type is named as such and nothing is deleted", async () => {
  await ctx.redis.commands.rpush("total", "x");
  await expect(ctx.redis.run(add, ["total"], [1])).rejects.toMatchObject({ code: "wrong_type" });
  expect(await ctx.redis.commands.lrange("total", 0, -1)).toEqual(["x"]);
});

test("commands and scripts work again by themselves after the server restarts", async () => {
  const { redis } = ctx.process();
  expect(await redis.run(add, ["total"], [1])).toBe(1);
  await ctx.server.crashAndRestart();
  const total = await eventually(() => redis.run(set, ["total"], [3]).catch(() => undefined));
  expect(total).toBe(3);
  expect(await redis.run(add, ["total"], [1])).toBe(4);
});

test("a subscriber hands out messages, survives a restart, and tells its listeners before messages flow again", async () => {
  const { subscriber } = ctx.process();
  const events: string[] = [];
  subscriber.onReconnect(() => void events.push("reconnected"));
  const stop = await subscriber.subscribe("news", (message) => events.push(message.toString()));
  await ctx.redis.commands.publish("news", "one");
  await eventually(() => events.length === 1);
  await ctx.server.crashAndRestart();
  await eventually(async () => {
    await ctx.redis.commands.publish("news", "two").catch(() => {});
    return events.includes("two");
  });
  expect(events.slice(0, 3)).toEqual(["one", "reconnected", "two"]);
  expect(subscriber.healthy).toBe(true);
  await stop();
  await ctx.redis.commands.publish("news", "three");
  await ctx.redis.commands.ping();
  expect(events).not.toContain("three");
});

test("a command that was given up while Redis was away is not sent when it is back", async () => {
  const patient = openRedis({ kind: "socket", path: ctx.server.server.socketPath }, { patience: 0.05 });
  await patient.ready();
  await ctx.server.server.kill();
  await eventually(() => patient.commands.status !== "ready");
  await expect(patient.commands.set("late", "1")).rejects.toThrow("Command timed out");
  await expect(patient.run(add, ["total"], [1])).rejects.toMatchObject({ code: "outcome_unknown" });
  await ctx.server.crashAndRestart();
  // On a busy machine its patience may end before an answer comes, so it asks until one does.
  await eventually(() => patient.commands.ping());
  expect(await ctx.redis.commands.exists("late", "total")).toBe(0);
  await patient.close();
});

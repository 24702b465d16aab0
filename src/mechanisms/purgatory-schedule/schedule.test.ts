import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { expires, family, json, list, string, zset } from "../../kernel/keyspace/index.ts";
import { type Fence, ownerLock, unlessFenced } from "../lock/index.ts";
import { runBatches } from "../purgatory-queue/index.ts";
import { listQuarantined, quarantineOf } from "../quarantine/index.ts";
import { promoteDue, purgatorySchedule } from "./index.ts";

const Ring = json(z.object({ n: z.int() }), { canonical: true });
const keys = family("bells", {
  due: zset("bells:due", Ring, { doc: "rings to come", score: "when" }),
  purgatory: zset("bells:due_purgatory", Ring, { doc: "rings being rung", score: "when" }),
  hot: list("bells:hot", Ring, { doc: "rings to ring now" }),
  lock: string("bells:lock", ownerLock, { doc: "the ringer", ttl: expires(120), lock: "owner" }),
});
const rings = purgatorySchedule({ schedule: keys.due(), purgatory: keys.purgatory(), codec: Ring });
const LOCK_ID = "a".repeat(22);
const fence: Fence = { key: keys.lock(), lockId: LOCK_ID };
const foreign: Fence = { key: keys.lock(), lockId: "b".repeat(22) };

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());
const reset = async () => {
  await ctx.flush();
  await ctx.redis.commands.set(keys.lock(), `{"acquired_at":1,"hostname":"h","lock_id":"${LOCK_ID}"}`, "EX", 120);
};
beforeEach(reset);

const ring = (n: number, dueAt: number) => ({ value: { n }, dueAt });
const contents = async (key: string) => {
  const flat = await ctx.redis.commands.zrange(key, 0, "-1", "WITHSCORES");
  return flat.flatMap((raw, at) => (at % 2 === 0 ? [[JSON.parse(raw).n, Number(flat[at + 1])]] : []));
};

test("scheduling overwrites, keeps, or only moves earlier, as its mode says", async () => {
  expect(await rings.add(ctx, [ring(1, 100), ring(2, 200)])).toEqual({ added: 2, changed: 0 });
  expect(await rings.add(ctx, [ring(1, 150), ring(3, 300)])).toEqual({ added: 1, changed: 1 });
  expect(await rings.add(ctx, [ring(1, 50), ring(4, 400)], "NX")).toEqual({ added: 1, changed: 0 });
  expect(await rings.add(ctx, [ring(1, 120), ring(2, 250)], "LT")).toEqual({ added: 0, changed: 1 });
  expect(await contents(keys.due())).toEqual([
    [1, 120],
    [2, 200],
    [3, 300],
    [4, 400],
  ]);
});

test("a shift moves what is due, the earliest first and with its score, and later shifts fill up", async () => {
  await rings.add(ctx, [ring(3, 100.123457), ring(1, 50), ring(2, 70), ring(4, 101)]);
  expect(await rings.shift(ctx, fence, 2, 100.5)).toEqual({ ok: true, size: 2, recovered: false });
  expect(await rings.shift(ctx, fence, 2, 100.5)).toEqual({ ok: true, size: 2, recovered: true });
  expect(await rings.shiftMore(ctx, fence, 500, 2, 100.5)).toMatchObject({ size: 2, moved: 0, recovered: false });
  expect(await rings.shiftMore(ctx, fence, 500, 5, 100.5)).toMatchObject({ size: 3, moved: 1, recovered: false });
  expect((await rings.read(ctx)).map(({ value, dueAt }) => [value.n, dueAt])).toEqual([
    [1, 50],
    [2, 70],
    [3, 100.123457],
  ]);
  expect(await contents(keys.due())).toEqual([[4, 101]]);
});

test("members are acked by value or go back with a new time, and only while they are in the purgatory", async () => {
  await rings.add(ctx, [ring(1, 1), ring(2, 2), ring(3, 3)]);
  await rings.shift(ctx, fence, 2, 10);
  expect(await rings.ack(ctx, ['{"n":1}', '{"n":3}'])).toBe(1);
  const back = [
    { raw: '{"n":2}', dueAt: 900 },
    { raw: '{"n":3}', dueAt: 900 },
  ];
  expect(await rings.reschedule(ctx, foreign, back)).toEqual({ ok: false, reason: "fenced" });
  expect(await rings.reschedule(ctx, fence, back)).toEqual({ ok: true, moved: 1 });
  expect(await contents(keys.due())).toEqual([
    [3, 3],
    [2, 900],
  ]);
  expect(await contents(keys.purgatory())).toEqual([]);
  expect(await rings.shift(ctx, foreign, 5, 1000)).toEqual({ ok: false, reason: "fenced" });
  expect(await rings.shiftMore(ctx, foreign, 5, 5, 1000)).toEqual({ ok: false, reason: "fenced" });
});

test("promotion moves due members to a list and says why it stopped", async () => {
  await rings.add(
    ctx,
    [1, 2, 3, 4, 5].map((n) => ring(n, n * 10)),
  );
  const promote = (dueBy: number, max: number, maxLength?: number) =>
    promoteDue(ctx, keys.due(), keys.hot(), { dueBy, max, maxLength });
  expect(await promote(40, 2)).toEqual({ moved: 2, stop: "max_count" });
  expect(await promote(40, 2, 3)).toEqual({ moved: 1, stop: "backpressure" });
  expect(await promote(40, 2, 3)).toEqual({ moved: 0, stop: "backpressure" });
  expect(await promote(40, 2)).toEqual({ moved: 1, stop: "max_score" });
  expect(await promote(100, 2)).toEqual({ moved: 1, stop: "src_empty" });
  expect(await promote(100, 2)).toEqual({ moved: 0, stop: "src_empty" });
  expect(await ctx.redis.commands.lrange(keys.hot(), 0, -1)).toEqual([1, 2, 3, 4, 5].map((n) => `{"n":${n}}`));
});

test("members that cannot be read are set aside and do not block the rest", async () => {
  await rings.add(ctx, [ring(1, 1)]);
  await ctx.redis.commands.zadd(keys.due(), 0, '{"n": 1}', 0, Buffer.from([0xff]));
  await rings.shift(ctx, fence, 10, 10);
  expect((await rings.read(ctx)).map((entry) => entry.value.n)).toEqual([1]);
  expect(await contents(keys.purgatory())).toEqual([[1, 1]]);
  expect((await listQuarantined(ctx, keys.due())).map((entry) => Object.keys(entry)[2])).toEqual(["raw_base64", "raw"]);
});

test("a member is in exactly one of schedule, purgatory, quarantine and done in any order of steps", async () => {
  const step = fc.record({
    op: fc.constantFrom("add", "shift", "shiftMore", "read", "ack", "reschedule" as const),
    n: fc.integer({ min: 1, max: 6 }),
    ours: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      await reset();
      const where = new Map<string, "schedule" | "purgatory" | "aside" | "done">();
      let next = 0;
      const inPlace = (place: string) => [...where].filter(([, at]) => at === place).map(([raw]) => raw);
      for (const { op, n, ours } of steps) {
        const mine = ours ? fence : foreign;
        if (op === "add") {
          // Every third member is not canonical JSON and cannot be read.
          const raws = Array.from({ length: n }, () => (++next % 3 === 0 ? `{ "n":${next}}` : `{"n":${next}}`));
          for (const raw of raws) where.set(raw, "schedule");
          await ctx.redis.commands.zadd(keys.due(), ...raws.flatMap((raw) => [JSON.parse(raw).n, raw]));
        } else if (op === "shift" || op === "shiftMore") {
          const held = inPlace("purgatory").length;
          const room = op === "shift" ? (held === 0 ? n : 0) : Math.max(0, Math.min(n, 8 - held));
          const due = inPlace("schedule").sort((a, b) => JSON.parse(a).n - JSON.parse(b).n);
          if (ours) for (const raw of due.slice(0, room)) where.set(raw, "purgatory");
          if (op === "shift") await rings.shift(ctx, mine, n);
          else await rings.shiftMore(ctx, mine, n, 8);
        } else if (op === "read") {
          for (const raw of inPlace("purgatory")) if (raw.includes(" ")) where.set(raw, "aside");
          await rings.read(ctx);
        } else {
          const some = inPlace("purgatory").slice(0, n);
          if (op === "ack") {
            for (const raw of some) where.set(raw, "done");
            expect(await rings.ack(ctx, some)).toBe(some.length);
          } else {
            if (ours) for (const raw of some) where.set(raw, "schedule");
            await rings.reschedule(
              ctx,
              mine,
              some.map((raw) => ({ raw, dueAt: JSON.parse(raw).n })),
            );
          }
        }
        const commands = ctx.redis.commands;
        expect((await commands.zrange(keys.due(), 0, "-1")).sort()).toEqual(inPlace("schedule").sort());
        expect((await commands.zrange(keys.purgatory(), 0, "-1")).sort()).toEqual(inPlace("purgatory").sort());
        const aside = (await commands.lrange(quarantineOf(keys.due()), 0, -1)).map((entry) => JSON.parse(entry).raw);
        expect(aside.sort()).toEqual(inPlace("aside").sort());
      }
    }),
    { numRuns: 40 },
  );
});

test("a ringer that dies at any command loses no ring and leaves none in two places", async () => {
  const rung: number[] = [];
  const work = (process: KernelContext) =>
    runBatches(process, {
      runner: "runners.bells.ring",
      shuttingDown: () => false,
      exhausted: () => false,
      claim: (first) => (first ? rings.shift(process, fence, 2, 1000) : rings.shiftMore(process, fence, 2, 2, 1000)),
      handle: async () => {
        const entries = await rings.read(process);
        rung.push(...entries.map((entry) => entry.value.n));
        // Even rings are done for good, odd ones ring again later.
        await rings.ack(
          process,
          entries.filter(({ value }) => value.n % 2 === 0).map(({ raw }) => raw),
        );
        const odd = entries.filter(({ value }) => value.n % 2 === 1);
        unlessFenced(
          await rings.reschedule(
            process,
            fence,
            odd.map(({ raw }) => ({ raw, dueAt: 2000 })),
          ),
        );
        return undefined;
      },
    });
  const deaths = await dieAtEveryCommand(ctx.server, {
    prepare: async () => {
      await reset();
      rung.length = 0;
      await rings.add(
        ctx,
        [1, 2, 3, 4, 5].map((n) => ring(n, n)),
      );
    },
    life: async (mortal) => {
      await work(ctx.process({ redis: mortal }));
    },
    afterlife: async () => {
      await work(ctx);
      expect(await contents(keys.due())).toEqual([
        [1, 2000],
        [3, 2000],
        [5, 2000],
      ]);
      expect(await contents(keys.purgatory())).toEqual([]);
      expect(new Set(rung)).toEqual(new Set([1, 2, 3, 4, 5]));
    },
  });
  expect(deaths).toBeGreaterThan(20);
});

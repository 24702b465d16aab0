import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { VirtualClock } from "../../kernel/clock.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import {
  expires,
  family,
  hash,
  integer,
  json,
  list,
  mapOf,
  set,
  string,
  text,
  zset,
} from "../../kernel/keyspace/index.ts";
import { type Fence, Locks, lockErrors, ownerLock } from "../lock/index.ts";
import { listQuarantined, quarantineOf } from "../quarantine/index.ts";
import { purgatoryQueue, runBatches, type StopReason } from "./index.ts";

const keys = family("bells", {
  toSend: list("bells:to_send", json(z.object({ n: z.int() })), { doc: "waiting" }),
  purgatory: list("bells:send_purgatory", json(z.object({ n: z.int() })), { doc: "being sent" }),
  retrying: zset("bells:retrying", json(z.object({ n: z.int() })), { doc: "to be tried again", score: "when" }),
  sent: list("bells:sent", text, { doc: "sent" }),
  jobs: list("bells:jobs", text, { doc: "callbacks" }),
  seen: set("bells:seen", text, { doc: "who was reached" }),
  counts: hash("bells:counts", mapOf(integer), { doc: "counters" }),
  total: string("bells:total", integer, { doc: "a counter" }),
  earliest: string("bells:earliest", integer, { doc: "a pointer" }),
  lock: string("bells:lock", ownerLock, { doc: "the sender", ttl: expires(120), lock: "owner" }),
});
const bells = purgatoryQueue({ queue: keys.toSend(), purgatory: keys.purgatory(), codec: keys.toSend.codec });
const LOCK_ID = "a".repeat(22);
const fence: Fence = { key: keys.lock(), lockId: LOCK_ID };
const foreign: Fence = { key: keys.lock(), lockId: "b".repeat(22) };

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext();
});
afterAll(() => ctx.close());
beforeEach(async () => {
  await ctx.flush();
  ctx.alerts.recorded.length = 0;
  await takeLock();
});

const takeLock = () =>
  ctx.redis.commands.set(keys.lock(), `{"acquired_at":1,"hostname":"h","lock_id":"${LOCK_ID}"}`, "EX", 120);
const numbers = (...ns: number[]) => ns.map((n) => ({ n }));
const contents = async (key: string) =>
  (await ctx.redis.commands.lrange(key, 0, -1)).map((raw) => (raw.startsWith("{") ? JSON.parse(raw).n : raw));

test("a push beyond the limit appends nothing", async () => {
  expect(await bells.push(ctx, numbers(1, 2), { maxLength: 3 })).toEqual({ ok: true, length: 2 });
  expect(await bells.push(ctx, numbers(3, 4), { maxLength: 3 })).toEqual({ ok: false, reason: "backpressure" });
  expect(await contents(keys.toSend())).toEqual([1, 2]);
  expect(await bells.push(ctx, numbers(3), { maxLength: 3 })).toEqual({ ok: true, length: 3 });
});

test("the first claim of a run moves a batch in order, or finds what a dead run left and moves nothing", async () => {
  await bells.push(ctx, numbers(1, 2, 3, 4, 5));
  expect(await bells.claim(ctx, fence, 2)).toEqual({ ok: true, size: 2, recovered: false });
  expect(await contents(keys.purgatory())).toEqual([1, 2]);
  expect(await bells.claim(ctx, fence, 4)).toEqual({ ok: true, size: 2, recovered: true });
  expect(await contents(keys.toSend())).toEqual([3, 4, 5]);
});

test("later claims of a run append up to the limit and never speak of recovery", async () => {
  await bells.push(ctx, numbers(1, 2, 3, 4, 5));
  await bells.claim(ctx, fence, 2);
  expect(await bells.claimMore(ctx, fence, 500, 4)).toEqual({ ok: true, size: 4, recovered: false, moved: 2 });
  expect(await bells.claimMore(ctx, fence, 500, 4)).toEqual({ ok: true, size: 4, recovered: false, moved: 0 });
  expect(await contents(keys.purgatory())).toEqual([1, 2, 3, 4]);
  expect(await contents(keys.toSend())).toEqual([5]);
});

test("a claim lets retries whose delay is over join the end of the queue first", async () => {
  const retried = purgatoryQueue({ ...bells, codec: keys.toSend.codec, retrying: keys.retrying() });
  const now = ctx.clock.now();
  await retried.push(ctx, numbers(1));
  await ctx.redis.commands.zadd(keys.retrying(), now, '{"n":3}', now - 1, '{"n":2}', now + 1, '{"n":4}');
  expect(await retried.claim(ctx, fence, 2)).toEqual({ ok: true, size: 2, recovered: false });
  expect([await contents(keys.purgatory()), await contents(keys.toSend())]).toEqual([[1, 2], [3]]);
  await ctx.clock.advance(1);
  expect(await retried.claim(ctx, fence, 2)).toMatchObject({ size: 2, recovered: true });
  expect(await ctx.redis.commands.zcard(keys.retrying())).toBe(1);
  expect(await retried.claimMore(ctx, fence, 500, 4)).toMatchObject({ size: 4, moved: 2 });
  expect(await contents(keys.purgatory())).toEqual([1, 2, 3, 4]);
});

test("a batch larger than one call is claimed in several, in order", async () => {
  for (let from = 0; from < 1200; from += 400)
    await bells.push(ctx, numbers(...Array.from({ length: 400 }, (_, index) => from + index)));
  expect(await bells.claimBatch(ctx, fence, true, 1100)).toEqual({ ok: true, size: 1100, recovered: false });
  expect(await contents(keys.purgatory())).toEqual(Array.from({ length: 1100 }, (_, index) => index));
  await expect(async () => bells.claim(ctx, fence, 501)).rejects.toThrow(RangeError);
});

test("acks remove from the left by count, anywhere by value, or everything", async () => {
  await bells.push(ctx, numbers(1, 2, 3, 4, 5, 6));
  await bells.claim(ctx, fence);
  expect(await bells.ack(ctx, fence, 2)).toEqual({ ok: true, remaining: 4 });
  expect(await bells.ackValues(ctx, ['{"n":5}', '{"n":1}'])).toEqual([true, false]);
  expect(await contents(keys.purgatory())).toEqual([3, 4, 6]);
  expect(await bells.ackAll(ctx, fence)).toEqual({ ok: true, removed: 3 });
  expect(await contents(keys.purgatory())).toEqual([]);
});

test("an ack with effects pushes, counts and acks in one step", async () => {
  await bells.push(ctx, numbers(1, 2, 3));
  await bells.claim(ctx, fence);
  await ctx.redis.commands.set(keys.earliest(), "20500");
  expect(
    await bells.ackWith(ctx, fence, 2, [
      { kind: "push", key: keys.sent(), items: ["one", "two"] },
      { kind: "push", key: keys.jobs(), items: ['{"name":"runners.callback"}'] },
      { kind: "push_front", key: keys.jobs(), items: ["urgent"] },
      { kind: "push", key: keys.sent(), items: [] },
      { kind: "add", key: keys.seen(), members: ["ann"] },
      { kind: "count", key: keys.counts(), by: { sent: 2, failed: 0 } },
      { kind: "count_one", key: keys.total(), by: 2 },
      { kind: "lower", key: keys.earliest(), to: 20_499 },
    ]),
  ).toEqual({ ok: true, remaining: 1 });
  expect(await contents(keys.purgatory())).toEqual([3]);
  expect(await contents(keys.sent())).toEqual(["one", "two"]);
  expect(await ctx.redis.commands.lrange(keys.jobs(), 0, -1)).toEqual(["urgent", '{"name":"runners.callback"}']);
  expect(await ctx.redis.commands.smembers(keys.seen())).toEqual(["ann"]);
  expect(await ctx.redis.commands.hgetall(keys.counts())).toEqual({ sent: "2" });
  expect(await ctx.redis.commands.get(keys.total())).toBe("2");
  expect(await ctx.redis.commands.get(keys.earliest())).toBe("20499");
});

test("an effect on a key of the wrong type leaves everything as it was", async () => {
  await bells.push(ctx, numbers(1));
  await bells.claim(ctx, fence);
  await ctx.redis.commands.set(keys.counts(), "not a hash");
  const attempt = bells.ackWith(ctx, fence, 1, [
    { kind: "push", key: keys.sent(), items: ["one"] },
    { kind: "count", key: keys.counts(), by: { sent: 1 } },
  ]);
  await expect(attempt).rejects.toSatisfy(kernelErrors.wrong_type.matches);
  expect(await contents(keys.purgatory())).toEqual([1]);
  expect(await contents(keys.sent())).toEqual([]);
});

test("claiming one answers the purgatory's head first, and quarantines heads that cannot be read", async () => {
  await bells.pushRaw(ctx, ["broken", '{"n":1}', '{"n":2}']);
  const first = await bells.claimOne(ctx, fence);
  expect(first.ok && first.entry?.value).toEqual({ n: 1 });
  const again = await bells.claimOne(ctx, fence);
  expect(again.ok && again.entry?.value).toEqual({ n: 1 });
  await bells.ack(ctx, fence, 1);
  await bells.claimOne(ctx, fence);
  await bells.ack(ctx, fence, 1);
  expect(await bells.claimOne(ctx, fence)).toEqual({ ok: true, entry: undefined });
  expect(await listQuarantined(ctx, keys.toSend())).toMatchObject([{ raw: "broken", queue: keys.toSend() }]);
});

test("a batch that could not be begun waits again at the head in its order", async () => {
  await bells.push(ctx, numbers(1, 2, 3, 4));
  await bells.claim(ctx, fence, 3);
  expect(await bells.putBack(ctx, fence)).toEqual({ ok: true, returned: 3 });
  expect(await contents(keys.toSend())).toEqual([1, 2, 3, 4]);
  expect(await contents(keys.purgatory())).toEqual([]);
});

test("without the lock nothing that counts items has an effect", async () => {
  await bells.push(ctx, numbers(1, 2, 3));
  await bells.claim(ctx, fence, 2);
  const attempts = [
    () => bells.claim(ctx, foreign),
    () => bells.claimMore(ctx, foreign),
    () => bells.claimOne(ctx, foreign),
    () => bells.ack(ctx, foreign, 1),
    () => bells.ackAll(ctx, foreign),
    () => bells.ackWith(ctx, foreign, 1, [{ kind: "push", key: keys.sent(), items: ["x"] }]),
    () => bells.putBack(ctx, foreign),
  ];
  for (const attempt of attempts) expect(await attempt()).toEqual({ ok: false, reason: "fenced" });
  await ctx.redis.commands.del(keys.lock());
  expect(await bells.ackAll(ctx, fence)).toEqual({ ok: false, reason: "fenced" });
  expect([await contents(keys.toSend()), await contents(keys.purgatory())]).toEqual([[3], [1, 2]]);
  expect(await contents(keys.sent())).toEqual([]);
});

test("entries that cannot be read are set aside whatever their bytes, with one alert an hour", async () => {
  const bytes = Buffer.from([0xff, 0x00, 0xfe]);
  await bells.pushRaw(ctx, ['{"n":1}', bytes, '{"m":1}', '{"n":2}']);
  await bells.claim(ctx, fence);
  expect((await bells.read(ctx)).map((entry) => entry.value.n)).toEqual([1, 2]);
  expect(await bells.ack(ctx, fence, 2)).toEqual({ ok: true, remaining: 0 });
  const entries = await listQuarantined(ctx, keys.toSend());
  expect(entries.map((entry) => ("raw" in entry ? entry.raw : Buffer.from(entry.raw_base64, "base64")))).toEqual([
    '{"m":1}',
    bytes,
  ]);
  expect(new Set(entries.map((entry) => entry.id)).size).toBe(2);
  await bells.pushRaw(ctx, ["broken"]);
  await bells.claim(ctx, fence);
  await bells.read(ctx);
  expect(ctx.alerts.identifiers()).toEqual(["quarantine:bells:to_send"]);
  await ctx.clock.advance(3600);
  await takeLock();
  await bells.pushRaw(ctx, ["broken again"]);
  await bells.claim(ctx, fence);
  await bells.read(ctx);
  expect(ctx.alerts.identifiers()).toEqual(["quarantine:bells:to_send", "quarantine:bells:to_send"]);
});

test("a process that was stopped for 130 s finds its acks fenced and removes nothing", async () => {
  await ctx.redis.commands.del(keys.lock());
  await bells.push(ctx, numbers(1, 2, 3));
  // A stopped process does not see time pass: it has a clock of its own that stands still.
  const stopped = ctx.process({ clock: new VirtualClock() });
  const outcome = await new Locks(stopped).withLock(keys.lock(), { kind: "owner", wait: "fail" }, async (lock) => {
    await bells.claim(stopped, lock.fence, 2);
    await ctx.clock.advance(130);
    const other = ctx.process();
    const took = await new Locks(other).withLock(keys.lock(), { kind: "owner", wait: "fail" }, async (theirs) => {
      const claimed = await bells.claim(other, theirs.fence, 2);
      const late = await bells.ack(stopped, lock.fence, 2);
      return { claimed, late, left: await contents(keys.purgatory()) };
    });
    return { ...took, afterwards: await bells.ackAll(stopped, lock.fence) };
  });
  expect(outcome).toEqual({
    claimed: { ok: true, size: 2, recovered: true },
    late: { ok: false, reason: "fenced" },
    left: [1, 2],
    afterwards: { ok: false, reason: "fenced" },
  });
});

test("an item is in exactly one of queue, purgatory, quarantine and done, whatever is done in whatever order", async () => {
  const step = fc.oneof(
    fc.record({ op: fc.constant("push" as const), broken: fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }) }),
    fc.record({
      op: fc.constantFrom("claim", "claimMore", "ack", "ackValues" as const),
      n: fc.integer({ min: 1, max: 5 }),
    }),
    fc.record({ op: fc.constantFrom("read", "ackAll", "putBack", "claimOne" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ step, ours: fc.boolean() }), { maxLength: 25 }), async (steps) => {
      await ctx.flush();
      await takeLock();
      let [queue, purgatory, aside]: [string[], string[], string[]] = [[], [], []];
      const done = new Set<string>();
      let next = 0;
      const finish = (items: string[]) => {
        for (const item of items) done.add(item);
      };
      const isBroken = (item: string) => !item.startsWith("{");
      const setAside = (count: number) => {
        const seen = purgatory.slice(0, count);
        aside = [...seen.filter(isBroken).reverse(), ...aside];
        purgatory = [...seen.filter((item) => !isBroken(item)), ...purgatory.slice(count)];
      };
      for (const { step, ours } of steps) {
        const mine = ours ? fence : foreign;
        if (step.op === "push") {
          const items = step.broken.map((broken) => (broken ? `broken ${++next}` : `{"n":${++next}}`));
          queue.push(...items);
          await bells.pushRaw(ctx, items);
        } else if (step.op === "read") {
          setAside(500);
          await bells.read(ctx);
        } else if (step.op === "ackValues") {
          const items = purgatory.slice(-step.n);
          finish(items);
          purgatory = purgatory.slice(0, purgatory.length - items.length);
          expect(await bells.ackValues(ctx, items)).toEqual(items.map(() => true));
        } else {
          const before = purgatory.length;
          if (step.op === "claim") {
            if (ours && before === 0) purgatory = queue.splice(0, step.n);
            const expected = { ok: true, size: purgatory.length, recovered: before > 0 };
            expect(await bells.claim(ctx, mine, step.n)).toEqual(ours ? expected : { ok: false, reason: "fenced" });
          } else if (step.op === "claimMore") {
            if (ours) purgatory.push(...queue.splice(0, Math.max(0, Math.min(step.n, 8 - before))));
            await bells.claimMore(ctx, mine, step.n, 8);
          } else if (step.op === "claimOne") {
            while (ours && (purgatory.length > 0 || queue.length > 0)) {
              if (purgatory.length === 0) purgatory = queue.splice(0, 1);
              if (!isBroken(purgatory[0]!)) break;
              setAside(1);
            }
            await bells.claimOne(ctx, mine);
          } else if (step.op === "ack") {
            if (ours) finish(purgatory.splice(0, step.n));
            await bells.ack(ctx, mine, step.n);
          } else if (step.op === "ackAll") {
            if (ours) finish(purgatory.splice(0));
            await bells.ackAll(ctx, mine);
          } else {
            if (ours) queue = [...purgatory.splice(0), ...queue];
            await bells.putBack(ctx, mine);
          }
        }
        const [inQueue, inPurgatory, inQuarantine] = await Promise.all(
          [keys.toSend(), keys.purgatory(), quarantineOf(keys.toSend())].map((key) =>
            ctx.redis.commands.lrange(key, 0, -1),
          ),
        );
        const raws = inQuarantine!.map((entry) => JSON.parse(entry).raw);
        expect([inQueue, inPurgatory, raws]).toEqual([queue, purgatory, aside]);
        expect(queue.length + purgatory.length + aside.length + done.size).toBe(next);
      }
    }),
    { numRuns: 40 },
  );
});

test("a run ends for the first of its reasons in their order, and works leftovers off first", async () => {
  const alerts = ctx.process().alerts;
  const reasons: Record<Exclude<StopReason, "list_exhausted">, boolean> = {
    signal: true,
    time_exhausted: true,
    backpressure: true,
    credentials: true,
  };
  const handled: number[][] = [];
  const run = () =>
    runBatches(
      { alerts },
      {
        runner: "runners.bells.send",
        shuttingDown: () => reasons.signal,
        exhausted: () => reasons.time_exhausted,
        backpressure: async () => reasons.backpressure,
        missingCredentials: () => reasons.credentials,
        claim: (first) => bells.claimBatch(ctx, fence, first, 2),
        handle: async (batch) => {
          const entries = await bells.read(ctx, 0, batch.size);
          handled.push(entries.map((entry) => entry.value.n));
          await bells.ack(ctx, fence, entries.length);
          return undefined;
        },
      },
    );
  await bells.push(ctx, numbers(1, 2, 3, 4, 5));
  await bells.claim(ctx, fence, 3);
  for (const reason of ["signal", "time_exhausted", "backpressure", "credentials"] as const) {
    expect(await run()).toEqual({ stopReason: reason, batches: 0, recovered: 0 });
    reasons[reason] = false;
  }
  expect(handled).toEqual([]);
  expect(await run()).toEqual({ stopReason: "list_exhausted", batches: 2, recovered: 3 });
  expect(handled).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  expect(alerts.recorded.map((alert) => alert.identifier)).toEqual(["runners.bells.send:recovering"]);
  await ctx.redis.commands.del(keys.lock());
  await expect(run()).rejects.toSatisfy(lockErrors.lock_lost.matches);
});

test("a run that leaves part of a batch unfinished fills it up and does not take it for a dead run's", async () => {
  await bells.push(ctx, numbers(1, 2, 3, 4));
  const seen: number[][] = [];
  const result = await runBatches(ctx, {
    runner: "runners.bells.send",
    shuttingDown: () => false,
    exhausted: () => false,
    claim: (first) => bells.claimBatch(ctx, fence, first, 2),
    handle: async () => {
      seen.push((await bells.read(ctx)).map((entry) => entry.value.n));
      await bells.ack(ctx, fence, 1);
      return undefined;
    },
  });
  expect(seen).toEqual([[1, 2], [2, 3], [3, 4], [4]]);
  expect(result).toEqual({ stopReason: "list_exhausted", batches: 4, recovered: 0 });
  expect(ctx.alerts.identifiers()).toEqual([]);
});

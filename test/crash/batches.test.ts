import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import type { JobContext } from "../../src/jobs/index.ts";
import { VirtualClock } from "../../src/kernel/clock.ts";
import { expires, family, json, list, string } from "../../src/kernel/keyspace/index.ts";
import { lockErrors, ownerLock, unlessFenced } from "../../src/mechanisms/lock/index.ts";
import { type BatchRunResult, purgatoryQueue, runBatches } from "../../src/mechanisms/purgatory-queue/index.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { eventually } from "../harness/facts.ts";
import { jobProcess } from "../harness/jobs.ts";
import { passTimeUntil } from "../harness/time.ts";
import { CrashFleet, gate, numbered } from "./fleet.ts";

const Item = json(z.object({ n: z.int() }));
const keys = family("chimes", {
  toRing: list("chimes:to_ring", Item, { doc: "waiting" }),
  purgatory: list("chimes:ring_purgatory", Item, { doc: "being rung" }),
  lock: string("chimes:lock", ownerLock, { doc: "the ringer", ttl: expires(120), lock: "owner" }),
});
const chimes = purgatoryQueue({ queue: keys.toRing(), purgatory: keys.purgatory(), codec: keys.toRing.codec });
const ITEMS = 400;
const STEP = 50;
const numbers = Array.from({ length: ITEMS }, (_, n) => n);

let house: TestContext;
let fleet: CrashFleet;
beforeAll(async () => {
  house = await openTestContext();
  fleet = new CrashFleet(house);
});
beforeEach(async () => {
  await house.flush();
  await chimes.push(
    house,
    numbers.map((n) => ({ n })),
  );
});
afterEach(() => fleet.stopAll());
afterAll(() => house.close());

/** What the runs of one test rang, and how they ended. */
interface Bells {
  readonly rung: number[];
  readonly results: BatchRunResult[];
  /** Asked after every step of a batch. */
  after(acked: number): Promise<void>;
}

/** A send job as every channel has it: under its lock, one large batch, acknowledged step by step. */
const ringer = (bells: Bells) =>
  numbered("ring", async (ctx) => {
    const result = await ctx.locks.withLock(keys.lock(), { kind: "owner", wait: "fail" }, ({ fence }) =>
      runBatches(ctx, {
        runner: "runners.ring",
        shuttingDown: () => ctx.shuttingDown(),
        exhausted: () => ctx.budget.exhausted(),
        claim: (first) => chimes.claimBatch(ctx, fence, first, ITEMS),
        handle: (batch) => ring(ctx, bells, batch.size, fence),
      }),
    );
    bells.results.push(result);
  });

async function ring(ctx: JobContext, bells: Bells, size: number, fence: { key: string; lockId: string }) {
  for (let done = 0; done < size; done += STEP) {
    if (ctx.shuttingDown()) return "signal" as const;
    const entries = await chimes.read(ctx, 0, STEP);
    bells.rung.push(...entries.map(({ value }) => value.n));
    unlessFenced(await chimes.ack(ctx, fence, entries.length));
    await bells.after(done + entries.length);
  }
  return undefined;
}

const purgatory = async () =>
  (await house.redis.commands.lrange(keys.purgatory(), 0, -1)).map((raw) => JSON.parse(raw).n);

function newBells(after: Bells["after"] = async () => {}): Bells {
  return { rung: [], results: [], after };
}

test("a send job that is told to stop ends within its step, keeps the rest in order, and the next run begins with it", async () => {
  const reached = gate();
  const goOn = gate();
  const bells = newBells(async (acked) => {
    if (acked !== 150) return;
    reached.open();
    await goOn.opened;
  });
  const runner = ringer(bells);
  const first = await fleet.start({ runners: [runner] });
  await first.jobs.enqueue(runner, { n: 1 });
  await reached.opened;
  const stopping = first.worker.stop();
  goOn.open();
  await stopping;
  expect(bells.results).toMatchObject([{ stopReason: "signal", batches: 1 }]);
  expect(bells.rung).toEqual(numbers.slice(0, 150));
  expect(await purgatory()).toEqual(numbers.slice(150));
  expect(await house.redis.commands.exists(keys.lock())).toBe(0);
  expect(await fleet.atRest()).toBe(true);

  const next = newBells();
  const again = ringer(next);
  const second = await fleet.start({ runners: [again] });
  await second.jobs.enqueue(again, { n: 1 });
  await eventually(() => next.results.length === 1);
  expect(next.results).toMatchObject([{ stopReason: "list_exhausted", recovered: 250 }]);
  expect(next.rung).toEqual(numbers.slice(150));
  expect(second.ctx.alerts.identifiers()).toEqual(["runners.ring:recovering"]);
});

test("when a send job dies, its lock is gone after 120 s at most and the next run recovers the rest", async () => {
  const reached = gate();
  const bells = newBells(async (acked) => {
    if (acked !== 150) return;
    reached.open();
    await new Promise(() => {});
  });
  const runner = ringer(bells);
  const dying = await fleet.startMortal({ runners: [runner] });
  await dying.jobs.enqueue(runner, { n: 1 });
  await reached.opened;
  await dying.kill();
  expect(await purgatory()).toEqual(numbers.slice(150));
  const gone = await passTimeUntil(house, async () => (await house.redis.commands.exists(keys.lock())) === 0);
  expect(gone).toBeLessThanOrEqual(121);

  const next = newBells();
  await fleet.start({ runners: [ringer(next)] });
  await passTimeUntil(house, () => next.results.length === 1, { limit: 20 });
  expect(next.rung).toEqual(numbers.slice(150));
  expect(next.results).toMatchObject([{ recovered: 250 }]);
  expect(await house.redis.commands.exists(keys.toRing(), keys.purgatory(), keys.lock())).toBe(0);
});

test("a process that stood still for 130 s finds its acknowledgement refused, and removes nothing of its successor", async () => {
  // A stopped process does not see time pass: its clock stands still.
  const frozen = jobProcess(house, { runners: [], overrides: { clock: new VirtualClock(house.clock.now()) } });
  const late = frozen.ctx.locks.withLock(keys.lock(), { kind: "owner", wait: "fail" }, async ({ fence }) => {
    await chimes.claimBatch(frozen.ctx, fence, true, ITEMS);
    await chimes.ack(frozen.ctx, fence, 150);
    await house.clock.advance(130);
    const successor = jobProcess(house, { runners: [] });
    await successor.ctx.locks.withLock(keys.lock(), { kind: "owner", wait: "fail" }, async (theirs) => {
      expect(await chimes.claimBatch(successor.ctx, theirs.fence, true, ITEMS)).toMatchObject({
        size: 250,
        recovered: true,
      });
      expect(await chimes.ack(frozen.ctx, fence, STEP)).toEqual({ ok: false, reason: "fenced" });
      expect(await purgatory()).toEqual(numbers.slice(150));
    });
    unlessFenced(await chimes.ack(frozen.ctx, fence, STEP));
  });
  await expect(late).rejects.toSatisfy(lockErrors.lock_lost.matches);
  expect(await purgatory()).toEqual(numbers.slice(150));
});

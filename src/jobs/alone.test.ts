import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { eventually } from "../../test/harness/facts.ts";
import { jobProcess } from "../../test/harness/jobs.ts";
import { expires, family, list, member, string, zset } from "../kernel/keyspace/index.ts";
import { type Lock, lockErrors, ownerLock } from "../mechanisms/lock/index.ts";
import type { StopReason } from "../mechanisms/purgatory-queue/index.ts";
import { runAlone } from "./alone.ts";
import type { JobContext } from "./context.ts";
import type { Held } from "./held.ts";
import { jobKeys } from "./keys.ts";
import { recurring } from "./recurring.ts";
import { runContexts } from "./run-context.ts";
import { defineRunner } from "./runner.ts";

const keys = family("bell", {
  lock: string("bell:lock", ownerLock, { doc: "one ringer", ttl: expires(120), lock: "owner" }),
  queue: list("bell:queue", member, { doc: "what to ring" }),
  later: zset("bell:later", member, { doc: "what to ring later", score: "when" }),
});
const ring = defineRunner({
  name: "runners.ring",
  category: 2,
  kwargs: z.strictObject({}),
  doc: "of a test",
  run: async () => {},
});

let house: TestContext;
beforeAll(async () => {
  house = await openTestContext();
});
beforeEach(() => house.flush());
afterAll(() => house.close());

/** A process, and a run of the job in it. */
function startRun(stopping = () => false) {
  const { ctx } = jobProcess(house, { runners: [ring], recurring: [recurring(ring, {}, { seconds: [0] })] });
  const held = { runner: ring, job: { name: ring.name, kwargs: {}, queued_at: 0 }, startedAt: ctx.clock.monotonic() };
  const run = runContexts(ctx, stopping)(held as unknown as Held);
  const alone = (work: (run: JobContext, lock: Lock) => Promise<StopReason>) =>
    runAlone(run, ring, { lock: keys.lock(), queues: [keys.queue()], schedules: [keys.later()], work });
  return { run, alone };
}

const push = () => house.redis.commands.rpush(keys.queue(), "a");
/** How often the job waits to be started at once; nudges are sent without waiting, so a round trip comes first. */
async function startsAtOnce(): Promise<number> {
  await house.clock.advance(0.1);
  await house.redis.commands.ping();
  return house.redis.commands.llen(jobKeys.hot());
}
const starts = () => eventually(async () => (await startsAtOnce()) === 1);

test("what came while the job held its lock starts it again at once, and an empty queue does not", async () => {
  const { alone } = startRun();
  expect(await alone(async () => "list_exhausted")).toBe("list_exhausted");
  expect(await startsAtOnce()).toBe(0);
  await alone(async () => {
    await push();
    return "list_exhausted";
  });
  await starts();
  expect(await house.redis.commands.exists(keys.lock())).toBe(0);
});

test("a run whose time is over goes on at once, but one that something stood in the way of waits", async () => {
  await push();
  for (const reason of ["time_exhausted", "credentials", "backpressure", "signal"] as const) {
    expect(await startRun().alone(async () => reason)).toBe(reason);
    expect([reason, await startsAtOnce()]).toEqual([reason, 0]);
  }
  await startRun().alone(async () => {
    await house.clock.advance(50);
    return "time_exhausted";
  });
  await starts();
});

test("what is due later starts one run then, and what is due already starts it at once", async () => {
  const { alone } = startRun();
  const now = house.clock.now();
  await house.redis.commands.zadd(keys.later(), now + 30, "b");
  for (let times = 0; times < 3; times++) await alone(async () => "list_exhausted");
  const delayed = () => house.redis.commands.zrange(jobKeys.delayed(), 0, "-1", "WITHSCORES");
  expect(await delayed()).toHaveLength(2);
  expect(Number((await delayed())[1])).toBeCloseTo(now + 30, 3);
  await house.redis.commands.zadd(keys.later(), now + 10, "a");
  await alone(async () => "list_exhausted");
  expect((await delayed()).filter((_, at) => at % 2 === 1).map(Number)).toEqual([now + 10, now + 30]);
  expect(await startsAtOnce()).toBe(0);
  await house.clock.advance(11);
  await alone(async () => "list_exhausted");
  await starts();
});

test("a second run is skipped while the first works, and the first works for both", async () => {
  const [first, second] = [startRun(), startRun()];
  await first.alone(async () => {
    await push();
    const refused = second.alone(async () => "list_exhausted");
    await expect(refused).rejects.toSatisfy((error) => lockErrors.lock_held.matches(error));
    return "list_exhausted";
  });
  await starts();
});

test("a lost lock ends the work like a shutdown, wakes it from its rest, and starts nothing", async () => {
  await push();
  const { alone } = startRun();
  const seen: unknown[] = [];
  const ended = alone(async (run, lock) => {
    seen.push(run.shuttingDown(), run.signal.aborted);
    await house.redis.commands.set(
      lock.key,
      JSON.stringify({ acquired_at: 1, hostname: "b", lock_id: "b".repeat(22) }),
    );
    const rested = run.sleep(3600);
    await house.clock.advance(31);
    seen.push(await rested, run.shuttingDown(), run.signal.aborted, run.job.name, run.budget.exhausted());
    return "signal";
  });
  expect(await ended).toBe("lock_lost");
  expect(seen).toEqual([false, false, false, true, true, ring.name, false]);
  expect(await startsAtOnce()).toBe(0);
});

test("a shutdown reaches the work that holds a lock", async () => {
  let stopping = false;
  const { alone } = startRun(() => stopping);
  await alone(async (run) => {
    expect(run.shuttingDown()).toBe(false);
    stopping = true;
    return run.shuttingDown() ? "signal" : "list_exhausted";
  }).then((reason) => expect(reason).toBe("signal"));
});

test("work that throws leaves the lock free and the queue to the schedule", async () => {
  await push();
  await expect(startRun().alone(() => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await house.redis.commands.exists(keys.lock())).toBe(0);
  expect(await startsAtOnce()).toBe(0);
});

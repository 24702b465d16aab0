import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { decimal, family, hash, mapOf, text } from "../../kernel/keyspace/index.ts";
import { readReport, startRun } from "./index.ts";

const keys = family("report_test", {
  push: hash("stats:report_test:push_job", mapOf(text), {
    doc: "the last run of a push job",
    report: { runner: "runners.test.push", prefix: "last_", unit: "seconds" },
  }),
  email: hash("stats:report_test:email_job", mapOf(text), {
    doc: "the last run of an email job",
    report: { runner: "runners.test.email", unit: "milliseconds" },
  }),
  other: hash("stats:report_test:other", mapOf(decimal), { doc: "not a report" }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ start: 1_772_000_000.25 });
});
beforeEach(() => ctx.flush());
afterAll(() => ctx.close());

const state = async (locked: boolean) => (await readReport(ctx, keys.email, { locked })).state;

it("a run goes from never over running to ok, and a run that throws leaves last_failed", async () => {
  expect(await state(false)).toBe("never");
  const run = await startRun(ctx, keys.email);
  expect(await state(true)).toBe("running");
  expect(await state(false)).toBe("last_failed");
  await ctx.clock.advance(1.5);
  await run.finish({ stopReason: "list_exhausted", counts: { attempted: 0 } });
  expect(await state(false)).toBe("ok");
  await ctx.clock.advance(60);
  await startRun(ctx, keys.email);
  expect(await state(false)).toBe("last_failed");
  expect((await readReport(ctx, keys.email, { locked: false })).counts).toEqual({ attempted: "0" });
});

it("fields carry the prefix and the unit of their family, as decimal text and without expiry", async () => {
  const [push, email] = await Promise.all([startRun(ctx, keys.push), startRun(ctx, keys.email)]);
  expect(await ctx.redis.commands.hgetall(keys.push())).toEqual({ last_started_at: String(ctx.clock.now()) });
  await ctx.clock.advance(2.5);
  await push.finish({ stopReason: "time_exhausted", counts: { attempted: 12 } });
  await email.finish({ stopReason: "signal", counts: { attempted: 3 } });
  const finished = String(ctx.clock.now());
  expect(await ctx.redis.commands.hgetall(keys.push())).toMatchObject({
    last_finished_at: finished,
    last_running_time: "2.5",
    last_attempted: "12",
    last_stop_reason: "time_exhausted",
  });
  expect(await ctx.redis.commands.hgetall(keys.email())).toMatchObject({
    finished_at: finished,
    running_time: "2500",
    attempted: "3",
    stop_reason: "signal",
  });
  for (const key of [keys.push, keys.email])
    expect((await readReport(ctx, key, { locked: false })).runningTime).toBe(2.5);
  expect(await ctx.redis.commands.pttl(keys.push())).toBe(-1);
});

it("a key that is not declared as a report is refused", async () => {
  await expect(startRun(ctx, keys.other)).rejects.toThrow(/not declared as a run report/);
});

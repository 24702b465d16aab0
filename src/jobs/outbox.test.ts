import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { jobProcess } from "../../test/harness/jobs.ts";
import { passTimeUntil } from "../../test/harness/time.ts";
import { migrate } from "../kernel/sql/index.ts";
import { jobKeys } from "./keys.ts";
import { defineRunner } from "./runner.ts";
import { type JobTables, jobMigrations } from "./tables.ts";

let house: TestContext;
beforeAll(async () => {
  house = await openTestContext({ sql: true });
  await migrate(house.sql, [{ domain: "jobs", migrations: jobMigrations }]);
});
beforeEach(async () => {
  await house.flush();
  await db().deleteFrom("job_outbox").execute();
});
afterAll(() => house.close());

const db = () => house.sql.tables<JobTables>();
const send = defineRunner({
  name: "runners.send",
  category: 2,
  doc: "of a test",
  kwargs: z.object({ n: z.number() }),
  run: async () => {},
});
const queuedNumbers = async () =>
  (await house.redis.commands.lrange(jobKeys.hot(), 0, -1)).map((raw) => JSON.parse(raw).kwargs.n as number);
const waitingRows = async () => (await db().selectFrom("job_outbox").select("id").execute()).length;

test("a job written in a transaction is queued once that commits, and never when it rolls back", async () => {
  const { jobs } = jobProcess(house, { runners: [send] });
  await db()
    .transaction()
    .execute(async (tx) => {
      await jobs.enqueueIn(tx as never, send, { n: 1 });
    });
  const rolledBack = db()
    .transaction()
    .execute(async (tx) => {
      await jobs.enqueueIn(tx as never, send, { n: 2 });
      throw new Error("changed my mind");
    });
  await expect(rolledBack).rejects.toThrow("changed my mind");
  await jobs.outbox.relayAll();
  expect(await queuedNumbers()).toEqual([1]);
  expect(await waitingRows()).toBe(0);
  const flags = await house.redis.commands.keys("jobs:relayed:*");
  expect(flags).toHaveLength(1);
  expect(await house.redis.commands.ttl(flags[0]!)).toBeLessThanOrEqual(3600);
});

test("the relay starts by itself soon after the rows are written", async () => {
  const { jobs } = jobProcess(house, { runners: [send] });
  await jobs.enqueueIn(db() as never, send, { n: 1 });
  await passTimeUntil(house, async () => (await queuedNumbers()).length === 1, { step: 0.05, limit: 1 });
});

test("a delayed job of the outbox sleeps until it is due", async () => {
  const { jobs } = jobProcess(house, { runners: [send] });
  await jobs.enqueueIn(db() as never, send, { n: 1 }, { delay: 60 });
  await jobs.outbox.relayAll();
  expect(await queuedNumbers()).toEqual([]);
  const [, due] = await house.redis.commands.zrange(jobKeys.delayed(), "0", "-1", "WITHSCORES");
  expect(Number(due)).toBeCloseTo(house.clock.now() + 60, 3);
});

test("a relay that died after Redis did its part is repeated without a second job", async () => {
  const { jobs, ctx } = jobProcess(house, { runners: [send] });
  for (let n = 1; n <= 3; n++) await jobs.enqueueIn(db() as never, send, { n });
  const rows = await db().selectFrom("job_outbox").selectAll().execute();
  await jobs.outbox.relayAll();
  // The same rows once more, as they would still be there if the transaction of the first relay had been lost.
  await db()
    .insertInto("job_outbox")
    .values(rows.map(({ uid, raw }) => ({ uid, raw, due_at: null })))
    .execute();
  for (const { uid } of rows) await ctx.redis.commands.set(jobKeys.relayed({ uid }), "1", "EX", 604_800);
  await jobs.outbox.relayAll();
  expect(await queuedNumbers()).toEqual([1, 2, 3]);
  expect(await waitingRows()).toBe(0);
});

test("more rows than one batch are relayed in their order", async () => {
  const { jobs } = jobProcess(house, { runners: [send] });
  await db()
    .insertInto("job_outbox")
    .values(Array.from({ length: 1200 }, (_, n) => ({ uid: `row-${n}`, raw: jobs.encode(send, { n }), due_at: null })))
    .execute();
  expect(await jobs.outbox.relayAll()).toBe(1200);
  expect(await queuedNumbers()).toEqual(Array.from({ length: 1200 }, (_, n) => n));
});

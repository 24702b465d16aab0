import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { jobKeys } from "../../src/jobs/index.ts";
import { type JobTables, jobMigrations } from "../../src/jobs/tables.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { migrate } from "../../src/kernel/sql/index.ts";
import { dieAtEveryCommand } from "../harness/chaos.ts";
import { dieAtEveryStatement } from "../harness/chaos-sql.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { jobProcess } from "../harness/jobs.ts";
import { CrashFleet, numbered, numbersOf } from "./fleet.ts";

let house: TestContext;
let fleet: CrashFleet;
beforeAll(async () => {
  house = await openTestContext({ sql: true });
  await migrate(house.sql, [{ domain: "jobs", migrations: jobMigrations }]);
  await house.sql.script("create table orders (n int primary key);\n");
  fleet = new CrashFleet(house);
});
afterAll(() => house.close());

const noted = numbered("noted", async () => {});
const processOf = (overrides: Partial<KernelContext> = {}) => jobProcess(house, { runners: [noted], overrides });

async function empty(): Promise<void> {
  await house.flush();
  await house.sql.script("delete from job_outbox;\ndelete from orders;\n");
}

/** An order and its two jobs, one of them for later, in one transaction. */
async function order(overrides: Partial<KernelContext>, n: number): Promise<void> {
  const { ctx, jobs } = processOf(overrides);
  await ctx.sql
    .tables<{ orders: { n: number } }>()
    .transaction()
    .execute(async (tx) => {
      await tx.insertInto("orders").values({ n }).execute();
      await jobs.enqueueIn(tx as never, noted, { n });
      await jobs.enqueueIn(tx as never, noted, { n: n + 100 }, { delay: 50 });
    });
}

const rows = async () =>
  (await house.sql.tables<JobTables>().selectFrom("job_outbox").select(sql`count(*)`.as("count")).executeTakeFirst())!
    .count;

async function expectRelayedOnce(numbers: number[], where: string): Promise<void> {
  await processOf().jobs.outbox.relayAll();
  await processOf().jobs.outbox.relayAll();
  const { hot, delayed } = await fleet.snapshot();
  expect(numbersOf(hot), where).toEqual(numbers);
  expect(numbersOf(delayed), where).toEqual(numbers.map((n) => n + 100));
  expect(Number(await rows()), where).toBe(0);
}

test("a relay that dies at any command queues every committed job exactly once", async () => {
  const deaths = await dieAtEveryCommand(house.server, {
    prepare: async () => {
      await empty();
      for (const n of [1, 2, 3]) await order({}, n);
    },
    life: async (redis) => void (await processOf({ redis }).jobs.outbox.relayAll()),
    afterlife: ({ at, kind }) => expectRelayedOnce([1, 2, 3], `at command ${at}, ${kind}`),
  });
  expect(deaths).toBeGreaterThanOrEqual(4);
});

test("a relay that dies at any statement queues every committed job exactly once", async () => {
  let flagged = 0;
  const deaths = await dieAtEveryStatement(house.sql, {
    prepare: async () => {
      await empty();
      for (const n of [1, 2, 3]) await order({}, n);
    },
    life: async (mortal) => void (await processOf({ sql: mortal }).jobs.outbox.relayAll()),
    afterlife: async ({ statement, kind }) => {
      // The dangerous moment: queued, and the rows are still there.
      if ((await house.redis.commands.llen(jobKeys.hot())) === 3 && Number(await rows()) === 6) flagged++;
      await expectRelayedOnce([1, 2, 3], `at ${statement}, ${kind}`);
    },
  });
  expect(deaths).toBeGreaterThanOrEqual(8);
  expect(flagged).toBeGreaterThan(0);
});

test("a process that dies at any statement of its transaction queues its jobs exactly when its rows are there", async () => {
  const outcomes = new Set<number>();
  const deaths = await dieAtEveryStatement(house.sql, {
    prepare: empty,
    life: (mortal) => order({ sql: mortal }, 7),
    afterlife: async ({ statement, kind }) => {
      const orders = await house.sql.tables<{ orders: { n: number } }>().selectFrom("orders").select("n").execute();
      outcomes.add(orders.length);
      await expectRelayedOnce(
        orders.map(({ n }) => n),
        `at ${statement}, ${kind}`,
      );
    },
  });
  expect(deaths).toBeGreaterThanOrEqual(8);
  expect([...outcomes].sort()).toEqual([0, 1]);
});

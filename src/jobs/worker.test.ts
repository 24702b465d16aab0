import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { openTestContext, type TestContext } from "../../test/harness/context.ts";
import { eventually } from "../../test/harness/facts.ts";
import { jobProcess } from "../../test/harness/jobs.ts";
import { defineRunner } from "./runner.ts";

let house: TestContext;
beforeAll(async () => {
  house = await openTestContext({ sql: true });
});
beforeEach(() => house.flush());
afterAll(() => house.close());

const keysLeft = async () => (await house.redis.commands.keys("*")).sort();

test("a thousand jobs on four workers run exactly once each and leave nothing behind", async () => {
  const seen = new Map<number, number>();
  const count = defineRunner({
    name: "runners.count",
    category: 2,
    doc: "counts",
    kwargs: z.object({ n: z.number() }),
    async run(_ctx, { n }) {
      seen.set(n, (seen.get(n) ?? 0) + 1);
    },
  });
  const fleet = [1, 2, 3, 4].map(() => jobProcess(house, { runners: [count] }));
  await fleet[0]!.jobs.enqueueMany(
    count,
    Array.from({ length: 1000 }, (_, n) => ({ n })),
  );
  for (const { worker } of fleet) await worker.start();
  await eventually(() => seen.size === 1000);
  for (const { worker } of fleet) await worker.stop();
  expect([...seen.values()].every((times) => times === 1)).toBe(true);
  expect(await keysLeft()).toEqual([]);
});

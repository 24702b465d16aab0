import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { jobKeys } from "../../jobs/index.ts";
import { Catalogue } from "../../kernel/keyspace/index.ts";
import { watchQueueLengths } from "./queue-lengths.ts";

let world: TestContext;
beforeEach(async () => {
  world = await openTestContext();
});
afterEach(() => world.close());

const watched = () =>
  Object.create(world, { catalogue: { value: new Catalogue([{ name: "jobs", keys: [jobKeys] }]) } }) as TestContext & {
    catalogue: Catalogue;
  };

/** What a scraper reads of the gauge, by key. */
async function scrape(): Promise<Record<string, number>> {
  const lines = (await world.metrics.text()).split("\n");
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, key, value] = /^carillon_queue_length\{key="([^"]+)"\} (\d+)$/.exec(line) ?? [];
      return key === undefined ? [] : [[key, Number(value)]];
    }),
  );
}

test("a scrape tells the length of every queue, at most five seconds old", async () => {
  const { commands } = world.redis;
  const stop = watchQueueLengths(watched());
  await commands.rpush(jobKeys.hot(), "a", "b");
  await commands.rpush(jobKeys.hotByCategory({ category: 1 }), "c");
  await commands.zadd(jobKeys.delayed(), 1, "d");
  const first = await scrape();
  expect(first).toMatchObject({ "jobs:hot": 2, "jobs:hot:1": 1, "jobs:hot:2": 0, "jobs:delayed": 1, "jobs:failed": 0 });

  const before = await commandCount();
  await commands.rpush(jobKeys.hot(), "e");
  await world.clock.advance(4.9);
  expect(await scrape()).toEqual(first);
  expect(await commandCount()).toBe(before);
  await world.clock.advance(0.2);
  expect(await scrape()).toMatchObject({ "jobs:hot": 3 });
  stop();
  expect(await scrape()).toEqual({});
});

test("a scrape is answered while Redis cannot tell lengths, without any rather than with old ones", async () => {
  const { commands } = world.redis;
  watchQueueLengths(watched());
  await commands.rpush(jobKeys.hot(), "a");
  expect(await scrape()).toMatchObject({ "jobs:hot": 1 });
  await commands.del(jobKeys.hot());
  await commands.set(jobKeys.hot(), "of another type");
  await world.clock.advance(6);
  expect(await scrape()).toEqual({});
  await commands.del(jobKeys.hot());
  await world.clock.advance(6);
  expect(await scrape()).toMatchObject({ "jobs:hot": 0 });
});

/** How often Redis was asked for the length of a list. */
async function commandCount(): Promise<number> {
  const stats = await world.redis.commands.info("commandstats");
  return Number(/cmdstat_llen:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

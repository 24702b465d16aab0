import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement } from "../../../test/harness/chaos-sql.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { decimal, family, string } from "../../kernel/keyspace/index.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { mirrorSettings, readSetting, settingMigrations, writeSetting } from "./index.ts";

const keys = family("setting_test", {
  improvedAt: string("setting_test:improved_at", decimal, { doc: "when settings were improved" }),
});

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ sql: "empty" });
  await migrate(ctx.sql, [{ domain: "setting", migrations: settingMigrations }]);
});
const clean = async () => {
  await ctx.flush();
  await ctx.sql.script("truncate mirrored_settings");
};
beforeEach(clean);
afterAll(() => ctx.close());

const inRedis = () => ctx.redis.commands.get(keys.improvedAt());

it("a setting is absent until it is written, then everybody reads it, and it never expires", async () => {
  expect(await readSetting(ctx, keys.improvedAt)).toBeUndefined();
  await writeSetting(ctx, keys.improvedAt, 12.5);
  expect(await readSetting(ctx.process(), keys.improvedAt)).toBe(12.5);
  expect(await inRedis()).toBe("12.5");
  expect(await ctx.redis.commands.pttl(keys.improvedAt())).toBe(-1);
});

it("a Redis that lost its data is filled again by the first read", async () => {
  await writeSetting(ctx, keys.improvedAt, 7);
  await ctx.flush();
  expect(await readSetting(ctx, keys.improvedAt)).toBe(7);
  expect(await inRedis()).toBe("7");
});

it("writers at the same time leave the same value in Redis and in SQL", async () => {
  await Promise.all(Array.from({ length: 12 }, (_, value) => writeSetting(ctx, keys.improvedAt, value)));
  const hot = await inRedis();
  await ctx.flush();
  expect(String(await readSetting(ctx, keys.improvedAt))).toBe(hot);
});

it("a write that dies anywhere leaves the old or the new value in both places once it is mirrored", async () => {
  const prepare = async () => {
    await clean();
    await writeSetting(ctx, keys.improvedAt, 1);
  };
  const afterlife = async (death: object) => {
    await mirrorSettings(ctx);
    const hot = await inRedis();
    await ctx.flush();
    const stored = await readSetting(ctx, keys.improvedAt);
    expect(String(stored), JSON.stringify(death)).toBe(hot);
    expect([1, 2]).toContain(stored);
    expect(await mirrorSettings(ctx)).toBe(0);
  };
  const write = (process: Pick<TestContext, "redis" | "sql" | "clock">) => writeSetting(process, keys.improvedAt, 2);
  await dieAtEveryCommand(ctx.server, {
    prepare,
    life: (redis) => write({ redis, sql: ctx.sql, clock: ctx.clock }),
    afterlife,
  });
  await dieAtEveryStatement(ctx.sql, {
    prepare,
    life: (sql) => write({ redis: ctx.redis, sql, clock: ctx.clock }),
    afterlife,
  });
});

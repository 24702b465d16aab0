import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { expires, family, json, list, string } from "../../kernel/keyspace/index.ts";
import { type Fence, lockErrors, ownerLock } from "../lock/index.ts";
import { listQuarantined } from "../quarantine/index.ts";
import { writeBehind } from "./index.ts";

const Visit = json(z.strictObject({ at: z.number(), uid: z.string() }), { canonical: true });
type Visit = { at: number; uid: string };
const keys = family("bells", {
  visits: list("bells:visits", Visit, { doc: "visits to store" }),
  purgatory: list("bells:visits_purgatory", Visit, { doc: "visits being stored" }),
  lock: string("bells:lock", ownerLock, { doc: "the flush", ttl: expires(120), lock: "owner" }),
});
const LOCK_ID = "a".repeat(22);
const fence: Fence = { key: keys.lock(), lockId: LOCK_ID };

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ sql: "empty" });
  await ctx.sql.script("create table visits (uid text primary key check (uid <> 'bad'), at double precision);");
});
afterAll(() => ctx.close());
const reset = async () => {
  await ctx.flush();
  await ctx.sql.script("delete from visits;");
  await ctx.redis.commands.set(keys.lock(), `{"acquired_at":1,"hostname":"h","lock_id":"${LOCK_ID}"}`, "EX", 120);
};
beforeEach(reset);

const stored = async () => {
  const { rows } = await sql<{ uid: string }>`select uid from visits order by uid`.execute(ctx.sql.tables());
  return rows.map((row) => row.uid);
};
const transactions: number[] = [];
async function store(rows: readonly Visit[]): Promise<void> {
  transactions.push(rows.length);
  const uids = rows.map((row) => row.uid);
  const ats = rows.map((row) => row.at);
  await sql`insert into visits (uid, at) select * from unnest(${uids}::text[], ${ats}::float8[])
    on conflict (uid) do update set at = excluded.at`.execute(ctx.sql.tables());
}
const options = {
  runner: "runners.bells.flush",
  shuttingDown: () => false,
  exhausted: () => false,
  write: store,
};
const visit = (uid: string, at = ctx.clock.now()) => ({ at, uid });
const cutoff = { seconds: 3600, timeOf: (row: Visit) => row.at };

describe.each([
  ["peek and trim", writeBehind({ buffer: keys.visits(), codec: Visit, cutoff })],
  ["purgatory", writeBehind({ buffer: keys.visits(), purgatory: keys.purgatory(), codec: Visit, cutoff })],
])("with %s", (flavour, visits) => {
  test("rows reach SQL in batches and leave the buffer", async () => {
    for (let from = 0; from < 250; from += 125)
      await visits.append(
        ctx,
        Array.from({ length: 125 }, (_, index) => visit(String(from + index))),
      );
    transactions.length = 0;
    expect(await visits.flush(ctx, fence, options)).toEqual({
      stopReason: "list_exhausted",
      written: 250,
      quarantined: 0,
      dropped: 0,
      recovered: 0,
    });
    expect(transactions).toEqual([100, 100, 50]);
    expect((await stored()).length).toBe(250);
    expect(await ctx.redis.commands.exists(keys.visits(), keys.purgatory())).toBe(0);
  });

  test("an append beyond the limit is refused as a whole", async () => {
    expect(await visits.append(ctx, [visit("a"), visit("b")], { maxLength: 3 })).toEqual({ ok: true, length: 2 });
    const refused = await visits.append(ctx, [visit("c"), visit("d")], { maxLength: 3 });
    expect(refused).toEqual({ ok: false, reason: "backpressure" });
    expect(await visits.length(ctx)).toBe(2);
  });

  test("a row that SQL refuses ends up alone in the quarantine and its neighbours are stored", async () => {
    await visits.append(
      ctx,
      ["a", "b", "bad", "c", "d", "e", "a"].map((uid) => visit(uid)),
    );
    await ctx.redis.commands.rpush(keys.visits(), "unreadable");
    const result = await visits.flush(ctx, fence, options);
    expect(result).toMatchObject({ written: 6, quarantined: 2, stopReason: "list_exhausted" });
    expect(await stored()).toEqual(["a", "b", "c", "d", "e"]);
    const aside = await listQuarantined(ctx, keys.visits());
    expect(aside.map((entry) => (entry as { raw: string }).raw)).toEqual([Visit.encode(visit("bad")), "unreadable"]);
    expect(await ctx.redis.commands.exists(keys.visits(), keys.purgatory())).toBe(0);
  });

  test("rows older than the cutoff are dropped and counted", async () => {
    await visits.append(ctx, [visit("old", ctx.clock.now() - 3601), visit("new", ctx.clock.now() - 3600)]);
    expect(await visits.flush(ctx, fence, options)).toMatchObject({ written: 1, dropped: 1 });
    expect(await stored()).toEqual(["new"]);
  });

  test("an error that is not a row's leaves every row where it was", async () => {
    await visits.append(ctx, [visit("a"), visit("b")]);
    const down = { ...options, write: () => Promise.reject(new Error("connection refused")) };
    await expect(visits.flush(ctx, fence, down)).rejects.toThrow("connection refused");
    expect(await visits.flush(ctx, fence, options)).toMatchObject({ written: 2 });
    expect(await stored()).toEqual(["a", "b"]);
  });

  test("a flush that lost its lock while it wrote removes nothing", async () => {
    await visits.append(ctx, [visit("a"), visit("b")]);
    const robbed = {
      ...options,
      write: async (rows: readonly Visit[]) => {
        await store(rows);
        await ctx.redis.commands.del(keys.lock());
      },
    };
    await expect(visits.flush(ctx, fence, robbed)).rejects.toSatisfy(lockErrors.lock_lost.matches);
    const left = await ctx.redis.commands.llen(flavour === "purgatory" ? keys.purgatory() : keys.visits());
    expect(left).toBe(2);
  });

  test("a flush that dies at any command stores every row and quarantines the bad one once", async () => {
    const rows = ["a", "b", "bad", "c", "d"].map((uid) => visit(uid));
    const flush = (process: KernelContext) => visits.flush(process, fence, { ...options, batch: 2 });
    const deaths = await dieAtEveryCommand(ctx.server, {
      prepare: async () => {
        await reset();
        await visits.append(ctx, rows);
        await ctx.redis.commands.rpush(keys.visits(), "unreadable");
      },
      life: async (mortal) => {
        await flush(ctx.process({ redis: mortal }));
      },
      afterlife: async () => {
        await flush(ctx);
        expect(await stored()).toEqual(["a", "b", "c", "d"]);
        expect((await listQuarantined(ctx, keys.visits())).length).toBe(2);
        expect(await ctx.redis.commands.exists(keys.visits(), keys.purgatory())).toBe(0);
      },
    });
    expect(deaths).toBeGreaterThan(20);
  });
});

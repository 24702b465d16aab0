import { createHmac } from "node:crypto";
import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { dieAtEveryStatement } from "../../../test/harness/chaos-sql.ts";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { Config } from "../../kernel/config.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { type Fence, lockKeys } from "../lock/index.ts";
import {
  MOST_GROUPS,
  messageLogKeys,
  messageLogMigrations,
  messageLogSettings,
  messagesTo,
  type Note,
  noteSteps,
  notesSettled,
  pruneSteps,
  storeNotes,
  storyOf,
} from "./index.ts";

const lock = lockKeys.runnerLock({ runner: "messages.store_log" });
const fence: Fence = { key: lock, lockId: "b".repeat(22) };
const digest = (address: string) => createHmac("sha256", "key").update(address).digest("base64url");
const options = { runner: "runners.messages.store_log", digest, shuttingDown: () => false, exhausted: () => false };

let ctx: TestContext;
beforeAll(async () => {
  ctx = await openTestContext({ sql: "empty" });
  await migrate(ctx.sql, [{ domain: "messages", migrations: messageLogMigrations }]);
});
afterAll(() => ctx.close());
const reset = async () => {
  await ctx.flush();
  await ctx.sql.script("truncate message_steps");
  await ctx.redis.commands.set(lock, `{"acquired_at":1,"hostname":"h","lock_id":"${fence.lockId}"}`, "EX", 120);
};
beforeEach(reset);

const note = (uid: string, step: string, more: Partial<Note> = {}): Note => ({ channel: "sms", uid, step, ...more });
async function tell(process: KernelContext, notes: readonly Note[]): Promise<void> {
  noteSteps(process, notes);
  await notesSettled(process);
}
/** After so many turns of the queue of promises, all within one turn of the event loop. */
async function later<T>(turns: number, act: () => T): Promise<Awaited<T>> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
  return await act();
}
const store = (process: KernelContext = ctx) => storeNotes(process, fence, options);
const waiting = () => ctx.redis.commands.llen(messageLogKeys.buffer());
async function rows(): Promise<number> {
  const { rows: found } = await sql<{
    n: number;
  }>`select count(distinct (uid, at, step))::int as n from message_steps`.execute(ctx.sql.tables());
  return found[0]!.n;
}

describe("the story of a message", () => {
  test("a step that is noted just when the last ones were taken is not left behind", async () => {
    for (let turns = 0; turns < 12; turns++) {
      let isFirst = true;
      const redis = new Proxy(ctx.redis, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== "function") return value;
          if (name !== "run") return value.bind(target);
          return async (...given: unknown[]) => {
            const answer: unknown = await value.apply(target, given);
            if (isFirst) void later(turns, () => noteSteps(process, [note(`crl_sms_late${turns}`, "delivered")]));
            isFirst = false;
            return answer;
          };
        },
      });
      const process = { ...ctx.process(), redis };
      await tell(process, [note(`crl_sms_early${turns}`, "queued")]);
      await later(20, () => notesSettled(process));
      expect([turns, (await storyOf(ctx, `crl_sms_late${turns}`)).length]).toEqual([turns, 1]);
    }
  });

  test("it is told in order, with the time each step lasted, before and after it reached SQL", async () => {
    const t = ctx.clock.now();
    const notes = [
      note("m1", "delivered", { at: t + 7.25, provider: "twilio", detail: "delivered" }),
      note("m1", "queued", { at: t, address: "+15550001" }),
      note("m2", "queued", { at: t + 1 }),
      note("m1", "accepted", { at: t + 2, provider: "twilio", detail: "queued" }),
    ];
    await tell(ctx, notes);
    const told = await storyOf(ctx, "m1");
    expect(told).toEqual([
      { channel: "sms", step: "queued", at: t, provider: null, detail: null, lasted: 2 },
      { channel: "sms", step: "accepted", at: t + 2, provider: "twilio", detail: "queued", lasted: 5.25 },
      { channel: "sms", step: "delivered", at: t + 7.25, provider: "twilio", detail: "delivered", lasted: null },
    ]);
    expect(await rows()).toBe(0);
    expect(await store()).toMatchObject({ written: 1, stopReason: "list_exhausted" });
    expect(await storyOf(ctx, "m1")).toEqual(told);
    expect(await waiting()).toBe(0);
    expect(await storyOf(ctx, "m")).toEqual([]);
  });

  test("a step that is both in SQL and still waiting is told once", async () => {
    await tell(ctx, [note("m1", "queued", { at: 12.345678 })]);
    const [raw] = await ctx.redis.commands.lrange(messageLogKeys.buffer(), 0, -1);
    await store();
    await ctx.redis.commands.rpush(messageLogKeys.buffer(), raw!);
    expect((await storyOf(ctx, "m1")).map(({ step }) => step)).toEqual(["queued"]);
  });

  test("any order and any repetition of notes leads to the same story", async () => {
    const steps = ["queued", "accepted", "failed", "retried", "accepted", "delivered"];
    const notes = steps.map((step, at) => note("m1", step, { at: 1000 + at * 1.5, provider: at > 2 ? "b" : "a" }));
    await tell(ctx, notes);
    await store();
    const wanted = await storyOf(ctx, "m1");
    expect(wanted.map(({ step }) => step)).toEqual(steps);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([...notes, ...notes], { minLength: 12, maxLength: 12 }),
        fc.integer({ min: 0, max: 12 }),
        async (shuffled, stored) => {
          await reset();
          await tell(ctx, shuffled.slice(0, stored));
          await store();
          await tell(ctx, shuffled.slice(stored));
          expect(await storyOf(ctx, "m1")).toEqual(wanted);
        },
      ),
      { numRuns: 12 },
    );
  });

  test("messages to an address are found by its digest, newest first and page by page, and the address is not stored", async () => {
    const to = "someone@example.com";
    for (const [at, uid] of ["e1", "e2", "e3"].entries())
      await tell(ctx, [
        note(uid, "queued", { channel: "email", at: 100 + at, address: to }),
        note(uid, "accepted", { channel: "email", at: 200 + at }),
      ]);
    await tell(ctx, [note("e4", "queued", { channel: "email", at: 500, address: "other@example.com" })]);
    await store();
    const page = await messagesTo(ctx, digest(to), { limit: 2 });
    expect(page).toEqual([
      { uid: "e3", channel: "email", first_at: 102, last_step: "accepted", last_at: 202 },
      { uid: "e2", channel: "email", first_at: 101, last_step: "accepted", last_at: 201 },
    ]);
    const rest = await messagesTo(ctx, digest(to), { limit: 2, before: page[1]!.first_at });
    expect(rest.map(({ uid }) => uid)).toEqual(["e1"]);
    const { rows: dump } = await sql<{
      all: string;
    }>`select string_agg(s::text, ' ') as all from message_steps s`.execute(ctx.sql.tables());
    expect(dump[0]!.all).not.toContain("example.com");
  });
});

describe("noting", () => {
  test("thousands of notes need a few calls of Redis and two statements per thousand", async () => {
    const calls = ctx.redis.commands;
    const before = Number(/cmdstat_rpush:calls=(\d+)/.exec(await calls.info("commandstats"))?.[1] ?? 0);
    const notes = Array.from({ length: 5_000 }, (_, at) => note(`m${at}`, "queued"));
    for (let from = 0; from < notes.length; from += 500) noteSteps(ctx, notes.slice(from, from + 500));
    await notesSettled(ctx);
    const after = Number(/cmdstat_rpush:calls=(\d+)/.exec(await calls.info("commandstats"))?.[1]);
    expect(after - before).toBeLessThanOrEqual(5);
    let statements = 0;
    const counting = new Proxy(ctx.sql, {
      get: (engine, name) => {
        if (name === "tables") statements += 1;
        return Reflect.get(engine, name);
      },
    });
    await storeNotes({ ...ctx, sql: counting, redis: ctx.redis, clock: ctx.clock }, fence, options);
    expect(await rows()).toBe(5_000);
    expect(statements).toBe(10);
  });

  test("a house that keeps no story notes nothing", async () => {
    const silent = ctx.process({ config: new Config([]).with([messageLogSettings.enabled, false]) });
    await tell(silent, [note("m1", "queued")]);
    expect(await waiting()).toBe(0);
  });

  test("a Redis that is away costs the notes and never the caller", async () => {
    const away = ctx.process({ redis: ctx.server.connect(ctx.clock) });
    away.redis.commands.disconnect();
    await tell(away, [note("m1", "queued"), note("m2", "queued")]);
    expect(await away.metrics.text()).toContain("carillon_message_log_dropped_total 2");
  });

  test("a buffer that SQL does not empty takes no more, and says so", async () => {
    const filler = Array.from({ length: 5_000 }, () => "[]");
    for (let at = 0; at < MOST_GROUPS; at += filler.length)
      await ctx.redis.commands.rpush(messageLogKeys.buffer(), ...filler.slice(0, MOST_GROUPS - at));
    const other = ctx.process();
    await tell(other, [note("m1", "queued")]);
    expect(await waiting()).toBe(MOST_GROUPS);
    expect(other.alerts.recorded.map(({ identifier }) => identifier)).toEqual(["message_log:dropped"]);
  });

  test("whatever a note holds, it neither fails to be stored nor spoils its neighbours", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            uid: fc.string({ unit: "binary", minLength: 1, maxLength: 300 }),
            step: fc.string({ unit: "binary" }),
            detail: fc.string({ unit: "binary", maxLength: 400 }),
          }),
          { minLength: 1, maxLength: 8 },
        ),
        async (odd) => {
          await reset();
          await tell(ctx, [note("plain", "queued"), ...odd.map(({ uid, ...more }) => note(uid, more.step, more))]);
          expect(await store()).toMatchObject({ quarantined: 0, written: 1 });
          expect(await storyOf(ctx, "plain")).toHaveLength(1);
          for (const { uid } of odd) expect((await storyOf(ctx, uid)).length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 8 },
    );
  });
});

describe("keeping", () => {
  const notes = Array.from({ length: 120 }, (_, at) =>
    note(`m${at % 40}`, `step_${Math.floor(at / 40)}`, { at: 1000 + at }),
  );
  const prepare = async () => {
    await reset();
    await tell(ctx, notes);
  };
  const afterlife = async () => {
    await store();
    expect(await rows()).toBe(120);
    expect(await waiting()).toBe(0);
  };

  test("a store that dies at any command of Redis keeps every step once", async () => {
    const deaths = await dieAtEveryCommand(ctx.server, {
      prepare,
      life: async (mortal) => void (await store(ctx.process({ redis: mortal }))),
      afterlife,
    });
    expect(deaths).toBeGreaterThan(4);
  });

  test("a store that dies at any statement of SQL keeps every step once", async () => {
    const deaths = await dieAtEveryStatement(ctx.sql, {
      prepare,
      life: async (mortal) => void (await store(ctx.process({ redis: ctx.redis, sql: mortal }))),
      afterlife,
    });
    expect(deaths).toBeGreaterThan(0);
  });

  test("steps are forgotten after the days that a setting names", async () => {
    const now = ctx.clock.now();
    await tell(ctx, [
      note("old", "queued", { at: now - 7 * 86_400 - 1 }),
      note("new", "queued", { at: now - 7 * 86_400 + 60 }),
    ]);
    await store();
    const week = ctx.process({ config: new Config([]).with([messageLogSettings.days, 7]) });
    expect(await pruneSteps(week)).toBe(1);
    expect(await storyOf(ctx, "old")).toEqual([]);
    expect(await storyOf(ctx, "new")).toHaveLength(1);
  });
});

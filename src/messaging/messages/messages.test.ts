import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { eventually } from "../../../test/harness/facts.ts";
import { type JobProcess, jobProcess } from "../../../test/harness/jobs.ts";
import { settings as accessSettings } from "../../infrastructure/access/settings.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { calendarOf, isoDate } from "../../mechanisms/dated-counters/index.ts";
import {
  messageLogKeys,
  messageLogMigrations,
  noteSteps,
  notesSettled,
  storyOf,
} from "../../mechanisms/message-log/index.ts";
import { carriedBy } from "./carriers.ts";
import { runners } from "./jobs.ts";
import { messagesForAddress } from "./service.ts";

let house: TestContext;
let process: JobProcess;
beforeAll(async () => {
  house = await openTestContext({ sql: true });
  await migrate(house.sql, [{ domain: "messages", migrations: messageLogMigrations }]);
});
beforeEach(async () => {
  await house.flush();
  await house.sql.script("truncate message_steps");
  process = jobProcess(house, {
    runners,
    config: [[accessSettings.rootSecret, "a root secret for tests, long enough"]],
  });
  await process.worker.start();
});
afterEach(() => process.worker.stop(AbortSignal.abort()));
afterAll(() => house.close());

test("who carried how many messages is told by day, channel and provider", async () => {
  const { ctx, jobs } = process;
  const now = ctx.clock.now();
  const took = (uid: string, provider: string, step: string, at = now) =>
    ({ channel: "email", uid, provider, step, at }) as const;
  noteSteps(ctx, [
    { channel: "email", uid: "e1", step: "queued", at: now },
    took("e1", "ses", "accepted"),
    took("e2", "ses", "accepted"),
    took("e3", "ses", "failed_transiently"),
    took("e3", "smtp", "accepted"),
    took("e4", "ses", "accepted", now - 86_400),
    took("e5", "ses", "accepted", now - 3 * 86_400),
  ]);
  // Stored twice, as after a death, it counts once.
  await notesSettled(ctx);
  noteSteps(ctx, [took("e1", "ses", "accepted")]);
  await notesSettled(ctx);
  await jobs.enqueueNamed("runners.messages.store_log", {});
  await eventually(async () => (await ctx.redis.commands.llen(messageLogKeys.buffer())) === 0, "the steps in SQL");
  const calendar = calendarOf(ctx);
  const [today, yesterday] = [calendar.unixDate(now), calendar.unixDate(now - 86_400)].map(isoDate);
  expect(await carriedBy(ctx, 2)).toEqual([
    { date: today, channel: "email", provider: "ses", steps: { accepted: 2, failed_transiently: 1 } },
    { date: today, channel: "email", provider: "smtp", steps: { accepted: 1 } },
    { date: yesterday, channel: "email", provider: "ses", steps: { accepted: 1 } },
  ]);
});

test("steps that were noted are stored by the job, and an old one is forgotten by the other", async () => {
  const { ctx, jobs } = process;
  const now = ctx.clock.now();
  noteSteps(ctx, [
    { channel: "push", uid: "p1", step: "queued", at: now - 31 * 86_400, address: "ExponentPushToken[one]" },
    { channel: "push", uid: "p1", step: "delivered", at: now },
  ]);
  await notesSettled(ctx);
  await jobs.enqueueNamed("runners.messages.store_log", {});
  await eventually(async () => (await ctx.redis.commands.llen(messageLogKeys.buffer())) === 0, "the steps in SQL");
  expect((await storyOf(ctx, "p1")).map(({ step, lasted }) => ({ step, lasted }))).toEqual([
    { step: "queued", lasted: 31 * 86_400 },
    { step: "delivered", lasted: null },
  ]);
  const found = await messagesForAddress(ctx, "ExponentPushToken[one]", { limit: 10 });
  expect(found.items.map(({ uid, last_step }) => [uid, last_step])).toEqual([["p1", "delivered"]]);
  await jobs.enqueueNamed("runners.messages.forget_log", {});
  await eventually(async () => (await storyOf(ctx, "p1")).length === 1, "the end of the old step");
});

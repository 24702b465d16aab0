import { z } from "zod";
import { recurring } from "../../../src/jobs/recurring.ts";
import { defineRunner } from "../../../src/jobs/runner.ts";
import { lockKeys } from "../../../src/mechanisms/lock/index.ts";
import { EXPIRY_BATCH, expireDue } from "./service.ts";

export const expireNotes = defineRunner({
  name: "runners.notes.expire",
  category: 2,
  kwargs: z.strictObject({}),
  doc: "Deletes notes whose time is over.",
  async run(ctx) {
    const lock = lockKeys.runnerLock({ runner: "notes.expire" });
    await ctx.locks.withLock(lock, { kind: "owner", wait: "fail" }, async ({ signal }) => {
      const goOn = () => !ctx.shuttingDown() && !ctx.budget.exhausted() && !signal.aborted;
      while (goOn()) if ((await expireDue(ctx)) < EXPIRY_BATCH) return;
    });
  },
});

export const runners = [expireNotes];

export const recurringJobs = [recurring(expireNotes, {}, { seconds: [30] })];

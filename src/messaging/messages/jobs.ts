import { z } from "zod";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner } from "../../jobs/runner.ts";
import { lockKeys } from "../../mechanisms/lock/index.ts";
import { pruneSteps, storeNotes } from "../../mechanisms/message-log/index.ts";
import { digester } from "./address-digest.ts";

const NoKwargs = z.strictObject({});

export const storeLogLock = lockKeys.runnerLock({ runner: "messages.store_log" });

export const storeLog = defineRunner({
  name: "runners.messages.store_log",
  category: 2,
  kwargs: NoKwargs,
  doc: "Stores the steps of messages that were noted since the last run.",
  async run(ctx) {
    const { stopReason, written, quarantined } = await ctx.locks.withLock(
      storeLogLock,
      { kind: "owner", wait: "fail" },
      ({ fence }) =>
        storeNotes(ctx, fence, {
          runner: storeLog.name,
          digest: digester(ctx),
          shuttingDown: () => ctx.shuttingDown(),
          exhausted: () => ctx.budget.exhausted(),
        }),
    );
    if (written + quarantined > 0)
      ctx.log.info({ runner: storeLog.name, stop_reason: stopReason, written, quarantined }, "run ended");
  },
});

export const forgetLog = defineRunner({
  name: "runners.messages.forget_log",
  category: 2,
  kwargs: NoKwargs,
  doc: "Forgets the steps of messages that are older than CARILLON_MESSAGE_LOG_DAYS.",
  async run(ctx) {
    const pruned = await pruneSteps(ctx, () => !ctx.budget.exhausted() && !ctx.shuttingDown());
    ctx.log.info({ runner: forgetLog.name, pruned }, "run ended");
  },
});

export const runners = [storeLog, forgetLog];

export const recurring = [
  recur(storeLog, {}, { seconds: [10, 40] }),
  recur(forgetLog, {}, { minutes: [25], seconds: [0] }),
];

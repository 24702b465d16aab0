import { z } from "zod";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner } from "../../jobs/runner.ts";
import { deliver, RETRY_DELAYS } from "./delivery-job.ts";
import { RECORD, RecordKwargs, recordEvents } from "./emit.ts";
import { pruneMessages, sweepMessages } from "./upkeep.ts";

export { deliver, RETRY_DELAYS };

const NoKwargs = z.strictObject({});

export const record = defineRunner({
  name: RECORD,
  category: 2,
  kwargs: RecordKwargs,
  doc: "Makes the rows of events that could not be stored when they happened.",
  retry: RETRY_DELAYS,
  async runMany(ctx, items) {
    await recordEvents(
      ctx,
      items.flatMap(({ events }) => events),
    );
    return undefined;
  },
});

export const sweep = defineRunner({
  name: "runners.webhooks.sweep",
  category: 2,
  kwargs: NoKwargs,
  doc: "Queues webhook messages again whose job was lost.",
  run: sweepMessages,
});

export const prune = defineRunner({
  name: "runners.webhooks.prune",
  category: 2,
  kwargs: NoKwargs,
  doc: "Forgets webhook messages that ended long ago.",
  run: async (ctx) => {
    const pruned = await pruneMessages(ctx);
    if (pruned > 0) ctx.log.info({ pruned }, "old webhook messages are forgotten");
  },
});

export const runners = [deliver, record, sweep, prune];

export const recurring = [
  recur(sweep, {}, { seconds: [30] }),
  recur(prune, {}, { hours: [4], minutes: [10], seconds: [0] }),
];

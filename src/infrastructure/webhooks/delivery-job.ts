import { z } from "zod";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { deliverMessages } from "./deliver.ts";

const MessageKwargs = z.strictObject({ uid: z.string().min(1) });

/** Seconds before each further attempt: quick ones for a restart, slow ones for a bad day. About two days in all. */
export const RETRY_DELAYS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000] as const;

export const deliver: Runner<typeof MessageKwargs> = defineRunner({
  name: "runners.webhooks.deliver",
  category: 2,
  kwargs: MessageKwargs,
  doc: "Sends messages to webhook endpoints; those that fail come again later.",
  retry: RETRY_DELAYS,
  async runMany(ctx, items) {
    await deliverMessages(
      ctx,
      items.map(({ uid }) => uid),
      {
        delays: RETRY_DELAYS,
        again: (uids, delay) =>
          ctx.jobs.enqueueMany(
            deliver,
            uids.map((uid) => ({ uid })),
            delay === 0 ? {} : { delay },
          ),
      },
    );
    return undefined;
  },
});

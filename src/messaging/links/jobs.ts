import { z } from "zod";
import { runAlone } from "../../jobs/alone.ts";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner, type Runner } from "../../jobs/runner.ts";
import { persistDelayed } from "./delayed.ts";
import { CODE } from "./entries.ts";
import { abandonLinks, queuePersist } from "./fate.ts";
import { keys } from "./keys.ts";
import { detectLeaks } from "./leaks.ts";
import { persistLinks } from "./persist.ts";
import { FINISH_UNSUBSCRIBING, finishUnsubscribing, WaitingUnsubscription } from "./unsubscribe.ts";

const NoKwargs = z.strictObject({});
const Codes = z.strictObject({ codes: z.array(z.string().regex(CODE)).min(1).max(100) });
const CALLBACK_RETRY = [5, 30, 300, 1800, 7200];
type Alone = Runner<typeof NoKwargs>;

export const persistLink: Alone = defineRunner({
  name: "runners.touch.persist_link",
  category: 2,
  kwargs: NoKwargs,
  doc: "Stores the links whose message arrived, with their clicks.",
  run: async (ctx) =>
    void (await runAlone(ctx, persistLink, {
      lock: keys.persistLock(),
      schedules: [keys.toPersist()],
      work: persistLinks,
    })),
});

export const leakedLinkDetection: Alone = defineRunner({
  name: "runners.touch.leaked_link_detection",
  category: 2,
  kwargs: NoKwargs,
  doc: "Clears away links that neither callback of their message claimed.",
  run: async (ctx) =>
    void (await runAlone(ctx, leakedLinkDetection, { lock: keys.leakLock(), work: (under) => detectLeaks(under) })),
});

export const delayedClickPersist: Alone = defineRunner({
  name: "runners.touch.delayed_click_persist",
  category: 2,
  kwargs: NoKwargs,
  doc: "Stores clicks that came while their link was being stored.",
  run: async (ctx) =>
    void (await runAlone(ctx, delayedClickPersist, {
      lock: keys.delayedLock(),
      schedules: [keys.delayed()],
      work: persistDelayed,
    })),
});

export const persistLinksCallback = defineRunner({
  name: "runners.touch.persist_links",
  category: 2,
  kwargs: Codes,
  doc: "The message of these links arrived: they are stored soon.",
  retry: CALLBACK_RETRY,
  async runMany(ctx, items) {
    await queuePersist(
      ctx,
      items.flatMap(({ codes }) => codes),
    );
    return undefined;
  },
});

export const abandonLinksCallback = defineRunner({
  name: "runners.touch.abandon_links",
  category: 2,
  kwargs: Codes,
  doc: "The message of these links failed: they are forgotten.",
  retry: CALLBACK_RETRY,
  async runMany(ctx, items) {
    await abandonLinks(
      ctx,
      items.flatMap(({ codes }) => codes),
    );
    return undefined;
  },
});

export const finishUnsubscribingJob = defineRunner({
  name: FINISH_UNSUBSCRIBING,
  category: 2,
  kwargs: WaitingUnsubscription,
  doc: "Unsubscribes an address once it is known that the message with the link went to it.",
  retry: [60, 300, 900],
  run: finishUnsubscribing,
});

/** The callbacks of a message with links: stored when it arrives, forgotten when it fails. */
export function linkCallbacks(codes: readonly string[]) {
  return {
    success: { name: persistLinksCallback.name, kwargs: { codes: [...codes] } },
    failure: { name: abandonLinksCallback.name, kwargs: { codes: [...codes] } },
  };
}

export const runners = [
  persistLink,
  leakedLinkDetection,
  delayedClickPersist,
  persistLinksCallback,
  abandonLinksCallback,
  finishUnsubscribingJob,
];

export const recurring = [
  recur(persistLink, {}, { seconds: [0] }),
  recur(leakedLinkDetection, {}, { minutes: [0, 15, 30, 45], seconds: [0] }),
  recur(delayedClickPersist, {}, { seconds: [0] }),
];

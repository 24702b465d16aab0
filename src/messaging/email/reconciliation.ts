import type { JobContext } from "../../jobs/context.ts";
import { encodeJob } from "../../jobs/entry.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { type Counting, Tally } from "../../mechanisms/dated-counters/index.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { type Entry, runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { failureJob, successJob } from "./callbacks.ts";
import type { MailNews, PendingMail } from "./entries.ts";
import { keys } from "./keys.ts";
import { awaiting, eventQueue } from "./line.ts";
import { reconcile } from "./scripts.ts";
import { emailEventStats } from "./stats.ts";

export const ABANDONED_CALLBACK = "runners.emails.abandoned_email_callback";

const BATCH = 100;
/** News may outrun the answer to the request that sent its mail by so many seconds. */
const RACE = 5;
const LOOK_AGAIN = 1;
/** How often news is judged again because its mail changed under the judge's eyes. */
const MAX_RACES = 5;
const CHANGED = -1;

type Count =
  | "attempted"
  | "succeeded_and_found"
  | "succeeded_but_abandoned"
  | "bounced_and_found"
  | "bounced_but_abandoned"
  | "complaint_and_found"
  | "complaint_and_abandoned";

const COUNTS = {
  Delivery: { found: "succeeded_and_found", abandoned: "succeeded_but_abandoned" },
  Bounce: { found: "bounced_and_found", abandoned: "bounced_but_abandoned" },
  Complaint: { found: "complaint_and_found", abandoned: "complaint_and_abandoned" },
} as const satisfies Record<MailNews["notification"]["type"], Record<"found" | "abandoned", Count>>;

interface Judged {
  readonly entry: Entry<MailNews>;
  readonly kind: "found" | "abandoned" | "early";
  readonly mail: PendingMail | undefined;
}

/** Works news into the mails that await it. */
export async function reconcileReceipts(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<Count>(ctx, keys.reconciliationReport);
  const counts: Record<Count, number> = {
    attempted: 0,
    succeeded_and_found: 0,
    succeeded_but_abandoned: 0,
    bounced_and_found: 0,
    bounced_but_abandoned: 0,
    complaint_and_found: 0,
    complaint_and_abandoned: 0,
  };
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => eventQueue.claimBatch(ctx, lock.fence, first, BATCH),
    async handle(batch) {
      let left: readonly Entry<MailNews>[] = await eventQueue.read(ctx, 0, batch.size);
      for (let races = 0; left.length > 0 && races < MAX_RACES; races++) {
        const { applied, changed } = await workIn(ctx, left);
        for (const { entry, kind } of applied)
          if (kind !== "early") {
            counts.attempted += 1;
            counts[COUNTS[entry.value.notification.type][kind]] += 1;
          }
        left = changed;
      }
      // Whatever races on is left in the purgatory: the next run takes it up first.
      return left.length > 0 ? "time_exhausted" : undefined;
    },
  });
  await report.finish({ stopReason, counts });
  return stopReason;
}

/** When early news is due, if there is any. */
export async function nextEarlyNews({ redis }: Pick<JobContext, "redis">): Promise<number | undefined> {
  const [, score] = await redis.commands.zrange(redis.topology.key(keys.early()), 0, "0", "WITHSCORES");
  return score === undefined ? undefined : Number(score);
}

async function workIn(ctx: JobContext, entries: readonly Entry<MailNews>[]) {
  const now = ctx.clock.now();
  const ids = entries.map(({ value }) => value.message_id);
  const { results: known } = await awaiting.get(ctx, ids);
  const judged = entries.map((entry, at): Judged => {
    const mail = known[at]?.value;
    if (mail) return { entry, mail, kind: "found" };
    return { entry, mail, kind: Math.max(0, now - entry.value.received_at) < RACE ? "early" : "abandoned" };
  });
  const tally = new Tally(ctx);
  const items = judged.flatMap(({ entry: { raw, value }, kind, mail }) => {
    const block = tally.block((stats) => countNews(stats, value, kind, mail?.send_initially_queued_at ?? now));
    const due = (now + LOOK_AGAIN).toFixed(6);
    return [raw, kind, value.message_id, mail?.uid ?? "", due, callbackOf(value, kind, mail, now), ...block];
  });
  const results = await ctx.redis.run(
    reconcile,
    [keys.eventPurgatory(), keys.pending(), keys.early(), jobKeys.hot(), ...tally.keys],
    items,
  );
  const applied = judged.filter((_, at) => results[at] === 1);
  const lost = applied.filter(
    ({ kind, entry }) => kind === "abandoned" && entry.value.notification.type === "Delivery",
  );
  if (lost.length > 0) ctx.log.warn({ count: lost.length }, "receipts came for mails that nobody awaits");
  return { applied, changed: entries.filter((_, at) => results[at] === CHANGED) };
}

function callbackOf(news: MailNews, kind: Judged["kind"], mail: PendingMail | undefined, now: number): string {
  const { notification, received_at } = news;
  if (kind === "early") return "";
  if (!mail) {
    if (notification.type === "Delivery") return "";
    return encodeJob({ name: ABANDONED_CALLBACK, kwargs: { event_obj: news }, queued_at: now });
  }
  const failed = (error_identifier: string, extra: string | null) =>
    failureJob(mail, { step: "receipt", error_identifier, retryable: false, extra }, now);
  switch (notification.type) {
    case "Delivery":
      return successJob(mail, received_at, now);
    case "Bounce":
      return failed("Bounce", `${notification.reason.primary}/${notification.reason.secondary}`);
    case "Complaint":
      return failed("Complaint", notification.feedback_type);
  }
}

function countNews(stats: Counting, { notification }: MailNews, kind: Judged["kind"], at: number): void {
  if (kind === "early") return;
  stats.incr(emailEventStats, "attempted", { at, extra: kind });
  switch (notification.type) {
    case "Delivery":
      stats.incr(emailEventStats, "succeeded", { at, extra: kind });
      break;
    case "Bounce": {
      const { primary, secondary } = notification.reason;
      stats.incr(emailEventStats, "bounced", { at, extra: `${kind}:${primary}:${secondary}` });
      break;
    }
    case "Complaint":
      stats.incr(emailEventStats, "complaint", { at, extra: `${kind}:${notification.feedback_type ?? "None"}` });
      break;
  }
}

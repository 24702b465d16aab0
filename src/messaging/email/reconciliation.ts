import type { JobContext } from "../../jobs/context.ts";
import { encodeJob } from "../../jobs/entry.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { ScriptArgument } from "../../kernel/redis/index.ts";
import { type Counting, Kinds } from "../../mechanisms/dated-counters/index.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import {
  decodeEntries,
  type Entry,
  type Malformed,
  runBatches,
  type StopReason,
} from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { errorText } from "../../providers/failure.ts";
import { failureJob, successJob } from "./callbacks.ts";
import { attemptEntry, type MailNews, type PendingMail } from "./entries.ts";
import { keys } from "./keys.ts";
import { awaiting, eventQueue } from "./line.ts";
import { reconcile } from "./scripts.ts";
import { settings } from "./settings.ts";
import { type Sent, settleSent } from "./settle-send.ts";
import { emailEventStats } from "./stats.ts";

export const ABANDONED_CALLBACK = "runners.emails.abandoned_email_callback";

/** News may outrun the answer to the request that sent its mail by so many seconds. */
const RACE = 5;
/** Clocks of web and worker may differ by so many seconds. */
const SKEW = 60;
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
    claim: (first) => eventQueue.claimBatch(ctx, lock.fence, first, ctx.config.get(settings.newsSize)),
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

async function workIn(ctx: JobContext, entries: readonly Entry<MailNews>[]) {
  const now = ctx.clock.now();
  const judged = (await mailsOf(ctx, entries)).map(({ entry, mail }): Judged => {
    if (mail) return { entry, mail, kind: "found" };
    const age = now - entry.value.received_at;
    // What comes from a future beyond all differences between clocks would be early for ever.
    return { entry, mail, kind: age < RACE && age > -SKEW ? "early" : "abandoned" };
  });
  const kinds = new Kinds(ctx);
  const sound: Judged[] = [];
  const unusable: Malformed[] = [];
  const items: ScriptArgument[] = [];
  for (const one of judged)
    try {
      items.push(...argsOf(one, kinds, now));
      sound.push(one);
    } catch (error) {
      unusable.push({ raw: one.entry.raw, reason: `what follows from it cannot be written: ${errorText(error)}` });
    }
  if (unusable.length > 0) await eventQueue.quarantine(ctx, unusable);
  if (sound.length === 0) return { applied: [], changed: [] };
  const results = await ctx.redis.run(
    reconcile,
    [keys.eventPurgatory(), keys.pending(), keys.early(), jobKeys.hot(), ...kinds.keys],
    [(now + LOOK_AGAIN).toFixed(6), kinds.count, ...kinds.blocks, ...items],
  );
  const applied = sound.filter((_, at) => results[at] === 1);
  const lost = applied.filter(
    ({ kind, entry }) => kind === "abandoned" && entry.value.notification.type === "Delivery",
  );
  if (lost.length > 0) ctx.log.warn({ count: lost.length }, "receipts came for mails that nobody awaits");
  noteSteps(ctx, applied.flatMap(noteOf));
  return { applied, changed: sound.flatMap(({ entry }, at) => (results[at] === CHANGED ? [entry] : [])) };
}

/**
 * The mail of each piece of news, where one awaits it. News may also tell of a mail that the send job still holds: the
 * provider took it, and the process died or the answer got lost before that was written down. The uid that the provider
 * repeats finds it, and it counts as taken, now; otherwise the next run would send it once more.
 */
async function mailsOf(ctx: JobContext, entries: readonly Entry<MailNews>[]) {
  const known = async (some: readonly Entry<MailNews>[]) =>
    (
      await awaiting.get(
        ctx,
        some.map(({ value }) => value.message_id),
      )
    ).results;
  const first = await known(entries);
  const unknown = entries.filter((entry, at) => !first[at] && entry.value.uid !== undefined);
  const adopted = unknown.length > 0 && (await adopt(ctx, unknown));
  const results = adopted ? await known(entries) : first;
  return entries.map((entry, at) => ({ entry, mail: results[at]?.value }));
}

async function adopt(ctx: JobContext, news: readonly Entry<MailNews>[]): Promise<boolean> {
  const { commands, topology } = ctx.redis;
  const raws = await commands.lrangeBuffer(topology.key(keys.sendPurgatory()), 0, -1);
  // What cannot be read there is the send job's matter.
  const held = new Map(decodeEntries(attemptEntry, raws).entries.map((entry) => [entry.value.uid, entry]));
  const taken = new Map<string, Sent>();
  const { reporter: provider } = ctx.providers.email;
  for (const { value } of news) {
    const entry = held.get(value.uid!);
    const outcome = { ok: true, messageId: value.message_id, hasReceipts: true, provider } as const;
    if (entry && !taken.has(entry.value.uid)) taken.set(entry.value.uid, { entry, outcome });
  }
  if (taken.size === 0) return false;
  await settleSent(ctx, [...taken.values()]);
  ctx.log.warn({ count: taken.size }, "mails were taken by the provider before anybody could write that down");
  return true;
}

function argsOf({ entry: { raw, value }, kind, mail }: Judged, kinds: Kinds, now: number) {
  const callback = callbackOf(value, kind, mail, now);
  const at = mail?.send_initially_queued_at ?? now;
  const name = `${kind} ${value.notification.type} ${detailOf(value)}`;
  const counts = kinds.of(name, at, (stats) => countNews(stats, value, kind, at));
  return [raw, kind, value.message_id, mail?.uid ?? "", counts, callback];
}

/** Of bounces and complaints, what kind of one it is. */
function detailOf({ notification }: MailNews): string | null {
  switch (notification.type) {
    case "Delivery":
      return null;
    case "Bounce":
      return `${notification.reason.primary}/${notification.reason.secondary}`;
    case "Complaint":
      return notification.feedback_type;
  }
}

const STEPS = { Delivery: "delivered", Bounce: "bounced", Complaint: "complained" } as const;

function noteOf({ entry: { value }, kind, mail }: Judged): readonly Note[] {
  const uid = mail?.uid ?? value.uid;
  if (kind === "early" || uid === undefined) return [];
  const { notification, received_at: at } = value;
  return [{ channel: "email", uid, at, step: STEPS[notification.type], detail: detailOf(value) }];
}

function callbackOf(news: MailNews, kind: Judged["kind"], mail: PendingMail | undefined, now: number): string {
  const { notification, received_at } = news;
  if (kind === "early") return "";
  if (!mail) {
    if (notification.type === "Delivery") return "";
    return encodeJob({ name: ABANDONED_CALLBACK, kwargs: { event_obj: news }, queued_at: now });
  }
  if (notification.type === "Delivery") return successJob(mail, received_at, now);
  const info = {
    step: "receipt",
    error_identifier: notification.type,
    retryable: false,
    extra: detailOf(news),
  } as const;
  return failureJob(mail, info, now);
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

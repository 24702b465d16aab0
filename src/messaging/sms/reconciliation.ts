import type { JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { randomToken } from "../../kernel/ids.ts";
import type { ScriptArgument } from "../../kernel/redis/index.ts";
import { type Counting, Kinds } from "../../mechanisms/dated-counters/index.ts";
import { type Lock, unlessFenced } from "../../mechanisms/lock/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import { type Entry, runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { smsCategory } from "../../providers/sms.ts";
import { type PendingSms, pendingHash, type SmsEvent } from "./entries.ts";
import { keys } from "./keys.ts";
import { eventQueue, pendingMessages } from "./line.ts";
import { commitEvents } from "./scripts.ts";
import { settings } from "./settings.ts";
import { smsEventStats } from "./stats.ts";
import { type EventVerdict, judge } from "./verdict.ts";

const BATCH = 500;
/** How often an event is judged again because its message changed under the judge's eyes. */
const MAX_RACES = 5;
const RACED = -3;

type Counted = Exclude<EventVerdict["kind"], "early" | "unknown">;
type ReconciliationCount = "attempted" | "pending" | "succeeded" | "failed" | "found" | Counted;

/** What a test may do between reading and writing. */
export interface ReconciliationHooks {
  beforeCommit?(): Promise<void>;
}

/** Works news into pending messages. */
export async function reconcileReceipts(
  ctx: JobContext,
  lock: Lock,
  hooks: ReconciliationHooks = {},
): Promise<StopReason> {
  const report = await startRun<ReconciliationCount>(ctx, keys.reconciliationReport);
  const counts: Record<ReconciliationCount, number> = {
    attempted: 0,
    pending: 0,
    succeeded: 0,
    failed: 0,
    found: 0,
    updated: 0,
    duplicate: 0,
    out_of_order: 0,
    removed: 0,
  };
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => eventQueue.claimBatch(ctx, lock.fence, first, BATCH),
    async handle(batch) {
      let left = await eventQueue.read(ctx, 0, batch.size);
      for (let races = 0; left.length > 0 && races < MAX_RACES; ) {
        const { now, later } = firstOfEach(left);
        const settled = await workIn(ctx, now, hooks);
        for (const { event, verdict } of settled.applied) count(counts, event, verdict);
        left = [...settled.raced, ...later];
        races = settled.raced.length > 0 ? races + 1 : 0;
      }
      if (left.length === 0) return undefined;
      // Whatever races on is for the next run, which takes it up first.
      unlessFenced(await eventQueue.putBack(ctx, lock.fence));
      return "time_exhausted";
    },
  });
  await report.finish({ stopReason, counts });
  return stopReason;
}

/** One event a message, so that each is judged by what the one before it left; order is kept. */
function firstOfEach(entries: readonly Entry<SmsEvent>[]) {
  const [now, later]: [Entry<SmsEvent>[], Entry<SmsEvent>[]] = [[], []];
  const seen = new Set<string>();
  for (const entry of entries) {
    (seen.has(entry.value.sid) ? later : now).push(entry);
    seen.add(entry.value.sid);
  }
  return { now, later };
}

interface Judged {
  readonly event: SmsEvent;
  readonly known: PendingSms | undefined;
  readonly verdict: EventVerdict;
}

async function workIn(
  ctx: JobContext,
  entries: readonly Entry<SmsEvent>[],
  hooks: ReconciliationHooks,
): Promise<{ readonly applied: readonly Judged[]; readonly raced: readonly Entry<SmsEvent>[] }> {
  const now = ctx.clock.now();
  const bench = {
    now,
    silence: ctx.config.get(settings.silence),
    unreachableCodes: new Set(ctx.config.get(settings.unreachableCodes)),
  };
  const { results: known } = await pendingMessages.get(
    ctx,
    entries.map(({ value }) => value.sid),
  );
  const kinds = new Kinds(ctx);
  const judged = entries.map(({ value: event }, at) => ({
    event,
    known: known[at]?.value,
    verdict: judge(event, known[at]?.value, bench),
  }));
  const items: ScriptArgument[] = [];
  for (const [at, { event, known: before, verdict }] of judged.entries()) {
    const name = `${verdict.kind} ${event.received_via} ${before?.message_resource_status} ${event.status}`;
    const kind = kinds.of(name, now, (stats) => countEvent(stats, event, before, verdict));
    const version = before === undefined ? "" : before.num_changes;
    const due = "due" in verdict ? verdict.due.toFixed(6) : 0;
    const fields = verdict.kind === "updated" ? pendingHash.encode(verdict.fields as PendingSms) : [];
    items.push(entries[at]!.raw, ACTIONS[verdict.kind], event.sid, version, due, kind, fields.length, ...fields);
    items.push("callback" in verdict ? verdict.callback : "");
  }
  await hooks.beforeCommit?.();
  const results = await ctx.redis.run(
    commitEvents,
    [keys.pending(), quarantineOf(keys.pending()), keys.eventPurgatory(), keys.early(), jobKeys.hot(), ...kinds.keys],
    ["num_changes", "", keys.pending(), now.toFixed(6), randomToken(), kinds.count, ...kinds.blocks, ...items],
  );
  const applied = judged.filter((_, at) => results[at] === 1);
  noteSteps(ctx, applied.flatMap(stepOf));
  return {
    applied,
    // A message that was broken is gone now, so its event is judged again as news of an unknown one.
    raced: entries.filter((_, at) => results[at] === RACED || results[at] === -1),
  };
}

function stepOf({ event, known, verdict: { kind } }: Judged): Note[] {
  if (known === undefined || (kind !== "updated" && kind !== "removed")) return [];
  const detail = event.error_code === null ? event.status : `${event.status} ${event.error_code}`;
  return [{ channel: "sms", uid: known.uid, step: kind === "removed" ? "ended" : "updated", detail }];
}

const ACTIONS: Readonly<Record<EventVerdict["kind"], "none" | "early" | "update" | "remove">> = {
  early: "early",
  unknown: "none",
  duplicate: "none",
  out_of_order: "none",
  updated: "update",
  removed: "remove",
};

const CATEGORY_EVENTS = { pending: "pending", success: "succeeded", failure: "failed" } as const;

function count(counts: Record<ReconciliationCount, number>, event: SmsEvent, { kind }: EventVerdict): void {
  if (kind === "early") return;
  counts.attempted += 1;
  counts[CATEGORY_EVENTS[smsCategory(event.status)]] += 1;
  if (kind === "unknown") return;
  counts.found += 1;
  counts[kind] += 1;
}

function countEvent(stats: Counting, event: SmsEvent, before: PendingSms | undefined, { kind }: EventVerdict): void {
  if (kind === "early") return;
  const status = { extra: event.status };
  const change = { extra: `${before?.message_resource_status ?? "(unknown)"}:${event.status}` };
  stats.incr(smsEventStats, "attempted", status);
  stats.incr(smsEventStats, event.received_via === "webhook" ? "received_via_webhook" : "received_via_polling", status);
  stats.incr(smsEventStats, CATEGORY_EVENTS[smsCategory(event.status)], status);
  if (kind === "unknown") {
    stats.incr(smsEventStats, "unknown", status);
    return;
  }
  stats.incr(smsEventStats, "found");
  if (kind === "duplicate") stats.incr(smsEventStats, "duplicate", status);
  else stats.incr(smsEventStats, kind, change);
}

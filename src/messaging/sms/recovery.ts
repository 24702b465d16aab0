import type { JobContext } from "../../jobs/context.ts";
import { type Counting, Tally } from "../../mechanisms/dated-counters/index.ts";
import { type Lock, lockErrors, unlessFenced } from "../../mechanisms/lock/index.ts";
import { type Entry, runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { sendThroughWindow } from "../../mechanisms/settling-window/index.ts";
import { type SmsFailure, type SmsFetchOutcome, smsCategory } from "../../providers/sms.ts";
import { BackOff } from "./back-off.ts";
import { resourceOf } from "./callbacks.ts";
import { nudgeByName } from "./enqueue.ts";
import { explanation, type SmsEvent, smsEvent } from "./entries.ts";
import { keys } from "./keys.ts";
import { pendingMessages, recoveryQueue } from "./line.ts";
import { commitRecovery } from "./scripts.ts";
import { BUDGET } from "./send.ts";
import { settings } from "./settings.ts";
import { smsPollingStats } from "./stats.ts";

const BATCH = 500;

type RecoveryCount = "attempted" | "pending" | "succeeded" | "failed" | "lost" | "permanent_error" | "transient_error";

/** What the provider said and when, or that it was not asked. */
type Answer = { readonly outcome: SmsFetchOutcome; readonly at: number } | "held";

/** Asks the provider about silent messages; each answer becomes an event. */
export async function recoverReceipts(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<RecoveryCount>(ctx, keys.recoveryReport);
  const counts: Record<RecoveryCount, number> = {
    attempted: 0,
    pending: 0,
    succeeded: 0,
    failed: 0,
    lost: 0,
    permanent_error: 0,
    transient_error: 0,
  };
  const backOff = new BackOff(ctx.clock, (seconds) => ctx.sleep(seconds), BUDGET);
  let ended: StopReason | undefined;
  let providerLock: Lock | undefined;
  /** Another run may have begun, here or with the provider: from now on nothing is asked of it. */
  const lost = () => lock.signal.aborted || (providerLock?.signal.aborted ?? false);
  const end = (): "held" => {
    ended ??= ctx.shuttingDown() ? "signal" : "time_exhausted";
    return "held";
  };
  const ask = async (sid: string): Promise<Answer> => {
    if (ended || !(await backOff.ready()) || lost()) return end();
    const began = ctx.clock.monotonic();
    const outcome = await ctx.providers.sms.fetch(sid);
    if (!outcome.ok && outcome.credentials) return end();
    if (outcome.ok) backOff.note(began, "well");
    else if (outcome.backoff) backOff.note(began, "badly");
    return { outcome, at: ctx.clock.now() };
  };
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => recoveryQueue.claimBatch(ctx, lock.fence, first, BATCH),
    async handle(batch) {
      const work = async (held: Lock) => {
        providerLock = held;
        const { unsent } = await sendThroughWindow<Entry<string>, Answer>(ctx, {
          items: await recoveryQueue.read(ctx, 0, batch.size),
          window: ctx.config.get(settings.window),
          groupSize: 1,
          send: async ([entry]) => [await ask(entry!.value)],
          settle: async (pairs) => {
            const asked = pairs.flatMap(({ item, answer }) =>
              answer === "held" ? [] : [{ sid: item.value, ...answer }],
            );
            for (const count of await settleAsked(ctx, asked)) {
              counts.attempted += 1;
              counts[count] += 1;
            }
          },
          stop: () => ended !== undefined || lost() || ctx.shuttingDown() || ctx.budget.exhausted(),
        });
        if (unsent.length > 0) end();
      };
      try {
        const options = { kind: "owner", wait: "spin", timeout: BUDGET, signal: ctx.signal } as const;
        await ctx.locks.withLock(keys.providerLock(), options, work);
      } catch (error) {
        if (!lockErrors.lock_held.matches(error)) throw error;
        end();
      }
      if (lock.signal.aborted) return "signal";
      if (ended) unlessFenced(await recoveryQueue.putBack(ctx, lock.fence));
      return ended;
    },
  });
  if (counts.attempted > 0) nudgeByName(ctx, "runners.sms.receipt_reconciliation");
  await report.finish({ stopReason, counts });
  return stopReason;
}

interface Asked {
  readonly sid: string;
  readonly outcome: SmsFetchOutcome;
  readonly at: number;
}

async function settleAsked(ctx: JobContext, asked: readonly Asked[]): Promise<readonly RecoveryCount[]> {
  if (asked.length === 0) return [];
  const { results: known } = await pendingMessages.get(
    ctx,
    asked.map(({ sid }) => sid),
  );
  const tally = new Tally(ctx);
  const items = asked.flatMap(({ sid, outcome, at }, index) => {
    const event = eventOf(sid, outcome, at);
    const before = known[index]?.value.message_resource_status ?? "(unknown)";
    const block = tally.block((stats) => countAnswer(stats, outcome, before, at));
    return [sid, event ? smsEvent.encode(event) : "", ...block];
  });
  const results = await ctx.redis.run(commitRecovery, [keys.recoveryPurgatory(), keys.event(), ...tally.keys], items);
  return asked.flatMap(({ outcome }, at) => (results[at] === 1 ? [countOf(outcome)] : []));
}

function countOf(outcome: SmsFetchOutcome): RecoveryCount {
  if (!outcome.ok) {
    if (outcome.identifier === "ClientError404") return "lost";
    return outcome.retryable ? "transient_error" : "permanent_error";
  }
  const category = smsCategory(outcome.resource.status);
  return category === "success" ? "succeeded" : category === "failure" ? "failed" : "pending";
}

/** Errors are no news: the message comes due again by itself. Only that the provider does not know it is. */
function eventOf(sid: string, outcome: SmsFetchOutcome, at: number): SmsEvent | undefined {
  const common = { sid, information_received_at: at, received_via: "poll" } as const;
  if (outcome.ok) {
    const { status, error_code, date_updated } = resourceOf(outcome.resource);
    return { ...common, status, error_code, error_message: explanation(outcome.resource.errorMessage), date_updated };
  }
  if (outcome.identifier !== "ClientError404") return undefined;
  return { ...common, status: "lost", error_code: null, error_message: null, date_updated: null };
}

function countAnswer(stats: Counting, outcome: SmsFetchOutcome, before: string, at: number): void {
  stats.incr(smsPollingStats, "attempted", { at });
  if (outcome.ok) stats.incr(smsPollingStats, "received", { extra: `${before}:${outcome.resource.status}`, at });
  else countError(stats, outcome, at);
}

function countError(stats: Counting, { identifier, subidentifier }: SmsFailure, at: number): void {
  const extra = subidentifier ?? "none";
  if (identifier === "ClientError404") stats.incr(smsPollingStats, "error_client_404", { at });
  else if (identifier === "ClientError429" || identifier === "ApplicationErrorRatelimit")
    stats.incr(smsPollingStats, "error_client_429", { at });
  else if (identifier === "ServerError") stats.incr(smsPollingStats, "error_server", { extra, at });
  else if (identifier === "NetworkError") stats.incr(smsPollingStats, "error_network", { at });
  else if (identifier === "InternalError") stats.incr(smsPollingStats, "error_internal", { at });
  else stats.incr(smsPollingStats, "error_client_other", { extra, at });
}

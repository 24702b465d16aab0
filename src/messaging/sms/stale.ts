import type { JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { randomToken } from "../../kernel/ids.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import type { Pending } from "../../mechanisms/pending-set/index.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { failureJob } from "./callbacks.ts";
import type { PendingSms } from "./entries.ts";
import { keys } from "./keys.ts";
import { pendingMessages } from "./line.ts";
import { pendingStale } from "./scripts.ts";
import { settings } from "./settings.ts";
import { smsPollingStats } from "./stats.ts";

const PAGE = 500;
/** Rounds in which everything was changed by others before the rest is left to the next run. */
const MAX_VAIN_ROUNDS = 5;

/** Tells the failure jobs of messages that were silent for too long. */
export async function detectStale(ctx: JobContext): Promise<StopReason> {
  const report = await startRun<"callbacks_queued">(ctx, keys.staleReport);
  const cutoff = ctx.clock.now();
  let queued = 0;
  let vain = 0;
  let stopReason: StopReason | undefined;
  while (!stopReason) {
    stopReason = ctx.shuttingDown() ? "signal" : ctx.budget.exhausted() ? "time_exhausted" : undefined;
    if (stopReason) break;
    const { commands, topology } = ctx.redis;
    const sids = await commands.zrangebyscore(topology.key(keys.pending()), "-inf", cutoff, "LIMIT", 0, PAGE);
    if (sids.length === 0) stopReason = "list_exhausted";
    else {
      const { results } = await pendingMessages.get(ctx, sids);
      const applied = await tellStale(
        ctx,
        results.filter((found) => found !== undefined),
      );
      queued += applied;
      vain = applied === 0 && results.some((found) => found !== undefined) ? vain + 1 : 0;
      if (vain >= MAX_VAIN_ROUNDS) stopReason = "time_exhausted";
    }
  }
  await report.finish({ stopReason, counts: { callbacks_queued: queued } });
  return stopReason;
}

async function tellStale(ctx: JobContext, silent: readonly Pending<PendingSms>[]): Promise<number> {
  if (silent.length === 0) return 0;
  const now = Number(ctx.clock.now().toFixed(6));
  const tally = new Tally(ctx);
  const items = silent.flatMap(({ member, value }) => {
    const after: PendingSms = {
      ...value,
      failure_job_last_called_at: now,
      num_failures: value.num_failures + 1,
      num_changes: value.num_changes + 1,
    };
    const callback = failureJob(
      after,
      { action: "pending", identifier: "StuckPending", subidentifier: null, retryable: true, extra: null },
      now,
    );
    const block = tally.block((stats) =>
      stats.incr(smsPollingStats, "detected_stale", {
        extra: value.message_resource_status,
        at: value.send_initially_queued_at,
      }),
    );
    return [member, value.num_changes, callback, ...block];
  });
  const newDue = now + ctx.config.get(settings.silence);
  const results = await ctx.redis.run(
    pendingStale,
    [keys.pending(), quarantineOf(keys.pending()), jobKeys.hot(), ...tally.keys],
    ["num_changes", "", keys.pending(), now.toFixed(6), randomToken(), newDue.toFixed(6), ...items],
  );
  const told = silent.filter((_, at) => results[at] === 1);
  noteSteps(
    ctx,
    told.map(({ value }) => ({
      channel: "sms",
      uid: value.uid,
      step: "silent",
      detail: value.message_resource_status,
    })),
  );
  return told.length;
}

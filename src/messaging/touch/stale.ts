import type { JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import { type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { keys } from "./keys.ts";
import { expire } from "./scripts.ts";
import { settings } from "./settings.ts";
import { touchStaleStats } from "./stats.ts";

const GROUP = 100;

/** Touches whose end nobody told: a channel lost a callback. They fail, and people are told. */
export async function detectStale(ctx: JobContext): Promise<StopReason> {
  const report = await startRun<"stale">(ctx, keys.staleReport);
  const cutoff = report.startedAt - ctx.config.get(settings.pendingExpiry);
  let stale = 0;
  let stopReason: StopReason | undefined;
  while (!stopReason) {
    const tally = new Tally(ctx);
    const block = tally.block((counting) => counting.incr(touchStaleStats, "stale"));
    const gone = await ctx.redis.run(
      expire,
      [keys.pending(), jobKeys.hot(), ...tally.keys],
      [ctx.clock.now().toFixed(6), String(cutoff), GROUP, ...block],
    );
    noteSteps(
      ctx,
      gone.map((uid) => ({ channel: "touch", uid, step: "expired" })),
    );
    stale += gone.length;
    if (gone.length < GROUP) stopReason = "list_exhausted";
    else if (ctx.shuttingDown()) stopReason = "signal";
    else if (ctx.budget.exhausted()) stopReason = "time_exhausted";
  }
  if (stale > 0) ctx.alerts.warning("touch:stale", `${stale} touches never ended: a channel lost their callbacks`);
  await report.finish({ stopReason, counts: { stale } });
  return stopReason;
}

import { sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import { noteSteps } from "../../mechanisms/message-log/index.ts";
import { type StopReason, startRun } from "../../mechanisms/run-report/index.ts";
import { installLinkOwners } from "../links/service.ts";
import { keys } from "./keys.ts";
import { expire } from "./scripts.ts";
import { settings } from "./settings.ts";
import { touchStaleStats } from "./stats.ts";
import { tellFailed } from "./webhooks.ts";

const GROUP = 100;

/** Links wait for their touch, however long it takes: retries, and channels with too much to do. */
installLinkOwners({
  async open({ redis: { commands, topology } }, uids) {
    const scores = await commands.zmscore(topology.key(keys.pending()), ...uids);
    return new Set(uids.filter((_, at) => scores[at] !== null));
  },
});

/**
 * Touches whose end nobody told: a channel lost a callback. They fail, and people are told. Where the installation asks
 * for evidence, those that SQL has an arrival of end well instead, so that links that people have keep working.
 */
export async function detectStale(ctx: JobContext): Promise<StopReason> {
  const report = await startRun<"stale">(ctx, keys.staleReport);
  const cutoff = report.startedAt - ctx.config.get(settings.pendingExpiry);
  let [stale, rescued] = [0, 0];
  let stopReason: StopReason | undefined;
  while (!stopReason) {
    const uids = await overdue(ctx, cutoff);
    const ends = uids.length === 0 ? [] : await end(ctx, uids, cutoff);
    noteSteps(
      ctx,
      uids.flatMap((uid, at) => (ends[at] === "failed" ? [{ channel: "touch", uid, step: "expired" }] : [])),
    );
    stale += ends.filter((fate) => fate === "failed").length;
    rescued += ends.filter((fate) => fate === "arrived").length;
    if (uids.length < GROUP) stopReason = "list_exhausted";
    else if (ctx.shuttingDown()) stopReason = "signal";
    else if (ctx.budget.exhausted()) stopReason = "time_exhausted";
  }
  if (stale > 0) ctx.alerts.warning("touch:stale", `${stale} touches never ended: a channel lost their callbacks`);
  if (rescued > 0) ctx.log.warn({ rescued }, "touches whose end nobody told had arrived, and end well");
  await report.finish({ stopReason, counts: { stale } });
  return stopReason;
}

/** The oldest first. */
function overdue({ redis: { commands, topology } }: JobContext, cutoff: number): Promise<string[]> {
  return commands.zrangebyscore(topology.key(keys.pending()), "-inf", `(${cutoff}`, "LIMIT", 0, GROUP);
}

async function end(ctx: JobContext, uids: readonly string[], cutoff: number) {
  const arrived = ctx.config.get(settings.evidence) ? await arrivedAmong(ctx, uids) : new Set<string>();
  const tally = new Tally(ctx);
  const block = tally.block((counting) => counting.incr(touchStaleStats, "stale"));
  return ctx.redis.run(
    expire,
    [keys.pending(), jobKeys.hot(), keys.toTell(), ...tally.keys],
    [
      ctx.clock.now().toFixed(6),
      String(cutoff),
      tellFailed.name,
      uids.length,
      ...uids.flatMap((uid) => [uid, arrived.has(uid) ? 1 : 0]),
      ...block,
    ],
  );
}

async function arrivedAmong(ctx: JobContext, uids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ uid: string }>`
    select distinct send_uid as uid from user_touches where send_uid = any(${[...uids]}::text[])`.execute(
    ctx.sql.tables(),
  );
  return new Set(rows.map(({ uid }) => uid));
}

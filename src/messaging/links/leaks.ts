import type { JobContext } from "../../jobs/context.ts";
import type { StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { keys } from "./keys.ts";
import { oldLinks } from "./old-links.ts";
import { openDays } from "./open-days.ts";
import { storeClicks, storeLinks } from "./rows.ts";
import { finishLeaks } from "./scripts.ts";
import { settings } from "./settings.ts";
import { linkStats } from "./stats.ts";
import type { LinkTables } from "./tables.ts";
import { readWaiting, type WaitingLink } from "./waiting.ts";

type Outcome = "recovered" | "abandoned" | "duplicate";

/**
 * Clears away links that nobody claimed: neither callback of their message ever ran, and their touch is not waited for.
 * Those whose touch did arrive are stored after all. SQL first, so that a death in between repeats what changes nothing.
 */
export async function detectLeaks(ctx: JobContext): Promise<StopReason> {
  const report = await startRun<"leaked" | "recovered" | "abandoned">(ctx, keys.leakReport);
  const before = report.startedAt - ctx.config.get(settings.leakAge);
  const counts = { leaked: 0, recovered: 0, abandoned: 0 };
  const outcomes = new Map<string, Outcome>();
  let stopReason: StopReason = "list_exhausted";
  let skip = 0;
  for (;;) {
    const page = await oldLinks(ctx, { before, now: report.startedAt, skip });
    if (!page) break;
    skip += page.held;
    if (page.leaked.length === 0) continue;
    const waiting = await readWaiting(ctx, page.leaked);
    // A link that changed meanwhile is read again, and keeps what it was first found to be.
    for (const [code, outcome] of await save(ctx, waiting)) if (!outcomes.has(code)) outcomes.set(code, outcome);
    const left = await clearAway(ctx, waiting, outcomes);
    for (const [at, { code }] of waiting.entries()) {
      if (!left[at]) continue;
      const outcome = outcomes.get(code)!;
      counts.leaked += 1;
      if (outcome !== "duplicate") counts[outcome] += 1;
    }
    ctx.alerts.warning(
      "touch_links:leaked",
      `${left.filter(Boolean).length} links were claimed by nobody: neither callback of their message ran`,
    );
    if (ctx.shuttingDown()) stopReason = "signal";
    else if (ctx.budget.exhausted()) stopReason = "time_exhausted";
    else continue;
    break;
  }
  await report.finish({ stopReason, counts });
  return stopReason;
}

async function save(ctx: JobContext, waiting: readonly WaitingLink[]): Promise<ReadonlyMap<string, Outcome>> {
  const present = waiting.filter(({ link }) => link);
  const fates = await ctx.sql
    .tables<LinkTables>()
    .transaction()
    .execute(async (tx) => {
      const found = await storeLinks(
        tx,
        present.map(({ link }) => link!),
      );
      const own = present.filter(({ code }) => ["stored", "known"].includes(found.get(code) ?? ""));
      await storeClicks(
        tx,
        own.flatMap(({ clicks }) => clicks),
        ctx.clock.now(),
      );
      return found;
    });
  return new Map(
    waiting.map(({ code }) => {
      const fate = fates.get(code);
      if (fate === "stored") return [code, "recovered"];
      return [code, fate === "known" || fate === "taken" ? "duplicate" : "abandoned"];
    }),
  );
}

async function clearAway(
  ctx: JobContext,
  waiting: readonly WaitingLink[],
  outcomes: ReadonlyMap<string, Outcome>,
): Promise<readonly boolean[]> {
  const days = openDays(ctx);
  return ctx.redis.run(
    finishLeaks,
    [keys.buffer(), keys.toPersist(), keys.persistPurgatory(), linkStats.earliest(), ...days.keys],
    [...days.args, ...waiting.flatMap(({ code, length }) => [code, length, outcomes.get(code)!])],
  );
}

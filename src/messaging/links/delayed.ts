import type { JobContext } from "../../jobs/context.ts";
import { Tally } from "../../mechanisms/dated-counters/index.ts";
import type { Lock } from "../../mechanisms/lock/index.ts";
import { runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { purgatorySchedule } from "../../mechanisms/purgatory-schedule/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { clickUid, delayedHash, type TrackType } from "./entries.ts";
import { keys } from "./keys.ts";
import { type ClickRow, findLinks, knownClicks, storeClicks } from "./rows.ts";
import { finishDelayed, readDelayed } from "./scripts.ts";
import { settings } from "./settings.ts";
import { wordOf } from "./sql-uses.ts";
import { linkStats } from "./stats.ts";
import type { LinkTables } from "./tables.ts";
import { fieldsOf } from "./waiting.ts";

const delayedSchedule = purgatorySchedule({
  schedule: keys.delayed(),
  purgatory: keys.delayedPurgatory(),
  codec: clickUid,
});

const BATCH = 500;
type Fate = "persisted" | "delayed" | "lost" | "duplicate";

interface Waited {
  readonly uid: string;
  readonly click: ClickRow | undefined;
  readonly mustWait: boolean;
}

/**
 * Stores clicks that came while their link was being stored. One whose link still is not stored, or whose parent is
 * further back, waits on; everything else leaves. SQL comes first: a death before the finishing call finds the rows.
 */
export async function persistDelayed(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<Fate | "attempted">(ctx, keys.delayedReport);
  const counts = { attempted: 0, persisted: 0, delayed: 0, lost: 0, duplicate: 0 };
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) =>
      first
        ? delayedSchedule.shift(ctx, lock.fence, BATCH, report.startedAt)
        : delayedSchedule.shiftMore(ctx, lock.fence, BATCH, BATCH, report.startedAt),
    async handle({ size }) {
      const entries = await delayedSchedule.read(ctx, 0, size);
      const waited = await read(
        ctx,
        entries.map(({ value }) => value),
      );
      for (const fate of await store(ctx, waited)) {
        counts.attempted += 1;
        counts[fate] += 1;
      }
      return undefined;
    },
  });
  await report.finish({ stopReason, counts });
  return stopReason;
}

async function read(ctx: JobContext, uids: readonly string[]): Promise<readonly Waited[]> {
  if (uids.length === 0) return [];
  const found = await ctx.redis.run(
    readDelayed,
    [keys.delayed(), keys.delayedPurgatory(), keys.buffer(), keys.persistPurgatory()],
    [...uids],
  );
  return found.map(({ click: flat, linkWaits, parentWaits }, at) => ({
    uid: uids[at]!,
    click: rowOf(ctx, flat),
    mustWait: linkWaits || parentWaits,
  }));
}

function rowOf(ctx: JobContext, flat: readonly string[]): ClickRow | undefined {
  try {
    const { uid, link_code, track_type, parent_uid, user_sub, visitor_uid, clicked_at } = delayedHash.decode(
      fieldsOf(flat),
    );
    return {
      uid,
      link_code,
      clicked_at,
      track_type: track_type as TrackType,
      ...(parent_uid === "" ? {} : { parent_uid }),
      ...(user_sub === "" ? {} : { user_sub }),
      ...(visitor_uid === "" ? {} : { visitor_uid }),
    };
  } catch (error) {
    ctx.alerts.warning("touch_links:click_lost", `a click that waited cannot be read: ${String(error)}`);
    return undefined;
  }
}

async function store(ctx: JobContext, waited: readonly Waited[]): Promise<readonly Fate[]> {
  if (waited.length === 0) return [];
  const ready = waited.flatMap(({ click, mustWait }) => (click && !mustWait ? [click] : []));
  const links = await findLinks(ctx, [...new Set(ready.map(({ link_code }) => link_code))]);
  const { stored, known } = await ctx.sql
    .tables<LinkTables>()
    .transaction()
    .execute(async (tx) => {
      const fresh = await storeClicks(tx, ready, ctx.clock.now());
      const rest = ready.map(({ uid }) => uid).filter((uid) => !fresh.has(uid));
      return { stored: fresh, known: await knownClicks(tx, rest) };
    });
  const fateOf = ({ uid, click, mustWait }: Waited): Fate => {
    if (!click) return "lost";
    if (mustWait) return "delayed";
    if (stored.has(uid)) return "persisted";
    return known.has(uid) ? "duplicate" : "lost";
  };
  const again = String(ctx.clock.now() + ctx.config.get(settings.delayedAgain));
  const tally = new Tally(ctx);
  const fates = waited.map(fateOf);
  const items = waited.flatMap(({ uid, click }, at) => {
    const fate = fates[at]!;
    const block = tally.block((counting) => {
      counting.incr(linkStats, "delayed_clicks_attempted");
      if (fate === "delayed") counting.incr(linkStats, "delayed_clicks_delayed");
      else if (fate === "persisted") {
        const page = links.get(click!.link_code)?.page_identifier ?? "unknown";
        counting.incr(linkStats, "delayed_clicks_persisted", { extra: wordOf(page, click!) });
      } else counting.incr(linkStats, "delayed_clicks_failed", { extra: fate });
    });
    return [uid, fate === "delayed" ? again : "", ...block];
  });
  await ctx.redis.run(finishDelayed, [keys.delayedPurgatory(), keys.delayed(), ...tally.keys], items);
  return fates;
}

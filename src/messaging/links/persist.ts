import type { JobContext } from "../../jobs/context.ts";
import { type Counting, Tally } from "../../mechanisms/dated-counters/index.ts";
import type { Fence, Lock } from "../../mechanisms/lock/index.ts";
import { runBatches, type StopReason } from "../../mechanisms/purgatory-queue/index.ts";
import { purgatorySchedule } from "../../mechanisms/purgatory-schedule/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { linkCode } from "./entries.ts";
import { keys } from "./keys.ts";
import { knownClicks, type LinkFate, storeClicks, storeLinks } from "./rows.ts";
import { finishPersist } from "./scripts.ts";
import { settings } from "./settings.ts";
import { linkStats } from "./stats.ts";
import type { LinkTables } from "./tables.ts";
import { readWaiting, type WaitingLink } from "./waiting.ts";

export const persistSchedule = purgatorySchedule({
  schedule: keys.toPersist(),
  purgatory: keys.persistPurgatory(),
  codec: linkCode,
});

const ZERO = {
  attempted: 0,
  lost: 0,
  integrity_error: 0,
  persisted: 0,
  persisted_without_clicks: 0,
  persisted_with_one_click: 0,
  persisted_with_multiple_clicks: 0,
};
type Counts = { -readonly [Name in keyof typeof ZERO]: number };

/**
 * Stores links whose message arrived, with the clicks that they had so far.
 *
 *   to_persist ──due──▶ purgatory ──SQL commit──▶ stored ──finish──▶ gone from Redis
 *                          │ └─no row of its touch yet─▶ to_persist, half an hour later
 *                          └───another link has its code─▶ gone
 *
 * While a code is in the purgatory its clicks wait elsewhere, so what was read is all there is. A death before the commit
 * leaves everything in Redis; one after it finds the same rows and only clears away.
 */
export async function persistLinks(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<keyof Counts>(ctx, keys.persistReport);
  const run = new PersistRun(ctx, lock.fence, report.startedAt);
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => run.claim(first),
    handle: ({ size }) => run.handle(size),
  });
  await report.finish({ stopReason, counts: run.report() });
  return stopReason;
}

class PersistRun {
  readonly #ctx: JobContext;
  readonly #fence: Fence;
  readonly #startedAt: number;
  readonly #counts: Counts = { ...ZERO };

  constructor(ctx: JobContext, fence: Fence, startedAt: number) {
    this.#ctx = ctx;
    this.#fence = fence;
    this.#startedAt = startedAt;
  }

  claim(first: boolean) {
    const size = this.#ctx.config.get(settings.persistBatch);
    return first
      ? persistSchedule.shift(this.#ctx, this.#fence, size, this.#startedAt)
      : persistSchedule.shiftMore(this.#ctx, this.#fence, size, size, this.#startedAt);
  }

  async handle(size: number): Promise<undefined> {
    const entries = await persistSchedule.read(this.#ctx, 0, size);
    const waiting = await readWaiting(
      this.#ctx,
      entries.map(({ value }) => value),
    );
    const most = this.#ctx.config.get(settings.sqlBatch);
    for (let rest = waiting; rest.length > 0; ) {
      const part = partOf(rest, most);
      await this.#store(part);
      rest = rest.slice(part.length);
    }
  }

  /** With an integrity error it is not known how many clicks went with it, and the report says so. */
  report(): Counts {
    const unknown = this.#counts.integrity_error > 0 ? -1 : undefined;
    return {
      ...this.#counts,
      persisted_without_clicks: unknown ?? this.#counts.persisted_without_clicks,
      persisted_with_one_click: unknown ?? this.#counts.persisted_with_one_click,
      persisted_with_multiple_clicks: unknown ?? this.#counts.persisted_with_multiple_clicks,
    };
  }

  async #store(part: readonly WaitingLink[]): Promise<void> {
    const ctx = this.#ctx;
    const links = part.flatMap(({ link }) => link ?? []);
    const { fates, stored } = await ctx.sql
      .tables<LinkTables>()
      .transaction()
      .execute(async (tx) => {
        const found = await storeLinks(tx, links);
        const clicks = part.filter(({ code }) => isStored(found.get(code))).flatMap((each) => each.clicks);
        const fresh = await storeClicks(tx, clicks, ctx.clock.now());
        const rest = clicks.map(({ uid }) => uid).filter((uid) => !fresh.has(uid));
        return { fates: found, stored: new Set([...fresh, ...(await knownClicks(tx, rest))]) };
      });
    const group = judge(part, fates, stored);
    const tally = new Tally(ctx);
    const items = part.flatMap((waiting) => {
      const fate = waiting.link ? fates.get(waiting.code) : undefined;
      const block = tally.block((counting) => count(counting, waiting, fate, stored, group));
      return [waiting.code, ...this.#disposition(waiting, fate), ...block];
    });
    await ctx.redis.run(
      finishPersist,
      [keys.persistPurgatory(), keys.buffer(), keys.toPersist(), ...tally.keys],
      items,
    );
    for (const waiting of part) this.#note(waiting, waiting.link ? fates.get(waiting.code) : undefined);
  }

  /** What happens to it in Redis, and when it is tried again if it is. */
  #disposition({ link }: WaitingLink, fate: LinkFate | undefined): readonly [string, string] {
    const { clock, config } = this.#ctx;
    if (!link || !fate) return ["lost", ""];
    if (fate !== "no_touch") return ["done", ""];
    const young = clock.now() - link.created_at < config.get(settings.leakAge);
    return ["again", young ? String(clock.now() + config.get(settings.persistDelay)) : ""];
  }

  #note({ clicks }: WaitingLink, fate: LinkFate | undefined): void {
    const counts = this.#counts;
    counts.attempted += 1;
    if (!fate) counts.lost += 1;
    else if (!isStored(fate)) counts.integrity_error += 1;
    else {
      counts.persisted += 1;
      if (clicks.length === 0) counts.persisted_without_clicks += 1;
      else if (clicks.length === 1) counts.persisted_with_one_click += 1;
      else counts.persisted_with_multiple_clicks += 1;
    }
  }
}

const isStored = (fate: LinkFate | undefined) => fate === "stored" || fate === "known";

/** As many links as make the rows of one transaction; a link stays with its clicks. */
function partOf(waiting: readonly WaitingLink[], most: number): readonly WaitingLink[] {
  let rows = 0;
  const end = waiting.findIndex(({ clicks }) => {
    rows += 1 + clicks.length;
    return rows >= most;
  });
  return end === -1 ? waiting : waiting.slice(0, end + 1);
}

interface Judged {
  readonly linksFailed: boolean;
  readonly clicksFailed: boolean;
}

function judge(
  part: readonly WaitingLink[],
  fates: ReadonlyMap<string, LinkFate>,
  stored: ReadonlySet<string>,
): Judged {
  const present = part.filter(({ link }) => link);
  return {
    linksFailed: present.some(({ code }) => !isStored(fates.get(code))),
    clicksFailed: present.some(
      ({ clicks, length }) => length > clicks.length || clicks.some(({ uid }) => !stored.has(uid)),
    ),
  };
}

function count(
  counting: Counting,
  { link, clicks, length }: WaitingLink,
  fate: LinkFate | undefined,
  stored: ReadonlySet<string>,
  { linksFailed, clicksFailed }: Judged,
): void {
  if (!link || !fate) {
    counting.incr(linkStats, "persists_failed", { extra: "lost" });
    return;
  }
  const [page, at] = [link.page_identifier, link.created_at];
  if (!isStored(fate)) counting.incr(linkStats, "persists_failed", { extra: "integrity" });
  else if (linksFailed) counting.incr(linkStats, "persisted_in_failed_batch");
  else counting.incr(linkStats, "persisted", { extra: page, at });
  const kept = clicks.filter(({ uid }) => stored.has(uid)).length;
  counting.incr(linkStats, "persist_click_failed", { by: length - kept });
  if (clicksFailed) counting.incr(linkStats, "persisted_clicks_in_failed_batch", { by: kept });
  else if (kept > 0) counting.incr(linkStats, "persisted_clicks", { extra: `${page}:${kept}`, at, by: kept });
}

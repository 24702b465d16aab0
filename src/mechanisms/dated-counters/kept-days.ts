import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { isoDate, parseIsoDate } from "./calendar.ts";
import type { RotatedCounters, Snapshot } from "./daily-stats.ts";

/** By slot, then by field. */
export type StoredCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

/**
 * What SQL holds of the counters that Redis still has for these days: nothing, unless the family keeps stored days. The
 * expiry of a kept day says that it was stored, and the snapshots of its rotations say how much of it; the rest was
 * counted since. To be asked before the counters are read: should they expire in between, nothing of them is left over.
 */
export async function storedOf(
  ctx: Pick<KernelContext, "redis" | "sql">,
  plan: Pick<RotatedCounters, "table" | "keep" | "slots" | "counter">,
  dates: readonly number[],
): Promise<ReadonlyMap<number, StoredCounts>> {
  if (plan.keep === undefined) return new Map();
  const { commands, topology } = ctx.redis;
  const ttls = await Promise.all(
    dates.map((date) => Promise.all(plan.slots.map((slot) => commands.pttl(topology.key(plan.counter(date, slot)))))),
  );
  const kept = dates.filter((_, index) => ttls[index]!.some((left) => left >= 0));
  if (kept.length === 0) return new Map();
  const { rows } = await sql<{ retrieved_for: string; snapshot: Snapshot }>`
    select retrieved_for, snapshot from stat_rotations
    where table_name = ${plan.table} and retrieved_for = any(${kept.map(isoDate)}::date[])`.execute(ctx.sql.tables());
  const stored = new Map<number, Record<string, Record<string, number>>>();
  for (const { retrieved_for, snapshot } of rows) {
    const date = parseIsoDate(retrieved_for);
    const day = stored.get(date) ?? {};
    stored.set(date, day);
    for (const [slot, counts] of Object.entries(snapshot)) {
      if (typeof counts === "number") continue;
      const sums = day[slot] ?? {};
      day[slot] = sums;
      for (const [field, count] of Object.entries(counts)) sums[field] = (sums[field] ?? 0) + count;
    }
  }
  return stored;
}

import { type Kysely, sql, type Transaction } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { isoDate, parseIsoDate, type StatisticsCalendar } from "./calendar.ts";
import type { DayToStore, RotatedCounters, Snapshot } from "./daily-stats.ts";
import { type StoredCounts, storedOf } from "./kept-days.ts";
import { datedCounterKeys, FLAG_SECONDS } from "./keys.ts";
import { consumeScript, retainScript, snapshotScript } from "./scripts.ts";
import type { StatTables } from "./tables.ts";

/**
 * Moves finished days from Redis into SQL, one row a day.
 *
 * A day's counts are first in Redis alone. One SQL transaction adds a snapshot of them to the day's row and inserts the
 * rotation, unconsumed: from its commit on SQL is authoritative for what the snapshot holds, and Redis still has it too.
 * One script then subtracts the snapshot, and sets a flag so that it is subtracted once. Last, the rotation is marked
 * consumed. Because counts are subtracted and not deleted, what arrives in between stays in Redis for the next rotation,
 * which adds it to the row.
 *
 * A family may keep its stored days for a while: then nothing is subtracted and the day's keys expire instead. Should
 * something be counted on such a day, the snapshots of its earlier rotations say how much of it is stored already.
 *
 * A crash before the commit leaves Redis as it was. A crash after it leaves an unconsumed rotation; whoever rotates that
 * table next begins with it. The caller holds a lock; should it have been lost, the rotation that another worker began
 * meanwhile makes this one roll back.
 */
export type RotateStop = "list_exhausted" | "uninitialized" | "signal" | "time_exhausted" | "superseded" | "malformed";

export interface RotateResult {
  readonly stop: RotateStop;
  /** The days that were stored, oldest first. */
  readonly dates: readonly number[];
}

export interface RotateOptions {
  readonly calendar: StatisticsCalendar;
  readonly signal?: AbortSignal;
  /** Seconds after which no further day is begun; default 300. */
  readonly budget?: number;
  /** The last day to move, open or not; by default the newest that is closed everywhere. */
  readonly through?: number;
}

type RotateContext = Pick<KernelContext, "redis" | "sql" | "clock" | "alerts">;

const DEFAULT_BUDGET = 300;
/** Seconds for which finished rotations are remembered. */
export const REMEMBERED = 30 * 86_400;
const UNIQUE_VIOLATION = "23505";

class Superseded extends Error {}

export async function rotate(ctx: RotateContext, plan: RotatedCounters, options: RotateOptions): Promise<RotateResult> {
  const started = ctx.clock.monotonic();
  const dates: number[] = [];
  let newest = await finishBegun(ctx, plan);
  const earliest = await ctx.redis.commands.get(ctx.redis.topology.key(plan.earliest()));
  if (earliest === null) return { stop: "uninitialized", dates };
  const last = options.through ?? options.calendar.newestRotatableDate(ctx.clock.now(), plan);
  for (let date = Number(earliest); date <= last; date++) {
    if (options.signal?.aborted) return { stop: "signal", dates };
    if (ctx.clock.monotonic() - started >= (options.budget ?? DEFAULT_BUDGET)) return { stop: "time_exhausted", dates };
    const begunAt = ctx.clock.monotonic();
    const stored = await storedOf(ctx, plan, [date]);
    const read = await readSnapshot(ctx, plan, date);
    if ("malformed" in read) {
      await refuseMalformed(ctx, plan, date, { ...read, newest, begunAt });
      return { stop: "malformed", dates };
    }
    const snapshot = withoutStored(read.snapshot, stored.get(date));
    const rotation = await store(
      ctx,
      plan,
      { date, snapshot, now: ctx.clock.now(), calendar: options.calendar },
      newest,
    );
    if (!rotation) return { stop: "superseded", dates };
    newest = rotation.id;
    await consume(ctx, plan, date, rotation.uid, plan.keep === undefined ? snapshot : read.snapshot);
    await markConsumed(ctx, [rotation.uid], millisecondsSince(ctx, begunAt));
    dates.push(date);
  }
  return { stop: "list_exhausted", dates };
}

/** Finishes what earlier rotations of this table began, and answers the table's highest rotation id. */
async function finishBegun(ctx: RotateContext, plan: RotatedCounters): Promise<number> {
  const tables = ctx.sql.tables<StatTables>();
  const begun = await tables
    .selectFrom("stat_rotations")
    .select(["uid", "retrieved_for", "snapshot"])
    .where("table_name", "=", plan.table)
    .where("consumed_at", "is", null)
    .orderBy("id")
    .execute();
  for (const { uid, retrieved_for, snapshot } of begun)
    await consume(ctx, plan, parseIsoDate(retrieved_for), uid, snapshot as Snapshot);
  if (begun.length > 0)
    await markConsumed(
      ctx,
      begun.map(({ uid }) => uid),
      null,
    );
  const highest = await tables
    .selectFrom("stat_rotations")
    .select((build) => build.fn.max("id").as("id"))
    .where("table_name", "=", plan.table)
    .executeTakeFirst();
  return Number(highest?.id ?? 0);
}

type Malformed = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** All counts of a day at one moment; or, where some of them are no numbers, those by slot and field. */
async function readSnapshot(
  ctx: RotateContext,
  plan: RotatedCounters,
  date: number,
): Promise<{ readonly snapshot: Snapshot } | { readonly malformed: Malformed }> {
  const contents = await ctx.redis.run(
    snapshotScript,
    plan.slots.map((slot) => plan.counter(date, slot)),
    [],
  );
  const snapshot: Record<string, Record<string, number> | number> = {};
  const malformed: Record<string, Record<string, string>> = {};
  for (const [index, flat] of contents.entries()) {
    const slot = plan.slots[index]!;
    // A string counter has one count and no fields.
    const pairs =
      flat.length === 1
        ? [[slot, flat[0]!] as const]
        : Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at]!, flat[2 * at + 1]!] as const);
    const wrong = pairs.filter(([, count]) => !/^-?\d{1,15}$/.test(count));
    if (wrong.length > 0) malformed[slot] = Object.fromEntries(wrong);
    else if (flat.length === 1) snapshot[slot] = Number(flat[0]);
    else if (flat.length > 0)
      snapshot[slot] = Object.fromEntries(pairs.map(([field, count]) => [field, Number(count)]));
  }
  return Object.keys(malformed).length > 0 ? { malformed } : { snapshot };
}

/**
 * Says that a day cannot be stored, and leaves it as it is. Every run until somebody mends it finds the same, which is
 * written down once: as a rotation that stored nothing and has nothing to finish.
 */
async function refuseMalformed(
  ctx: RotateContext,
  plan: RotatedCounters,
  date: number,
  found: { readonly malformed: Malformed; readonly newest: number; readonly begunAt: number },
): Promise<void> {
  const [wrong] = Object.values(found.malformed).flatMap((fields) => Object.values(fields));
  ctx.alerts.warning(
    "stats:malformed",
    `${plan.name} of ${isoDate(date)} holds ${JSON.stringify(wrong)} where a count should be; it is not rotated`,
    { urgent: true },
  );
  const tables = ctx.sql.tables<StatTables>();
  const last = await tables
    .selectFrom("stat_rotations")
    .select(["outcome", "retrieved_for"])
    .where("id", "=", found.newest)
    .executeTakeFirst();
  if (last?.outcome === "malformed" && last.retrieved_for === isoDate(date)) return;
  const now = timestamp(ctx.clock.now());
  await tables
    .insertInto("stat_rotations")
    .values({
      uid: newUid("srot"),
      table_name: plan.table,
      retrieved_for: isoDate(date),
      snapshot: "{}",
      outcome: "malformed",
      leftover: canonicalJson(found.malformed),
      duration_ms: millisecondsSince(ctx, found.begunAt),
      created_at: now,
      consumed_at: now,
    })
    .execute();
}

function millisecondsSince(ctx: RotateContext, begunAt: number): number {
  return Math.round((ctx.clock.monotonic() - begunAt) * 1000);
}

/** What of a snapshot is new: of a day that is kept, its earlier rotations have stored a part. */
function withoutStored(snapshot: Snapshot, stored: StoredCounts | undefined): Snapshot {
  if (!stored) return snapshot;
  return Object.fromEntries(
    Object.entries(snapshot).map(([slot, counts]) => {
      if (typeof counts === "number") return [slot, counts];
      const rest = Object.entries(counts).map(
        ([field, count]) => [field, count - (stored[slot]?.[field] ?? 0)] as const,
      );
      return [slot, Object.fromEntries(rest.filter(([, count]) => count > 0))];
    }),
  );
}

/** The one transaction; undefined when another worker rotates this table. */
async function store(
  ctx: RotateContext,
  plan: RotatedCounters,
  day: DayToStore,
  newest: number,
): Promise<{ id: number; uid: string } | undefined> {
  const { date, snapshot, now } = day;
  const { mismatches: own, leftover } = plan.examine(snapshot);
  const mismatches = [...own, ...((await plan.compare?.(ctx, date)) ?? [])];
  try {
    const rotation = await ctx.sql
      .tables<StatTables>()
      .transaction()
      .execute(async (tx) => {
        const { id, uid } = await tx
          .insertInto("stat_rotations")
          .values({
            uid: newUid("srot"),
            table_name: plan.table,
            retrieved_for: isoDate(date),
            snapshot: canonicalJson(snapshot),
            outcome: mismatches.length > 0 ? "mismatch" : "ok",
            leftover: leftover ? canonicalJson(leftover) : null,
            created_at: timestamp(now),
          })
          .returning(["id", "uid"])
          .executeTakeFirstOrThrow();
        await refuseIfSuperseded(tx, plan.table, newest, id);
        await plan.store(tx as unknown as Transaction<never>, day);
        return { id, uid };
      });
    for (const mismatch of mismatches)
      ctx.alerts.warning("stats:mismatch", `${plan.name} of ${isoDate(date)}: ${mismatch}`);
    if (leftover)
      ctx.alerts.warning(
        "stats:undeclared",
        `${plan.name} of ${isoDate(date)} has counts of undeclared events: ${Object.keys(leftover).join(", ")}`,
      );
    return rotation;
  } catch (error) {
    // The partial unique index holds back a second rotation of the same day until the first has ended.
    if (error instanceof Superseded || (error as { code?: string }).code === UNIQUE_VIOLATION) return undefined;
    throw error;
  }
}

async function refuseIfSuperseded(tx: Kysely<StatTables>, table: string, newest: number, own: number): Promise<void> {
  const other = await tx
    .selectFrom("stat_rotations")
    .select("id")
    .where("table_name", "=", table)
    .where("id", ">", newest)
    .where("id", "<>", own)
    .limit(1)
    .executeTakeFirst();
  if (other) throw new Superseded();
}

/** Subtracts a snapshot that SQL holds, or lets it expire where the family keeps it; a repeat does nothing. */
async function consume(
  ctx: RotateContext,
  plan: RotatedCounters,
  date: number,
  uid: string,
  snapshot: Snapshot,
): Promise<void> {
  // A declaration may have lost an event since the snapshot was taken; its counts are subtracted all the same.
  const slots = [...new Set([...plan.slots, ...Object.keys(snapshot)])];
  const counts = slots.flatMap((slot): (string | number)[] => {
    const held = snapshot[slot];
    if (typeof held === "number") return [-1, held];
    const pairs = Object.entries(held ?? {});
    return [pairs.length, ...pairs.flat()];
  });
  if (plan.keep !== undefined) {
    const counters = slots.map((slot) => plan.counter(date, slot));
    await ctx.redis.run(retainScript, [plan.earliest(), ...counters], [date, plan.keep * 1000, ...counts]);
    return;
  }
  await ctx.redis.run(
    consumeScript,
    [datedCounterKeys.rotated({ uid }), plan.earliest(), ...slots.map((slot) => plan.counter(date, slot))],
    [date, FLAG_SECONDS * 1000, ...counts],
  );
}

async function markConsumed(ctx: RotateContext, uids: readonly string[], durationMs: number | null): Promise<void> {
  await ctx.sql
    .tables<StatTables>()
    .updateTable("stat_rotations")
    .set({ consumed_at: timestamp(ctx.clock.now()), duration_ms: durationMs })
    .where("uid", "in", [...uids])
    .execute();
}

/** Forgets consumed rotations after 30 days; answers how many. */
export async function forgetRotations(ctx: Pick<KernelContext, "sql" | "clock">): Promise<number> {
  const { numAffectedRows } = await sql`delete from stat_rotations
    where consumed_at < ${timestamp(ctx.clock.now() - REMEMBERED)}`.execute(ctx.sql.tables());
  return Number(numAffectedRows ?? 0);
}

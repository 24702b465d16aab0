import type { Kysely } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { datedCounterKeys, FLAG_SECONDS } from "./keys.ts";
import { type CounterOperation, encodeOperations, MAX_OPERATIONS } from "./operations.ts";
import { applyOnceScript } from "./scripts.ts";
import type { Stats } from "./stats.ts";
import type { StatTables } from "./tables.ts";

/**
 * Counts that belong to a SQL transaction: they happen if it commits, once, and not otherwise.
 *
 * The transaction stages them as rows. After its commit one script a row applies them and sets a flag, then the rows are
 * deleted. A process that dies in between leaves rows; the sweep applies them, and the flag tells it which ones were.
 */
export interface StagedDelta {
  readonly uid: string;
  readonly operations: readonly CounterOperation[];
}

type DeltaContext = Pick<KernelContext, "redis" | "sql" | "clock">;

/** How many leftovers one sweep takes. */
const SWEEP_LIMIT = 500;
/** Seconds a transaction's own process gets before the sweep helps. */
const SWEEP_AGE = 5;

/** Inside the transaction: writes down what it counts, one row per family of keys. */
export async function stageDeltas(
  tx: Kysely<never>,
  ctx: Pick<KernelContext, "clock">,
  stats: Stats,
): Promise<readonly StagedDelta[]> {
  const staged = stats
    .collected()
    .flatMap(({ family, operations }) =>
      chunks(operations, MAX_OPERATIONS).map((part) => ({ uid: newUid("sd"), family, operations: part })),
    );
  if (staged.length === 0) return [];
  await (tx as unknown as Kysely<StatTables>)
    .insertInto("stat_deltas")
    .values(
      staged.map(({ uid, family, operations }) => ({
        uid,
        family,
        ops: JSON.stringify(operations),
        created_at: timestamp(ctx.clock.now()),
      })),
    )
    .execute();
  return staged;
}

/** After the commit: applies the counts and removes their rows. */
export async function applyDeltas(ctx: DeltaContext, staged: readonly StagedDelta[]): Promise<void> {
  if (staged.length === 0) return;
  await Promise.all(
    staged.map(({ uid, operations }) => {
      const { keys, args } = encodeOperations(operations);
      return ctx.redis.run(
        applyOnceScript,
        [datedCounterKeys.applied({ uid }), ...keys],
        [FLAG_SECONDS * 1000, ...args],
      );
    }),
  );
  await ctx.sql
    .tables<StatTables>()
    .deleteFrom("stat_deltas")
    .where(
      "uid",
      "in",
      staged.map(({ uid }) => uid),
    )
    .execute();
}

/** Applies what dead processes left behind; answers how many rows. */
export async function sweepDeltas(ctx: DeltaContext): Promise<number> {
  const rows = await ctx.sql
    .tables<StatTables>()
    .selectFrom("stat_deltas")
    .select(["uid", "ops"])
    .where("created_at", "<=", timestamp(ctx.clock.now() - SWEEP_AGE))
    .orderBy("created_at")
    .limit(SWEEP_LIMIT)
    .execute();
  await applyDeltas(
    ctx,
    rows.map(({ uid, ops }) => ({ uid, operations: ops as readonly CounterOperation[] })),
  );
  return rows.length;
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

import { type Kysely, type RawBuilder, sql } from "kysely";
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
  readonly family: string;
  readonly operations: readonly CounterOperation[];
}

type DeltaContext = Pick<KernelContext, "redis" | "sql" | "clock">;

/** How many leftovers one sweep takes. */
const SWEEP_LIMIT = 500;
/** Seconds a transaction's own process gets before the sweep helps. */
const SWEEP_AGE = 5;

/** What a unit of work counted, as rows to stage: one per family of keys. */
export function drawDeltas(stats: Stats): readonly StagedDelta[] {
  return stats
    .collected()
    .flatMap(({ family, operations }) =>
      chunks(operations, MAX_OPERATIONS).map((part) => ({ uid: newUid("sd"), family, operations: part })),
    );
}

/** The statement that stages rows, to be part of another that must happen together with them; `when` tells whether it does. */
export function stagingOf(
  ctx: Pick<KernelContext, "clock">,
  staged: readonly StagedDelta[],
  when: RawBuilder<unknown> = sql`true`,
): RawBuilder<unknown> {
  return sql`
    insert into stat_deltas (uid, family, ops, created_at)
    select staged.uid, staged.family, staged.ops, ${timestamp(ctx.clock.now())}
    from unnest(
      ${staged.map(({ uid }) => uid)}::text[], ${staged.map(({ family }) => family)}::text[],
      ${staged.map(({ operations }) => JSON.stringify(operations))}::jsonb[]
    ) as staged (uid, family, ops) where ${when}`;
}

/** Inside the transaction: writes down what it counts. */
export async function stageDeltas(
  tx: Kysely<never>,
  ctx: Pick<KernelContext, "clock">,
  stats: Stats,
): Promise<readonly StagedDelta[]> {
  const staged = drawDeltas(stats);
  if (staged.length > 0) await stagingOf(ctx, staged).execute(tx);
  return staged;
}

/** After the commit: applies the counts and removes their rows. */
export async function applyDeltas(ctx: DeltaContext, staged: readonly StagedDelta[]): Promise<void> {
  if (staged.length === 0) return;
  await countDeltas(ctx, staged);
  await removalOf(staged.map(({ uid }) => uid)).execute(ctx.sql.tables<StatTables>());
}

/** After the commit: applies the counts. Their rows stay until somebody removes them; until then they count no second time. */
export async function countDeltas(
  ctx: Pick<KernelContext, "redis">,
  staged: readonly Pick<StagedDelta, "uid" | "operations">[],
): Promise<void> {
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
}

/** The statement that removes rows whose counts were applied. */
export function removalOf(uids: readonly string[]): RawBuilder<unknown> {
  return sql`delete from stat_deltas where uid = any(${[...uids]}::text[])`;
}

/** Applies what dead processes left behind; answers how many rows. */
export async function sweepDeltas(ctx: DeltaContext): Promise<number> {
  const rows = await ctx.sql
    .tables<StatTables>()
    .selectFrom("stat_deltas")
    .select(["uid", "family", "ops"])
    .where("created_at", "<=", timestamp(ctx.clock.now() - SWEEP_AGE))
    .orderBy("created_at")
    .limit(SWEEP_LIMIT)
    .execute();
  await applyDeltas(
    ctx,
    rows.map(({ uid, family, ops }) => ({ uid, family, operations: ops as readonly CounterOperation[] })),
  );
  return rows.length;
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

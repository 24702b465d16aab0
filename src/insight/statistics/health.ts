import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { calendarOf, isoDate, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";

type HealthContext = Pick<KernelContext, "redis" | "sql" | "clock" | "config">;

export interface Lateness {
  readonly family: string;
  /** The earliest day that may not be in SQL yet. */
  readonly earliest: number | undefined;
  /** For how many days the oldest of them should have been moved already. */
  readonly daysLate: number;
}

export async function latenessOf(
  ctx: Pick<HealthContext, "redis" | "clock" | "config">,
  families: readonly StatsFamily[],
): Promise<readonly Lateness[]> {
  const today = calendarOf(ctx).unixDate(ctx.clock.now());
  return Promise.all(
    families.map(async (family) => {
      const held = await ctx.redis.commands.get(ctx.redis.topology.key(family.earliest()));
      const earliest = held === null ? undefined : Number(held);
      const daysLate = earliest === undefined ? 0 : Math.max(0, today - family.held - earliest);
      return { family: family.name, earliest, daysLate };
    }),
  );
}

interface RotationRow {
  readonly table_name: string;
  readonly retrieved_for: string;
  readonly outcome: string;
  readonly duration_ms: number | null;
  readonly leftover: Record<string, unknown> | null;
  readonly created_at: number;
  readonly consumed_at: number | null;
}

/** How far each family is, when it was last moved, and whether its numbers agreed. */
export async function readHealth(ctx: HealthContext, families: readonly StatsFamily[]) {
  const [lateness, latest, mismatches, waiting] = await Promise.all([
    latenessOf(ctx, families),
    latestRotations(ctx, "%"),
    latestRotations(ctx, "mismatch"),
    sql<{ waiting: number }>`select count(*) as waiting from stat_deltas`.execute(ctx.sql.tables()),
  ]);
  return {
    families: families.map(({ name, table }, index) => {
      const { earliest, daysLate } = lateness[index]!;
      return {
        name,
        earliest: earliest === undefined ? null : isoDate(earliest),
        days_late: daysLate,
        last_rotation: shown(latest.get(table)),
        last_mismatch: shown(mismatches.get(table)),
      };
    }),
    deltas_waiting: waiting.rows[0]?.waiting ?? 0,
  };
}

async function latestRotations(
  ctx: Pick<HealthContext, "sql">,
  outcome: string,
): Promise<ReadonlyMap<string, RotationRow>> {
  const { rows } = await sql<RotationRow>`
    select distinct on (table_name) table_name, retrieved_for, outcome, duration_ms, leftover, created_at, consumed_at
    from stat_rotations where outcome like ${outcome} order by table_name, id desc`.execute(ctx.sql.tables());
  return new Map(rows.map((row) => [row.table_name, row]));
}

function shown(row: RotationRow | undefined) {
  if (!row) return null;
  const { retrieved_for, outcome, duration_ms, leftover, created_at: at, consumed_at } = row;
  const finished = consumed_at !== null && outcome !== "malformed";
  return { retrieved_for, outcome, duration_ms, leftover, at, finished };
}

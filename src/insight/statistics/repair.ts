import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { applyOperations, parseIsoDate, type StatsFamily } from "../../mechanisms/dated-counters/index.ts";

export interface RepairedFamily {
  readonly family: string;
  readonly earliest: number;
}

/**
 * A Redis that lost its data has no pointers, and the first count of a new day would put them past the days between: no
 * row would ever say that nothing is known of those. Each family goes on after the last day that SQL has; days that were
 * lost become rows of zeros. A pointer that is lower already stays.
 */
export async function repairPointers(
  ctx: Pick<KernelContext, "redis" | "sql">,
  families: readonly StatsFamily[],
): Promise<readonly RepairedFamily[]> {
  if (families.length === 0) return [];
  const parts = families.map(
    ({ name, table }) => sql`select ${name}::text as family, max(retrieved_for) as last from ${sql.table(table)}`,
  );
  const { rows } = await sql<{ family: string; last: string | null }>`${sql.join(parts, sql` union all `)}`.execute(
    ctx.sql.tables(),
  );
  const lastOf = new Map(rows.map(({ family, last }) => [family, last]));
  const repaired = await Promise.all(
    families.map(async (family): Promise<RepairedFamily[]> => {
      const last = lastOf.get(family.name);
      if (!last) return [];
      const earliest = parseIsoDate(last) + 1;
      const held = await ctx.redis.commands.get(ctx.redis.topology.key(family.earliest()));
      if (held !== null && Number(held) <= earliest) return [];
      await applyOperations(ctx, [{ op: "low", key: family.earliest(), value: earliest }]);
      return [{ family: family.name, earliest }];
    }),
  );
  return repaired.flat();
}

import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import type { StatsFamily } from "../../mechanisms/dated-counters/index.ts";
import { errors } from "./errors.ts";

/** An event without its column would only be noticed at night, when its day cannot be stored. */
export async function checkColumns(ctx: Pick<KernelContext, "sql">, families: readonly StatsFamily[]): Promise<void> {
  if (families.length === 0) return;
  const { rows } = await sql<{ table_name: string; column_name: string }>`
    select table_name, column_name from information_schema.columns
    where table_schema = current_schema() and table_name in (${sql.join(families.map(({ table }) => table))})`.execute(
    ctx.sql.tables(),
  );
  const present = new Set(rows.map((row) => `${row.table_name}.${row.column_name}`));
  const missing = families.flatMap(({ table, events, computed }) => {
    const columns = Object.entries(events).flatMap(([event, { by }]) =>
      by === undefined ? [event] : [event, `${event}_breakdown`],
    );
    return [...columns, ...computed].map((column) => `${table}.${column}`).filter((name) => !present.has(name));
  });
  if (missing.length > 0)
    throw errors.columns_missing({ message: `Tables of statistics lack ${missing.join(", ")}.`, detail: { missing } });
}

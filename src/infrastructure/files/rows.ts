import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { FileLocation } from "./purgatory.ts";
import type { FileTables } from "./tables.ts";

type RowContext = Pick<Context, "sql">;

/** What Postgres says when something still refers to the row: a foreign key violation, since version 18 a restriction. */
const STILL_REFERENCED = ["23503", "23001"];

/** True when a foreign key forbids the deletion. */
export function isStillReferenced(error: unknown): boolean {
  return error instanceof Error && STILL_REFERENCED.includes((error as Error & { code?: string }).code ?? "");
}

/**
 * Deletes the rows of these objects, and answers which are still referred to and so were kept. One statement, unless
 * some are in use: a statement that meets one does nothing at all, and only then are they tried singly.
 */
export async function deleteRows(ctx: RowContext, files: readonly FileLocation[]): Promise<ReadonlySet<FileLocation>> {
  const inUse = new Set<FileLocation>();
  if (files.length === 0) return inUse;
  try {
    await deleteRowsAtOnce(ctx, files);
  } catch (error) {
    if (!isStillReferenced(error)) throw error;
    if (files.length === 1) return new Set(files);
    const middle = Math.ceil(files.length / 2);
    for (const half of [files.slice(0, middle), files.slice(middle)])
      for (const file of await deleteRows(ctx, half)) inUse.add(file);
  }
  return inUse;
}

async function deleteRowsAtOnce(ctx: RowContext, files: readonly FileLocation[]): Promise<void> {
  await sql`
    delete from s3_files using unnest(
      ${files.map(({ bucket }) => bucket)}::text[], ${files.map(({ key }) => key)}::text[]
    ) as gone (bucket, key)
    where s3_files.bucket = gone.bucket and s3_files.key = gone.key`.execute(ctx.sql.tables());
}

class TriedOnly extends Error {}

/** Whether anything refers to the file, found out by deleting its row in a transaction that is then undone. */
export async function isInUse(ctx: RowContext, file: FileLocation): Promise<boolean> {
  try {
    await ctx.sql
      .tables<FileTables>()
      .transaction()
      .execute(async (tx) => {
        await tx.deleteFrom("s3_files").where("bucket", "=", file.bucket).where("key", "=", file.key).execute();
        throw new TriedOnly();
      });
  } catch (error) {
    if (isStillReferenced(error)) return true;
    if (!(error instanceof TriedOnly)) throw error;
  }
  return false;
}

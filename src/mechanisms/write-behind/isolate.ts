import type { Entry, Malformed } from "../purgatory-queue/index.ts";
import { reasonOf } from "../quarantine/index.ts";

/**
 * SQLSTATE classes of errors that lie in a row and not in the database: a value that cannot be stored (22), a broken
 * constraint (23), and two rows of one statement that touch the same target (21), which succeed one after the other.
 */
const ROW_ERROR_CLASSES = ["21", "22", "23"];

export function isRowError(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.length === 5 && ROW_ERROR_CLASSES.includes(code.slice(0, 2));
}

/**
 * Writes all rows at once. When a row among them is at fault, each half is written by itself, and so on until the
 * culprits are alone: they are returned, everything else is committed. Any other error ends the attempt.
 */
export async function writeOrIsolate<T>(
  entries: readonly Entry<T>[],
  write: (rows: readonly T[]) => Promise<void>,
): Promise<Malformed[]> {
  if (entries.length === 0) return [];
  try {
    await write(entries.map((entry) => entry.value));
    return [];
  } catch (error) {
    if (!isRowError(error)) throw error;
    const [only, ...others] = entries;
    if (others.length === 0) return [{ raw: only!.raw, reason: reasonOf(error) }];
    const middle = Math.ceil(entries.length / 2);
    const left = await writeOrIsolate(entries.slice(0, middle), write);
    return [...left, ...(await writeOrIsolate(entries.slice(middle), write))];
  }
}

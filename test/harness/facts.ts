const PATIENCE_MS = 30_000;

/** Waits until a fact holds, by looking again and again; fails with the last reason when it never does. */
export async function eventually<T>(fact: () => Promise<T> | T, what = "the expected fact"): Promise<NonNullable<T>> {
  const deadline = performance.now() + PATIENCE_MS;
  let reason: unknown;
  for (;;) {
    try {
      const value = await fact();
      if (value) return value;
      reason = undefined;
    } catch (error) {
      reason = error;
    }
    if (performance.now() > deadline) throw new Error(`${what} never came true`, { cause: reason });
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

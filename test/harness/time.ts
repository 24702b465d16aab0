import type { TestContext } from "./context.ts";

type Clocked = Pick<TestContext, "clock" | "server">;

const DEFAULT_LIMIT = 7200;

/**
 * Lets virtual time pass step by step until a fact holds; after each step all that it set off in Redis is awaited.
 * Answers how many virtual seconds it took.
 */
export async function passTimeUntil(
  house: Clocked,
  fact: () => Promise<boolean> | boolean,
  options: { step?: number; limit?: number; what?: string } = {},
): Promise<number> {
  const step = options.step ?? 1;
  const started = house.clock.monotonic();
  for (;;) {
    await house.server.settled();
    if (await fact()) return house.clock.monotonic() - started;
    if (house.clock.monotonic() - started > (options.limit ?? DEFAULT_LIMIT))
      throw new Error(`${options.what ?? "the expected fact"} did not come true in virtual time`);
    await house.clock.advance(step);
  }
}

export async function passTime(house: Clocked, seconds: number, step = 1): Promise<void> {
  const end = house.clock.monotonic() + seconds;
  await passTimeUntil(house, () => house.clock.monotonic() >= end, { step, limit: seconds + step });
}

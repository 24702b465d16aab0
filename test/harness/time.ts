import type { TestContext } from "./context.ts";

const DEFAULT_LIMIT = 7200;

/**
 * Lets virtual time pass step by step until a fact holds, and gives the real parts (Redis, SQL) a moment in between.
 * Answers how many virtual seconds it took.
 */
export async function passTimeUntil(
  house: TestContext,
  fact: () => Promise<boolean> | boolean,
  options: { step?: number; limit?: number; what?: string } = {},
): Promise<number> {
  const step = options.step ?? 1;
  const started = house.clock.monotonic();
  for (;;) {
    await settleRealParts(house);
    if (await fact()) return house.clock.monotonic() - started;
    if (house.clock.monotonic() - started > (options.limit ?? DEFAULT_LIMIT))
      throw new Error(`${options.what ?? "the expected fact"} did not come true in virtual time`);
    await house.clock.advance(step);
  }
}

export async function passTime(house: TestContext, seconds: number, step = 1): Promise<void> {
  const end = house.clock.monotonic() + seconds;
  await passTimeUntil(house, () => house.clock.monotonic() >= end, { step, limit: seconds + step });
}

/** A few round trips to the server, in which whatever was sent before them has been answered. */
async function settleRealParts(house: TestContext): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await house.redis.commands.ping();
    await new Promise(setImmediate);
  }
}

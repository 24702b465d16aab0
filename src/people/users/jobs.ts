import { z } from "zod";
import { recurring as recur } from "../../jobs/recurring.ts";
import { defineRunner } from "../../jobs/runner.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { calendarOf, isoDate, rotate } from "../../mechanisms/dated-counters/index.ts";
import { lockKeys } from "../../mechanisms/lock/index.ts";
import { preferenceChanges } from "./preferences.ts";
import type { UserTables } from "./tables.ts";

/** Keys are removed one by one because they belong to different families, which a Cluster keeps apart. */
export async function removeKeys(ctx: Pick<KernelContext, "redis">, keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => ctx.redis.commands.unlink(ctx.redis.topology.key(key))));
}

/**
 * Removes what a deleted user left in Redis. It commits with the deletion, so the keys also go when the process that
 * deleted the user dies before it could remove them itself; the second removal finds nothing.
 */
export const forgetUserKeys = defineRunner({
  name: "runners.users.forget_keys",
  category: 2,
  kwargs: z.object({ sub: z.string(), keys: z.array(z.string()) }),
  doc: "Removes the keys of a deleted user.",
  retry: [5, 30, 300, 1800, 7200],
  async run(ctx, { sub, keys }) {
    // Somebody who came back under the same sub owns these names now.
    const returned = await ctx.sql
      .tables<UserTables>()
      .selectFrom("users")
      .select("id")
      .where("sub", "=", sub)
      .executeTakeFirst();
    if (!returned) await removeKeys(ctx, keys);
  },
});

/** One table has a row for each change of preference, which the common rotation of daily statistics does not know. */
export const rotatePreferences = defineRunner({
  name: "runners.users.rotate_preferences",
  category: 2,
  kwargs: z.strictObject({}),
  doc: "Moves the finished days of how people changed when they want texts from Redis to SQL.",
  async run(ctx) {
    const lock = lockKeys.runnerLock({ runner: `stats.rotate:${preferenceChanges.name}` });
    const { stop, dates } = await ctx.locks.withLock(lock, { kind: "owner", wait: "fail" }, () =>
      rotate(ctx, preferenceChanges, { calendar: calendarOf(ctx), signal: ctx.signal }),
    );
    // After a long silence they may be hundreds.
    const [first, last] = [dates[0], dates.at(-1)].map((date) => (date === undefined ? undefined : isoDate(date)));
    ctx.log.info({ stop_reason: stop, days: dates.length, first, last }, "rotation of preferences ended");
  },
});

export const runners = [forgetUserKeys, rotatePreferences];

export const recurring = [
  recur(
    rotatePreferences,
    {},
    { hours: Array.from({ length: 22 }, (_, index) => index + 2), minutes: [0], seconds: [0] },
  ),
];

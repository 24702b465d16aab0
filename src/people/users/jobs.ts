import { z } from "zod";
import { defineRunner } from "../../jobs/runner.ts";
import type { KernelContext } from "../../kernel/context.ts";
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

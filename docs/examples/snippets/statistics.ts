import { sql } from "kysely";
import { domain } from "../../../src/domain.ts";
import { readChart, readPartial } from "../../../src/insight/statistics/service.ts";
import type { Context } from "../../../src/jobs/context.ts";
import { applyDeltas, dailyStats, stageDeltas, statsOf } from "../../../src/mechanisms/dated-counters/index.ts";

interface Order {
  readonly id: number;
  readonly currency: string;
  readonly startedAt: number;
}

export const checkouts = dailyStats({
  family: "shop:checkouts",
  keysFamily: "shop",
  title: "Checkouts",
  table: "shop_checkout_stats",
  events: { started: {}, paid: { by: "{currency}" }, failed: { by: "{provider}:{code}" } },
  held: 2, // paid and failed count on the day on which the checkout was started
});

export const shop = domain({ name: "shop", stats: [checkouts] });

export async function pay(ctx: Context, order: Order): Promise<void> {
  const stats = statsOf(ctx);
  stats.incr(checkouts, "paid", { at: order.startedAt, extra: order.currency });
  await stats.store();
}

export async function payWithRow(ctx: Context, order: Order): Promise<void> {
  const stats = statsOf(ctx).incr(checkouts, "paid", { at: order.startedAt, extra: order.currency });
  const staged = await ctx.sql
    .tables<never>()
    .transaction()
    .execute(async (tx) => {
      await sql`update orders set paid = true where id = ${order.id}`.execute(tx);
      return stageDeltas(tx, ctx, stats);
    });
  await applyDeltas(ctx, staged);
}

export async function look(ctx: Context): Promise<void> {
  const { labels, paid } = await readChart(ctx, checkouts, 30);
  const { today, yesterday } = await readPartial(ctx, checkouts);
  ctx.log.info({ labels, paid, today, yesterday }, "how the shop does");
}

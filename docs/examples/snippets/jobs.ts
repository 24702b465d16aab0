import { sql, type Transaction } from "kysely";
import { z } from "zod";
import type { Context, JobContext } from "../../../src/jobs/context.ts";
import { recurring } from "../../../src/jobs/recurring.ts";
import { defineRunner } from "../../../src/jobs/runner.ts";
import { newUid } from "../../../src/kernel/ids.ts";

declare function resize(uid: string, width: number, signal: AbortSignal): Promise<void>;
declare function resizeAll(uids: readonly string[]): Promise<void>;

export const resizeImage = defineRunner({
  name: "runners.images.resize",
  category: 1,
  kwargs: z.object({ uid: z.string(), width: z.number().int().min(1) }),
  doc: "Makes a smaller copy of an image.",
  retry: [5, 30, 300],
  timeout: 600,
  async run(ctx, { uid, width }) {
    await ctx.progress("resizing", { type: "bar", at: 0, of: 1 });
    await resize(uid, width, ctx.signal);
  },
});

export const thumbnails = defineRunner({
  name: "runners.images.thumbnails",
  category: 2,
  kwargs: z.object({ uid: z.string() }),
  doc: "Makes thumbnails, many at a time.",
  async runMany(_ctx, items) {
    await resizeAll(items.map(({ uid }) => uid));
    return undefined;
  },
});

export async function enqueueing(ctx: Context): Promise<void> {
  await ctx.jobs.enqueue(resizeImage, { uid: "crl_img_1", width: 320 });
  await ctx.jobs.enqueue(resizeImage, { uid: "crl_img_1", width: 640 }, { delay: 60 });
  await ctx.jobs.enqueueMany(
    thumbnails,
    ["crl_img_1", "crl_img_2"].map((uid) => ({ uid })),
  );
  await ctx.jobs.enqueue(resizeImage, { uid: "crl_img_2", width: 320 }, { jobUid: newUid("jp"), maxLength: 10_000 });
}

export async function withRows(ctx: Context, uid: string): Promise<void> {
  await ctx.sql
    .tables<never>()
    .transaction()
    .execute(async (tx: Transaction<never>) => {
      await sql`insert into images (uid) values (${uid})`.execute(tx);
      await ctx.jobs.enqueueIn(tx, resizeImage, { uid, width: 320 });
    });
}

export async function longRun(ctx: JobContext): Promise<void> {
  while (!ctx.shuttingDown() && !ctx.budget.exhausted()) {
    if (!(await ctx.sleep(1))) throw ctx.bounce();
  }
}

export const recurringJobs = [
  recurring(thumbnails, { uid: "all" }, { hours: [2], minutes: [0], seconds: [0] }),
  recurring(thumbnails, { uid: "new" }, { tz: "Europe/Berlin", days_of_week: ["mon"], minutes: [0, 30], seconds: [0] }),
];

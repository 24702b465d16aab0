import type { Context } from "../../jobs/context.ts";
import { type Fence, unlessFenced } from "../../mechanisms/lock/index.ts";
import type { Entry } from "../../mechanisms/purgatory-queue/index.ts";
import { book } from "../email_templates/service.ts";
import { nudgeByName } from "./enqueue.ts";
import type { Attempt } from "./entries.ts";
import { keys } from "./keys.ts";
import { listsPause, writeListsPause } from "./reputation.ts";
import { bringBack, setAside } from "./scripts.ts";

const A_CALL = 500;

const isOfList = ({ template }: Attempt) => book.templates.find(({ slug }) => slug === template)?.list != null;

/** Whether mails of lists are paused; while nobody can say, they are not: the provider decides on them anyway. */
export async function areListsPaused(ctx: Pick<Context, "redis" | "log">): Promise<boolean> {
  try {
    return (await listsPause(ctx))?.paused ?? false;
  } catch (error) {
    ctx.log.warn({ reason: String(error) }, "nobody can say whether mails of lists are paused");
    return false;
  }
}

/** Sets the mails of lists among these aside; the others may go. */
export async function withoutLists(
  ctx: Pick<Context, "redis">,
  fence: Fence,
  entries: readonly Entry<Attempt>[],
): Promise<{ readonly going: readonly Entry<Attempt>[]; readonly aside: readonly Entry<Attempt>[] }> {
  const aside = entries.filter(({ value }) => isOfList(value));
  if (aside.length === 0) return { going: entries, aside };
  const raws = aside.map(({ raw }) => raw);
  unlessFenced(
    await ctx.redis.run(setAside, [keys.sendPurgatory(), keys.paused(), fence.key], [fence.lockId, ...raws]),
  );
  return { going: entries.filter(({ value }) => !isOfList(value)), aside };
}

/** Brings everything back that is set aside, unless lists are paused. May be repeated by anybody at any time. */
export async function bringListsBack(ctx: Pick<Context, "redis" | "jobs">): Promise<void> {
  if ((await listsPause(ctx))?.paused) return;
  const waiting = () => ctx.redis.commands.llen(ctx.redis.topology.key(keys.paused()));
  if ((await waiting()) === 0) return;
  while ((await ctx.redis.run(bringBack, [keys.paused(), keys.toSend()], [A_CALL])) > 0);
  nudgeByName(ctx, "runners.emails.send");
}

/** An administrator lets mails of lists go on. Answers whether they were paused. */
export async function resumeLists(ctx: Pick<Context, "redis" | "clock" | "jobs">): Promise<boolean> {
  const before = await listsPause(ctx);
  if (!before?.paused) return false;
  await writeListsPause(ctx, { paused: false, at: ctx.clock.now(), reason: before.reason });
  await bringListsBack(ctx);
  return true;
}

/** An administrator pauses them by hand. */
export async function pauseLists(ctx: Pick<Context, "redis" | "clock">, reason: string): Promise<void> {
  await writeListsPause(ctx, { paused: true, at: ctx.clock.now(), reason });
}

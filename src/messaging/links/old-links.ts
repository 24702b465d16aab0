import type { Context } from "../../jobs/context.ts";
import { openTouches } from "./effects.ts";
import { keys } from "./keys.ts";

/** A link that is overdue to be stored by more than this is one whose storing never came. */
const OVERDUE = 3_600;
const GROUP = 100;

type OldLinksContext = Pick<Context, "redis">;

export interface OldLinks {
  /** Those that nobody will claim any more. */
  readonly leaked: readonly string[];
  /** How many more there are on this page: they are being stored, about to be, or their touch has not ended. */
  readonly held: number;
}

/** A page of the oldest links that were made before that time, from a place on; nothing after the last. */
export async function oldLinks(
  ctx: OldLinksContext,
  { before, now, skip }: { readonly before: number; readonly now: number; readonly skip: number },
): Promise<OldLinks | undefined> {
  const { commands, topology } = ctx.redis;
  const buffer = topology.key(keys.buffer());
  const codes = await commands.zrangebyscore(buffer, "-inf", `(${before}`, "LIMIT", skip, GROUP);
  if (codes.length === 0) return undefined;
  const [storing, due, touches] = await Promise.all([
    commands.zmscore(topology.key(keys.persistPurgatory()), ...codes),
    commands.zmscore(topology.key(keys.toPersist()), ...codes),
    Promise.all(codes.map((code) => commands.hget(topology.key(keys.link({ code })), "touch_uid"))),
  ]);
  const open = await openTouches(ctx, [...new Set(touches.flatMap((uid) => uid ?? []))]);
  const leaked = codes.filter((_, at) => {
    const isClaimed = storing[at] !== null || (due[at] != null && Number(due[at]) >= now - OVERDUE);
    return !isClaimed && !open.has(touches[at] ?? "");
  });
  return { leaked, held: codes.length - leaked.length };
}

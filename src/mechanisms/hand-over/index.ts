import type { KernelContext } from "../../kernel/context.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";

/**
 * Giving groups of items to another room, whose keys no script of ours may touch.
 *
 *   our script: group in our list ──accept──▶ taken by the room, which notes its uid ──▶ gone from our list ──forget──▶ note ends
 *
 * Our list is authoritative until a group is gone from it. A death in between offers the group once more; the room knows its
 * uid and takes it once. What was offered is never refused: whoever writes a group looks for room before. A note outlives
 * its group by an hour: a giver that read the group, stood still and lost its lock meanwhile offers it late.
 */
export interface HandOverPlan<Group extends { readonly uid: string }> {
  readonly list: KeyName<"list">;
  readonly codec: Codec<Group>;
  /** Has the room take the group, unless it did before. */
  accept(group: Group): Promise<unknown>;
  /** The group is gone from the list: the room calls `forgetSoon`. */
  forget(uid: string): Promise<void>;
}

const PAGE = 20;
/** Seconds that a room still knows a group that is gone from the giver's list. */
const KNOWN_STILL = 3600;

/** Lets the note of a group that was taken over end soon, by its key. */
export async function forgetSoon(
  { redis: { commands, topology } }: Pick<KernelContext, "redis">,
  note: KeyName<"string">,
): Promise<void> {
  await commands.expire(topology.key(note), KNOWN_STILL, "LT");
}

/** Hands over whatever is in the list, the oldest first: what a dead run left goes before anything new. */
export async function handOver<Group extends { readonly uid: string }>(
  ctx: Pick<KernelContext, "redis">,
  plan: HandOverPlan<Group>,
): Promise<void> {
  const { commands, topology } = ctx.redis;
  for (;;) {
    const raws = await commands.lrangeBuffer(topology.key(plan.list), 0, PAGE - 1);
    if (raws.length === 0) return;
    for (const raw of raws) await handOverGroup(ctx, plan, plan.codec.decode(raw), raw);
  }
}

/** The same for a group that was just written, and need not be read: `raw` is how the list has it. */
export async function handOverGroup<Group extends { readonly uid: string }>(
  { redis: { commands, topology } }: Pick<KernelContext, "redis">,
  { list, accept, forget }: Omit<HandOverPlan<Group>, "codec">,
  group: Group,
  raw: string | Buffer,
): Promise<void> {
  await accept(group);
  await commands.lrem(topology.key(list), 1, raw);
  await forget(group.uid);
}

import type { Context } from "../../jobs/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { smsEntry, smsEvent } from "./entries.ts";
import { keys } from "./keys.ts";

type InfoContext = Pick<Context, "redis" | "clock">;

/** What stands at one place of a list; nothing when it is empty or cannot be read. */
async function valueAt<T>(
  { redis }: InfoContext,
  list: KeyName<"list">,
  codec: { decode(raw: Buffer): T },
  at: number,
): Promise<T | undefined> {
  const raw = await redis.commands.lindexBuffer(redis.topology.key(list), at);
  try {
    return raw ? codec.decode(raw) : undefined;
  } catch {
    return undefined;
  }
}

export async function sendQueueInfo(ctx: InfoContext) {
  const { commands, topology } = ctx.redis;
  const [length, retrying, oldest] = await Promise.all([
    commands.llen(topology.key(keys.toSend())),
    commands.zcard(topology.key(keys.retrying())),
    valueAt(ctx, keys.toSend(), smsEntry, 0),
  ]);
  return { length, retrying, oldest_last_queued_at: oldest?.last_queued_at ?? null };
}

export async function pendingSetInfo(ctx: InfoContext) {
  const { commands, topology } = ctx.redis;
  const pending = topology.key(keys.pending());
  const [length, oldest, num_overdue] = await Promise.all([
    commands.zcard(pending),
    commands.zrange(pending, 0, "0", "WITHSCORES"),
    commands.zcount(pending, "-inf", ctx.clock.now()),
  ]);
  return { length, oldest_due_at: oldest[1] === undefined ? null : Number(oldest[1]), num_overdue };
}

export async function eventQueueInfo(ctx: InfoContext) {
  const { commands, topology } = ctx.redis;
  const [length, early, oldest, newest] = await Promise.all([
    commands.llen(topology.key(keys.event())),
    commands.zcard(topology.key(keys.early())),
    valueAt(ctx, keys.event(), smsEvent, 0),
    valueAt(ctx, keys.event(), smsEvent, -1),
  ]);
  const delay = (event: typeof oldest) =>
    event?.date_updated == null ? null : event.information_received_at - event.date_updated;
  return {
    length,
    early,
    oldest_information_received_at: oldest?.information_received_at ?? null,
    oldest_item_delay: delay(oldest),
    newest_information_received_at: newest?.information_received_at ?? null,
    newest_item_delay: delay(newest),
  };
}

export async function recoveryQueueInfo({ redis: { commands, topology } }: InfoContext) {
  const [length, purgatory_size] = await Promise.all([
    commands.llen(topology.key(keys.recovery())),
    commands.llen(topology.key(keys.recoveryPurgatory())),
  ]);
  return { length, purgatory_size };
}

import type { Context } from "../../jobs/context.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";
import { redactParameters } from "../email_templates/service.ts";
import { attemptEntry, newsEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { awaiting } from "./line.ts";

const SHOWN = 25;

async function firstOf<T>({ redis }: Context, key: KeyName<"list">, codec: Codec<T>): Promise<T | undefined> {
  const raw = await redis.commands.lindexBuffer(redis.topology.key(key), 0);
  try {
    return raw ? codec.decode(raw) : undefined;
  } catch {
    // It will be set aside when its turn comes; here it only has no age.
    return undefined;
  }
}

export async function sendQueueInfo(ctx: Context) {
  const { commands, topology } = ctx.redis;
  const [ordinary, urgent, late, urgentLate, paused, oldest, oldestUrgent] = await Promise.all([
    commands.llen(topology.key(keys.toSend())),
    commands.llen(topology.key(keys.urgent())),
    commands.zcard(topology.key(keys.retrying())),
    commands.zcard(topology.key(keys.urgentRetrying())),
    commands.llen(topology.key(keys.paused())),
    firstOf(ctx, keys.toSend(), attemptEntry),
    firstOf(ctx, keys.urgent(), attemptEntry),
  ]);
  const times = [oldest, oldestUrgent].flatMap((one) => (one ? [one.last_queued_at] : []));
  return {
    length: ordinary + urgent,
    urgent,
    retrying: late + urgentLate,
    paused,
    oldest_last_queued_at: times.length === 0 ? null : Math.min(...times),
  };
}

export async function eventQueueInfo(ctx: Context) {
  const { commands, topology } = ctx.redis;
  const [length, early, oldest] = await Promise.all([
    commands.llen(topology.key(keys.event())),
    commands.zcard(topology.key(keys.early())),
    firstOf(ctx, keys.event(), newsEntry),
  ]);
  return { length, early, oldest_last_queued_at: oldest?.received_at ?? null };
}

/** The mails that wait longest for their receipt, without what only their readers may see. */
export async function receiptPendingInfo(ctx: Context) {
  const { commands, topology } = ctx.redis;
  const name = topology.key(keys.pending());
  const [count, ids] = await Promise.all([commands.zcard(name), commands.zrange(name, 0, String(SHOWN - 1))]);
  const { results } = await awaiting.get(ctx, ids);
  const items = results.flatMap((one) => {
    if (!one) return [];
    const { uid, message_id, email, subject, template, template_parameters, send_accepted_at } = one.value;
    const { send_initially_queued_at } = one.value;
    return [
      {
        uid,
        message_id,
        email,
        subject,
        template,
        template_parameters: redactParameters(template, template_parameters),
        send_initially_queued_at,
        send_accepted_at,
      },
    ];
  });
  return { count, oldest_send_accepted_at: items[0]?.send_accepted_at ?? null, items };
}

import { createHash } from "node:crypto";
import type { Context } from "../../jobs/index.ts";
import type { CatalogueEntry } from "../../kernel/keyspace/index.ts";
import { keys, type WatchedQueue } from "./keys.ts";
import { settings } from "./settings.ts";

/** A queue is told of at most once in so many seconds. */
const TELL_EVERY = 3600;

type WatchContext = Pick<Context, "redis" | "clock" | "config" | "alerts" | "catalogue">;

/**
 * Warns when entries of a queue wait for too long, or when a queue stays too long.
 *
 * Queues are what the gauge of lengths counts, as far as somebody should take entries from it: lists, unless they are
 * declared to linger, and sorted sets that are declared to be due. The entries of a list say in as many ways as there are
 * rooms when they came, so a list is judged by its head: one that is still the same was not taken. In a sorted set only
 * what is due waits. Redis remembers what the last look saw, because the next one may be another worker's. The queues of
 * jobs have a stricter check of their own.
 */
export async function warnOfQueues(ctx: WatchContext): Promise<void> {
  const now = ctx.clock.now();
  const patience = ctx.config.get(settings.queueAge);
  const limit = ctx.config.get(settings.queueLength);
  const before = await remembered(ctx);
  const after: Record<string, WatchedQueue> = {};
  const queues = watchedIn(ctx.catalogue.entries);
  const looks = await Promise.all(queues.map((queue) => lookAt(ctx, queue, now)));
  for (const [index, { pattern }] of queues.entries()) {
    const { length, head, dueAt } = looks[index]!;
    const known = before[pattern];
    const since = dueAt ?? (known?.head === head ? known.since : now);
    const longSince = length > limit ? (known?.long_since ?? now) : null;
    const told = known?.told_at ?? null;
    let toldAt = told !== null && now - told < TELL_EVERY ? told : null;
    if (toldAt === null && length > 0 && now - since >= patience) {
      ctx.alerts.warning(
        "queue:old",
        `nobody has taken the first entry of ${pattern} for ${Math.round(now - since)} s, and ${length} wait: see the last run of its job`,
      );
      toldAt = now;
    } else if (toldAt === null && longSince !== null && now - longSince >= patience) {
      ctx.alerts.warning(
        "queue:long",
        `${pattern} has held more than ${limit} entries for ${Math.round(now - longSince)} s, now ${length}: it fills faster than it is emptied`,
      );
      toldAt = now;
    }
    if (length > 0 || toldAt !== null) after[pattern] = { head, since, long_since: longSince, told_at: toldAt };
  }
  await remember(ctx, before, after);
}

/** The queues among these declarations. */
export function watchedIn(entries: readonly CatalogueEntry[]): readonly CatalogueEntry[] {
  return entries.filter(
    ({ type, compiled, cache, due, lingers, domain }) =>
      compiled.parameters.length === 0 &&
      !cache &&
      domain !== "jobs" &&
      ((type === "list" && !lingers) || (type === "zset" && due)),
  );
}

interface Look {
  /** Entries that could be taken now. */
  readonly length: number;
  /** What tells the entry that comes next from others; only lists need it. */
  readonly head: string | null;
  /** Since when the first entry of a sorted set could be taken. */
  readonly dueAt: number | undefined;
}

async function lookAt({ redis }: WatchContext, { pattern, type }: CatalogueEntry, now: number): Promise<Look> {
  const name = redis.topology.key(pattern);
  if (type === "list") {
    const [length, first] = await Promise.all([redis.commands.llen(name), redis.commands.lindexBuffer(name, 0)]);
    // A digest: entries may be secret, and what is remembered of them is not.
    const head = first && createHash("sha256").update(first).digest("base64url").slice(0, 22);
    return { length, head, dueAt: undefined };
  }
  const [length, [, score]] = await Promise.all([
    redis.commands.zcount(name, "-inf", now),
    redis.commands.zrange(name, "0", "0", "WITHSCORES"),
  ]);
  return { length, head: null, dueAt: score === undefined ? now : Math.min(now, Number(score)) };
}

/** What the last look saw, by queue; nothing if that cannot be read, and then watching begins anew. */
async function remembered({ redis }: WatchContext): Promise<Readonly<Record<string, WatchedQueue>>> {
  const held = await redis.commands.hgetallBuffer(redis.topology.key(keys.queues()));
  try {
    return keys.queues.codec.decode(held);
  } catch {
    return {};
  }
}

async function remember(
  { redis }: WatchContext,
  before: Readonly<Record<string, WatchedQueue>>,
  after: Readonly<Record<string, WatchedQueue>>,
): Promise<void> {
  const name = redis.topology.key(keys.queues());
  const gone = Object.keys(before).filter((queue) => !(queue in after));
  if (gone.length > 0) await redis.commands.hdel(name, ...gone);
  if (Object.keys(after).length > 0) await redis.commands.hset(name, ...keys.queues.codec.encode(after));
}

import type { Context } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import type { ScriptArgument } from "../../kernel/redis/index.ts";
import { calendarOf, type DailyStats, Tally } from "../../mechanisms/dated-counters/index.ts";
import type { Fence } from "../../mechanisms/lock/index.ts";
import { type Note, noteSteps } from "../../mechanisms/message-log/index.ts";
import { keys } from "./keys.ts";
import { settle } from "./scripts.ts";

/** What an entry of a purgatory becomes. */
export interface Settled<Event extends string> {
  readonly raw: Buffer;
  /** The job that is queued, or the ticket that begins to rest. */
  readonly becomes: { readonly job: string } | { readonly ticket: string | Buffer; readonly score: number };
  readonly event: Event;
  /** When the notification was queued: the day that the event counts on. */
  readonly queuedAt: number;
  /** What the notification's story says of it. */
  readonly note: Omit<Note, "channel">;
}

/** Where the entries to settle are. */
export interface Place {
  readonly purgatory: KeyName<"list">;
  readonly fence: Fence;
  /** If they are exactly those at its head, as far as whoever holds the lock knows: the last of them. */
  readonly lastOfHead: Buffer | undefined;
}

/**
 * Settles entries in one step and tells of it; those that are gone from the purgatory already are passed over. A head that
 * is another by now, because the lock was lost and others went on, is no hindrance: each entry is looked for then.
 */
export async function settleAll<Event extends string>(
  ctx: Pick<Context, "redis" | "clock" | "config" | "alerts" | "log" | "metrics">,
  place: Place,
  stats: DailyStats<Readonly<Record<Event, object>>>,
  items: readonly Settled<Event>[],
): Promise<void> {
  if (items.length === 0) return;
  const { purgatory, fence, lastOfHead } = place;
  const tally = new Tally(ctx);
  const family = stats as unknown as DailyStats<Readonly<Record<string, Record<never, never>>>>;
  const args: ScriptArgument[] = [];
  const groups = [...groupsOf(ctx, stats, items)];
  for (const group of groups) {
    const { event, queuedAt: at } = group[0]!;
    args.push(group.length, ...tally.block((counting) => counting.incr(family, event, { at })));
    for (const { raw, becomes } of group) {
      const entry = lastOfHead ? "" : raw;
      if ("job" in becomes) args.push(entry, becomes.job, "");
      else args.push(entry, becomes.ticket, String(becomes.score));
    }
  }
  const settled = await ctx.redis.run(
    settle,
    [purgatory, keys.cold(), jobKeys.hot(), fence.key, ...tally.keys],
    [fence.lockId, lastOfHead ? items.length : 0, lastOfHead ?? "", ...args],
  );
  if (settled === "another head") return settleAll(ctx, { ...place, lastOfHead: undefined }, stats, items);
  const notes = groups.flat().flatMap(({ note }, at) => (settled[at] ? [{ channel: "push" as const, ...note }] : []));
  noteSteps(ctx, notes);
}

/** Items that count the same event on the same day: they share one block, and the script counts them at once. */
function groupsOf<Event extends string>(
  ctx: Pick<Context, "clock" | "config">,
  stats: Pick<DailyStats, "held" | "grace">,
  items: readonly Settled<Event>[],
): Iterable<readonly Settled<Event>[]> {
  const calendar = calendarOf(ctx);
  const groups = new Map<string, Settled<Event>[]>();
  let [event, date, group]: [Event | undefined, number, Settled<Event>[]] = [undefined, 0, []];
  for (const item of items) {
    const itsDate = calendar.dateFor(ctx.clock, item.queuedAt, stats).date;
    // Nearly always like the one before it.
    if (item.event !== event || itsDate !== date) {
      [event, date] = [item.event, itsDate];
      const counted = `${event} ${date}`;
      group = groups.get(counted) ?? [];
      groups.set(counted, group);
    }
    group.push(item);
  }
  return groups.values();
}

/** `DeviceNotRegistered` counts as `failed_due_to_device_not_registered`. */
export function failureEvent<Event extends string>(
  stats: { readonly events: Readonly<Record<Event, object>> },
  identifier: string,
): Event {
  // The provider's own word differs from the one that is counted.
  const word = identifier === "MismatchSenderId" ? "MismatchedSenderId" : identifier;
  const event = `failed_due_to_${word.replaceAll(/([a-z])([A-Z0-9])/g, "$1_$2").toLowerCase()}`;
  return (event in stats.events ? event : "failed_due_to_internal_error") as Event;
}

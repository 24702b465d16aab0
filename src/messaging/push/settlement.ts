import type { Context } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { type DailyStats, Tally } from "../../mechanisms/dated-counters/index.ts";
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
}

/** Settles entries in one step; those that are gone from the purgatory already are passed over. */
export async function settleAll<Event extends string>(
  ctx: Pick<Context, "redis" | "clock" | "config" | "log" | "metrics">,
  purgatory: KeyName<"list">,
  stats: DailyStats<Readonly<Record<Event, object>>>,
  items: readonly Settled<Event>[],
): Promise<void> {
  if (items.length === 0) return;
  const tally = new Tally(ctx);
  const family = stats as unknown as DailyStats<Readonly<Record<string, Record<never, never>>>>;
  const args = items.flatMap(({ raw, becomes, event, queuedAt }) => {
    const [payload, score] = "job" in becomes ? [becomes.job, ""] : [becomes.ticket, String(becomes.score)];
    return [raw, payload, score, ...tally.block((counting) => counting.incr(family, event, { at: queuedAt }))];
  });
  await ctx.redis.run(settle, [purgatory, keys.cold(), jobKeys.hot(), ...tally.keys], args);
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

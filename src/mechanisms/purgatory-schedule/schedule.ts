import type { KernelContext } from "../../kernel/context.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";
import type { Fence, Fenced } from "../lock/index.ts";
import { type Claim, decodeEntries, type Entry, MAX_ITEMS_PER_CALL, type Malformed } from "../purgatory-queue/index.ts";
import { alertQuarantined, quarantineEntry, quarantineOf } from "../quarantine/index.ts";
import { ack, type PromoteStop, promote, quarantine, reschedule, schedule, shift, shiftMore } from "./scripts.ts";

type ScheduleContext = Pick<KernelContext, "redis" | "clock" | "alerts" | "log">;

/** `set` always writes the due time, `NX` keeps an existing one, `LT` only moves it earlier. */
export type ScheduleMode = "set" | "NX" | "LT";

export interface Due<T> {
  readonly value: T;
  readonly dueAt: number;
}

export interface DueEntry<T> extends Entry<T> {
  readonly dueAt: number;
}

/** A member as it lies in Redis. */
export type RawMember = string | Buffer;

/**
 * A schedule whose consumer may die: members scored by when they are due.
 *
 *   producer ──schedule──▶ schedule ──shift (due)──▶ purgatory ──ack──▶ done
 *                             ▲                          │ └──a member that cannot be read──▶ quarantine
 *                             └────────reschedule────────┘
 *
 * The same promises as a purgatory queue: a member is in exactly one place, every arrow is one script, one consumer
 * works at a time under a lock, and what a dead one left goes first. Members are compared byte for byte, so their codec
 * must be plain text or canonical JSON.
 */
export class PurgatorySchedule<T> {
  readonly schedule: KeyName<"zset">;
  readonly purgatory: KeyName<"zset">;
  readonly #codec: Codec<T>;

  constructor(plan: { schedule: KeyName<"zset">; purgatory: KeyName<"zset">; codec: Codec<T> }) {
    this.schedule = plan.schedule;
    this.purgatory = plan.purgatory;
    this.#codec = plan.codec;
  }

  /** Sets when values are due; at most 500 a call. */
  async add(
    ctx: ScheduleContext,
    items: readonly Due<T>[],
    mode: ScheduleMode = "set",
  ): Promise<{ added: number; changed: number }> {
    withinCall(items.length);
    if (items.length === 0) return { added: 0, changed: 0 };
    const pairs = items.flatMap(({ value, dueAt }) => [timeText(dueAt), this.#codec.encode(value)]);
    return ctx.redis.run(schedule, [this.schedule], [mode.toUpperCase(), ...pairs]);
  }

  /** The first shift of a run: leftovers of a dead run, or up to `max` members that are due at `dueBy` (default now). */
  shift(
    ctx: ScheduleContext,
    fence: Fence,
    max = MAX_ITEMS_PER_CALL,
    dueBy = ctx.clock.now(),
  ): Promise<Claim | Fenced> {
    withinCall(max);
    return ctx.redis.run(shift, [this.schedule, this.purgatory, fence.key], [fence.lockId, max, timeText(dueBy)]);
  }

  /** A later shift of the same run: at most `max` due members more, until the purgatory holds `limit`. */
  shiftMore(
    ctx: ScheduleContext,
    fence: Fence,
    max = MAX_ITEMS_PER_CALL,
    limit = max,
    dueBy = ctx.clock.now(),
  ): Promise<(Claim & { readonly moved: number }) | Fenced> {
    withinCall(max);
    return ctx.redis.run(
      shiftMore,
      [this.schedule, this.purgatory, fence.key],
      [fence.lockId, max, timeText(dueBy), limit],
    );
  }

  /** Entries of the purgatory, the earliest first. What cannot be read is quarantined on the way. */
  async read(ctx: ScheduleContext, from = 0, count = MAX_ITEMS_PER_CALL): Promise<DueEntry<T>[]> {
    const flat = await ctx.redis.commands.zrangeBuffer(
      ctx.redis.topology.key(this.purgatory),
      from,
      String(from + count - 1),
      "WITHSCORES",
    );
    const dueAt = new Map<Buffer, number>();
    for (let at = 0; at < flat.length; at += 2) dueAt.set(flat[at]!, Number(flat[at + 1]!.toString("latin1")));
    const { entries, malformed } = decodeEntries(this.#codec, [...dueAt.keys()]);
    if (malformed.length > 0) await this.quarantine(ctx, malformed);
    return entries.map((entry) => ({ ...entry, dueAt: dueAt.get(entry.raw)! }));
  }

  /** These members are done; answers how many were still there. */
  async ack(ctx: ScheduleContext, members: readonly RawMember[]): Promise<number> {
    withinCall(members.length);
    return members.length === 0 ? 0 : ctx.redis.run(ack, [this.purgatory], [...members]);
  }

  /** These members go back into the schedule, each with a new due time. */
  async reschedule(
    ctx: ScheduleContext,
    fence: Fence,
    members: readonly { readonly raw: RawMember; readonly dueAt: number }[],
  ): Promise<{ readonly ok: true; readonly moved: number } | Fenced> {
    withinCall(members.length);
    const pairs = members.flatMap(({ raw, dueAt }) => [timeText(dueAt), raw]);
    return ctx.redis.run(reschedule, [this.schedule, this.purgatory, fence.key], [fence.lockId, ...pairs]);
  }

  /** Sets members of the purgatory aside; answers per member whether it was still there. */
  async quarantine(ctx: ScheduleContext, items: readonly Malformed[]): Promise<boolean[]> {
    withinCall(items.length);
    if (items.length === 0) return [];
    const pairs = items.flatMap(({ raw, reason }) => [raw, quarantineEntry(ctx, this.schedule, raw, reason)]);
    const moved = await ctx.redis.run(quarantine, [this.purgatory, quarantineOf(this.schedule)], pairs);
    await alertQuarantined(ctx, this.schedule, moved.filter(Boolean).length, items[0]!.reason);
    return moved;
  }
}

export function purgatorySchedule<T>(plan: {
  schedule: KeyName<"zset">;
  purgatory: KeyName<"zset">;
  codec: Codec<T>;
}): PurgatorySchedule<T> {
  return new PurgatorySchedule(plan);
}

/** Moves what is due from a sorted set to the end of a list, such as retries whose delay is over. */
export function promoteDue(
  ctx: Pick<KernelContext, "redis" | "clock">,
  from: KeyName<"zset">,
  to: KeyName<"list">,
  options: { dueBy?: number; max?: number; maxLength?: number } = {},
): Promise<{ moved: number; stop: PromoteStop }> {
  const max = options.max ?? MAX_ITEMS_PER_CALL;
  withinCall(max);
  return ctx.redis.run(promote, [from, to], [timeText(options.dueBy ?? ctx.clock.now()), max, options.maxLength ?? -1]);
}

function withinCall(items: number): void {
  if (items > MAX_ITEMS_PER_CALL)
    throw new RangeError(`${items} items in one call: at most ${MAX_ITEMS_PER_CALL}, the rest in further calls`);
}

/** A time as scripts take it: decimal text with at most 6 decimals. */
function timeText(seconds: number): string {
  return Number.isInteger(seconds) ? String(seconds) : seconds.toFixed(6);
}

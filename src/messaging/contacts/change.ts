import { type RawBuilder, sql, type Transaction } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import {
  applyDeltas,
  type StagedDelta,
  type Stats,
  stageDeltas,
  statsOf,
} from "../../mechanisms/dated-counters/index.ts";
import { type AddedReason, effects, type ReachChange, type RemovedReason, type TokenEvent } from "./effects.ts";
import { type Leaving, whoLeft } from "./leaving.ts";
import { type ContactEvent, type ContactWords, contactMethodStats } from "./stats.ts";
import type { Channel, ContactTables, LogAction } from "./tables.ts";

/**
 * One change of contact methods: rows, log, reminders and counters, all or nothing.
 *
 * SQL is authoritative. A change is open while its transaction runs and collects what it means; `settle` then writes the
 * log, lets the reminders follow and stages the counters in the same transaction, and the commit makes all of it true at
 * once. A death before the commit leaves nothing. A death after it leaves staged counters, which the sweep of
 * `stat_deltas` applies once. Two changes that meet at a row or a unique address wait for each other; the one that
 * loses is begun again, once.
 */
export type ContactTransaction = Transaction<ContactTables>;
export type ContactContext = Pick<Context, "sql" | "redis" | "clock" | "config" | "log" | "metrics">;

/** Who caused a log row, and why, as support reads it. */
export interface LogReason {
  readonly source: string;
  readonly reason?: string;
  readonly context?: Readonly<Record<string, unknown>>;
}

export interface LogEntry {
  readonly userId: number;
  readonly channel: Channel;
  readonly identifier: string;
  readonly action: LogAction;
  readonly reason: LogReason;
}

const ADDED: Readonly<Record<Channel, AddedReason>> = {
  email: "email_added",
  phone: "phone_verify_finish",
  push: "push_token_added",
};

/** Unique violation, serialization failure, deadlock: the other one was faster, and a second look shows what it did. */
const RACES = new Set(["23505", "40001", "40P01"]);

export class ContactChange {
  readonly #ctx: ContactContext;
  readonly #stats: Stats;
  readonly #log: LogEntry[] = [];
  readonly #reach = new Map<string, ReachChange>();
  readonly #left: Leaving[] = [];

  constructor(ctx: ContactContext) {
    this.#ctx = ctx;
    this.#stats = statsOf(ctx);
  }

  count<Event extends ContactEvent>(event: Event, word: ContactWords[Event], by = 1): void {
    this.#stats.incr(contactMethodStats, event as ContactEvent, { extra: word, by });
  }

  countTokens(event: TokenEvent, by = 1): void {
    if (by > 0) effects().tokenCounts.count(this.#stats, event, by);
  }

  note(entry: LogEntry): void {
    this.#log.push(entry);
  }

  /** A person wants no more messages at an address. */
  left(leaving: Leaving): void {
    this.#left.push(leaving);
  }

  /** Whom to tell of after the commit; asked inside the transaction, where the owners are still the same. */
  departures(tx: ContactTransaction) {
    return effects().unsubscriptions && this.#left.length > 0 ? whoLeft(tx, this.#left, this.#ctx.clock.now()) : [];
  }

  /** Whether these users are reachable on the channel may be different now. A later call refines the reasons. */
  reach(
    channel: Channel,
    userIds: Iterable<number>,
    reasons: { readonly ifAdded?: AddedReason; readonly ifRemoved?: RemovedReason } = {},
  ): void {
    for (const userId of userIds) {
      const known = this.#reach.get(`${userId} ${channel}`);
      this.#reach.set(`${userId} ${channel}`, {
        userId,
        channel,
        ifAdded: reasons.ifAdded ?? known?.ifAdded ?? ADDED[channel],
        ifRemoved: reasons.ifRemoved ?? known?.ifRemoved ?? "unreachable",
      });
    }
  }

  /** The last step inside the transaction. */
  async settle(tx: ContactTransaction): Promise<readonly StagedDelta[]> {
    await this.#writeLog(tx);
    if (this.#reach.size > 0)
      await effects().reminders.reachChanged(tx, [...this.#reach.values()], { ctx: this.#ctx, stats: this.#stats });
    return stageDeltas(tx as unknown as Transaction<never>, this.#ctx, this.#stats);
  }

  async #writeLog(tx: ContactTransaction): Promise<void> {
    if (this.#log.length === 0) return;
    const column = <T>(of: (entry: LogEntry) => T) => this.#log.map(of);
    await sql`
      insert into contact_method_log (uid, user_id, channel, identifier, action, reason, created_at)
      select entry.*, to_timestamp(${this.#ctx.clock.now()}::float8) from unnest(
        ${column(() => newUid("cml"))}::text[], ${column(({ userId }) => userId)}::bigint[],
        ${column(({ channel }) => channel)}::text[], ${column(({ identifier }) => identifier)}::text[],
        ${column(({ action }) => action)}::text[], ${column(({ reason }) => JSON.stringify(reason))}::jsonb[]
      ) as entry`.execute(tx);
  }
}

/** Does one change in a transaction of its own, and counts it after the commit. */
export async function changeContacts<T>(
  ctx: ContactContext,
  work: (tx: ContactTransaction, change: ContactChange) => Promise<T>,
): Promise<T> {
  const attempt = () =>
    ctx.sql
      .tables<ContactTables>()
      .transaction()
      .execute(async (tx) => {
        const change = new ContactChange(ctx);
        const result = await work(tx, change);
        return { result, staged: await change.settle(tx), departures: await change.departures(tx) };
      });
  const { result, staged, departures } = await attempt().catch((error: unknown) => {
    if (!isRace(error)) throw error;
    return attempt();
  });
  await applyDeltas(ctx, staged).catch((error: unknown) =>
    ctx.log.warn({ reason: String(error) }, "counts of contact methods are left to the sweep"),
  );
  if (departures.length > 0) await effects().unsubscriptions?.told(ctx, departures);
  return result;
}

function isRace(error: unknown): boolean {
  return error instanceof Error && RACES.has((error as Error & { code?: string }).code ?? "");
}

/** The users there are among these, locked so that no other change adds to them meanwhile; in order of id. */
export async function lockUsers(
  tx: ContactTransaction,
  subs: readonly string[],
  ids: RawBuilder<unknown> = sql`select null::bigint`,
): Promise<readonly { readonly id: number; readonly sub: string }[]> {
  const { rows } = await sql<{ id: number; sub: string }>`
    select id, sub from users where sub = any(${[...subs]}::text[]) or id in (${ids})
    order by id for no key update`.execute(tx);
  return rows;
}

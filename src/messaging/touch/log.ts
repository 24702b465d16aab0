import { type Kysely, sql } from "kysely";
import type { JobContext } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { type Lock, unlessFenced } from "../../mechanisms/lock/index.ts";
import {
  type Entry,
  type Malformed,
  purgatoryQueue,
  runBatches,
  type StopReason,
} from "../../mechanisms/purgatory-queue/index.ts";
import { startRun } from "../../mechanisms/run-report/index.ts";
import { writeOrIsolate } from "../../mechanisms/write-behind/index.ts";
import { confirmPushTokens } from "../contacts/service.ts";
import { recordTouches } from "../links/service.ts";
import { type LogEntry, logEntry } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import type { TouchTables } from "./tables.ts";

export const logQueue = purgatoryQueue({ queue: keys.toLog(), purgatory: keys.logPurgatory(), codec: logEntry });

const ZERO = {
  inserts: 0,
  updates: 0,
  full_batch_inserts: 0,
  full_batch_updates: 0,
  partial_batch_inserts: 0,
  partial_batch_updates: 0,
  accepted_inserts: 0,
  accepted_updates: 0,
  failed_inserts: 0,
  failed_updates: 0,
};
type Counts = { -readonly [Name in keyof typeof ZERO]: number };
type Kind = "insert" | "update";
type Of<Table extends LogEntry["table"], Action extends Kind> = Extract<LogEntry, { table: Table; action: Action }>;

/**
 * Writes the rows about touches, in bulk. Every statement takes any number of rows and says which it took; a row that is
 * there already, or whose person is gone, is counted and not an error. A death leaves the batch in the purgatory, and
 * writing it again changes nothing.
 */
export async function writeLog(ctx: JobContext, lock: Lock): Promise<StopReason> {
  const report = await startRun<keyof Counts>(ctx, keys.logReport);
  const run = new LogRun(ctx);
  const size = ctx.config.get(settings.logBatch);
  const { stopReason } = await runBatches(ctx, {
    runner: ctx.job.name,
    shuttingDown: () => ctx.shuttingDown(),
    exhausted: () => ctx.budget.exhausted(),
    claim: (first) => logQueue.claimBatch(ctx, lock.fence, first, size),
    async handle({ size: held }) {
      const entries = await logQueue.read(ctx, 0, held);
      const refused = await run.write(entries, held - entries.length);
      if (refused.length > 0) await logQueue.quarantine(ctx, refused);
      unlessFenced(await logQueue.ackAll(ctx, lock.fence));
      return undefined;
    },
  });
  await report.finish({ stopReason, counts: run.counts });
  return stopReason;
}

class LogRun {
  readonly counts: Counts = { ...ZERO };
  readonly #ctx: JobContext;
  #refused: Malformed[] = [];

  constructor(ctx: JobContext) {
    this.#ctx = ctx;
  }

  /** Writes them, and answers those that SQL does not take whatever is tried. Unreadable ones only count. */
  async write(entries: readonly Entry<LogEntry>[], unreadable: number): Promise<readonly Malformed[]> {
    this.counts.inserts += unreadable;
    this.counts.failed_inserts += unreadable;
    this.#refused = [];
    const of = <T extends LogEntry["table"], A extends Kind>(table: T, action: A) =>
      entries.filter(({ value }) => value.table === table && value.action === action) as unknown as Entry<Of<T, A>>[];
    await this.#each("update", of("user_touch_point_states", "update"), (rows) => this.#updateStates(rows));
    await this.#each("insert", of("user_touch_point_states", "insert"), (rows) => this.#insertStates(rows));
    await this.#each("insert", of("user_touches", "insert"), (rows) => this.#insertTouches(rows));
    await this.#each("insert", of("user_touch_debug_log", "insert"), (rows) => this.#insertTrail(rows));
    await this.#each("update", of("user_push_tokens", "update"), (rows) => this.#confirmTokens(rows));
    return this.#refused;
  }

  /** Statement by statement; what takes fewer rows than it was given counts the rest as failed. */
  async #each<T>(kind: Kind, rows: readonly Entry<T>[], write: (rows: readonly T[]) => Promise<number>): Promise<void> {
    const most = this.#ctx.config.get(settings.logRows);
    for (let start = 0; start < rows.length; start += most) {
      const part = rows.slice(start, start + most);
      let accepted = 0;
      const refused = await writeOrIsolate(part, async (values) => {
        accepted += await write(values);
      });
      this.#refused.push(...refused);
      const name = `${kind}s` as const;
      this.counts[name] += part.length;
      this.counts[`${part.length === most ? "full" : "partial"}_batch_${name}`] += 1;
      this.counts[`accepted_${name}`] += accepted;
      this.counts[`failed_${name}`] += part.length - accepted;
    }
  }

  get #db(): Kysely<TouchTables> {
    return this.#ctx.sql.tables<TouchTables>();
  }

  /** Of several changes from one version the first counts. One that was made before, by a run that died, counts too. */
  async #updateStates(rows: readonly Of<"user_touch_point_states", "update">[]): Promise<number> {
    const first = firstOf(rows, ({ fields, expected_version }) => `${nameOf(fields)}\n${expected_version}`);
    const { rows: accepted } = await sql`
      with asked as (
        select users.id as user_id, point.id as point_id, wish.channel, wish.state, wish.version
        from unnest(
          ${first.map(({ fields }) => fields.user_sub)}::text[],
          ${first.map(({ fields }) => fields.touch_point_uid)}::text[],
          ${first.map(({ fields }) => fields.channel)}::text[],
          ${first.map(({ fields }) => canonicalJson(fields.state))}::jsonb[],
          ${first.map(({ expected_version }) => expected_version)}::integer[]
        ) as wish (sub, point, channel, state, version)
        join users on users.sub = wish.sub join touch_points as point on point.uid = wish.point
      ), changed as (
        update user_touch_point_states as held set state = asked.state, version = held.version + 1,
          updated_at = to_timestamp(${this.#ctx.clock.now()}::float8)
        from asked where held.user_id = asked.user_id and held.touch_point_id = asked.point_id
          and held.channel = asked.channel and held.version = asked.version
        returning held.id
      )
      select id from changed union all
      select held.id from user_touch_point_states as held join asked on held.user_id = asked.user_id
        and held.touch_point_id = asked.point_id and held.channel = asked.channel
        and held.version = asked.version + 1 and held.state = asked.state`.execute(this.#db);
    return accepted.length;
  }

  async #insertStates(rows: readonly Of<"user_touch_point_states", "insert">[]): Promise<number> {
    const first = firstOf(rows, ({ fields }) => nameOf(fields));
    const now = sql`to_timestamp(${this.#ctx.clock.now()}::float8)`;
    const { rows: accepted } = await sql`
      insert into user_touch_point_states (uid, user_id, touch_point_id, channel, state, version, created_at, updated_at)
      select wish.uid, users.id, point.id, wish.channel, wish.state, 1, ${now}, ${now}
      from unnest(
        ${first.map(() => newUid("utps"))}::text[], ${first.map(({ fields }) => fields.user_sub)}::text[],
        ${first.map(({ fields }) => fields.touch_point_uid)}::text[],
        ${first.map(({ fields }) => fields.channel)}::text[],
        ${first.map(({ fields }) => canonicalJson(fields.state))}::jsonb[]
      ) as wish (uid, sub, point, channel, state)
      join users on users.sub = wish.sub join touch_points as point on point.uid = wish.point
      on conflict do nothing returning id`.execute(this.#db);
    return accepted.length;
  }

  async #insertTouches(rows: readonly Of<"user_touches", "insert">[]): Promise<number> {
    const points = await this.#pointIds(rows.flatMap(({ fields }) => fields.touch_point_uid ?? []));
    const stored = await recordTouches(
      this.#db as never,
      rows.map(({ fields: { touch_point_uid, ...row } }) => ({
        ...row,
        touch_point_id: points.get(touch_point_uid ?? "") ?? null,
      })),
    );
    return stored.size;
  }

  async #pointIds(uids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { rows } = await sql<{ uid: string; id: number }>`
      select uid, id from touch_points where uid = any(${[...new Set(uids)]}::text[])`.execute(this.#db);
    return new Map(rows.map(({ uid, id }) => [uid, id]));
  }

  async #insertTrail(rows: readonly Of<"user_touch_debug_log", "insert">[]): Promise<number> {
    const { rows: accepted } = await sql`
      insert into user_touch_debug_log (uid, user_id, event, created_at)
      select wish.uid, users.id, wish.event, to_timestamp(wish.created_at)
      from unnest(
        ${rows.map(({ fields }) => fields.uid)}::text[], ${rows.map(({ fields }) => fields.user_sub)}::text[],
        ${rows.map(({ fields }) => JSON.stringify(fields.event))}::jsonb[],
        ${rows.map(({ fields }) => fields.created_at)}::float8[]
      ) as wish (uid, sub, event, created_at)
      join users on users.sub = wish.sub
      on conflict (uid) do nothing returning id`.execute(this.#db);
    return accepted.length;
  }

  async #confirmTokens(rows: readonly Of<"user_push_tokens", "update">[]): Promise<number> {
    await confirmPushTokens(
      this.#ctx,
      rows.map(({ fields }) => ({ token: fields.token, at: fields.last_confirmed_at })),
    );
    return rows.length;
  }
}

const nameOf = (fields: { user_sub: string; touch_point_uid: string; channel: string }) =>
  `${fields.user_sub}\n${fields.touch_point_uid}\n${fields.channel}`;

function firstOf<T>(rows: readonly T[], name: (row: T) => string): readonly T[] {
  const first = new Map<string, T>();
  for (const row of rows) if (!first.has(name(row))) first.set(name(row), row);
  return [...first.values()];
}

import { type Kysely, sql, type Transaction } from "kysely";
import type { KernelContext } from "../kernel/context.ts";
import { newUid } from "../kernel/ids.ts";
import { timestamp } from "../kernel/sql/index.ts";
import { jobKeys } from "./keys.ts";
import { forgetRelayed, relay } from "./scripts.ts";
import type { JobTables } from "./tables.ts";

const BATCH = 500;
const FLAG_MS = 604_800_000;
const SETTLED_FLAG_MS = 3_600_000;
/** When to look after rows were written: their transaction commits some time soon, and nobody tells us when. */
const WAKE_SECONDS = [0.02, 0.1, 0.5];

/**
 * Jobs that commit with the application's own rows.
 *
 * Life of a row: written inside the caller's transaction -> committed -> relayed to the queue (a flag in Redis is set in the
 * same script) -> deleted -> flag expires an hour later. SQL is authoritative until the row is deleted. A crash after the relay leaves
 * the row; the next relay finds the flag, queues nothing, and deletes it. So each row is queued exactly once.
 */
export class Outbox {
  readonly #ctx: Pick<KernelContext, "redis" | "sql" | "clock" | "alerts">;
  #relaying: Promise<number> | undefined;
  #waking = false;

  constructor(ctx: Pick<KernelContext, "redis" | "sql" | "clock" | "alerts">) {
    this.#ctx = ctx;
  }

  /** Writes jobs into the caller's transaction. */
  async write(
    tx: Kysely<never> | Transaction<never>,
    jobs: readonly { raw: string; due: number | undefined }[],
  ): Promise<void> {
    await (tx as unknown as Kysely<JobTables>)
      .insertInto("job_outbox")
      .values(
        jobs.map(({ raw, due }) => ({
          uid: newUid("jo"),
          raw,
          due_at: due === undefined ? null : timestamp(due),
        })),
      )
      .execute();
    void this.#wake();
  }

  /** Relays everything that is committed; answers how many rows it settled. */
  relayAll(): Promise<number> {
    this.#relaying ??= this.#relayUntilEmpty().finally(() => {
      this.#relaying = undefined;
    });
    return this.#relaying;
  }

  async #relayUntilEmpty(): Promise<number> {
    // One cheap look, because nearly every look finds nothing.
    const waiting = await this.#ctx.sql.tables<JobTables>().selectFrom("job_outbox").select("id").limit(1).execute();
    if (waiting.length === 0) return 0;
    let settled = 0;
    for (;;) {
      const batch = await this.#relayBatch();
      settled += batch;
      if (batch < BATCH) return settled;
    }
  }

  async #relayBatch(): Promise<number> {
    const { redis, sql: engine } = this.#ctx;
    const uids = await engine
      .tables<JobTables>()
      .transaction()
      .execute(async (tx) => {
        // Rows that another process relays right now are skipped, not waited for.
        const rows = await tx
          .selectFrom("job_outbox")
          .select(["id", "uid", "raw", "due_at"])
          .orderBy("id")
          .limit(BATCH)
          .forUpdate()
          .skipLocked()
          .execute();
        if (rows.length === 0) return [];
        await redis.run(
          relay,
          [jobKeys.hot(), jobKeys.delayed(), ...rows.map(({ uid }) => jobKeys.relayed({ uid }))],
          [FLAG_MS, ...rows.flatMap(({ raw, due_at }) => [raw, due_at ?? 0])],
        );
        await tx
          .deleteFrom("job_outbox")
          .where(sql<boolean>`id = any(${rows.map(({ id }) => id)}::bigint[])`)
          .execute();
        return rows.map(({ uid }) => uid);
      });
    if (uids.length > 0) {
      const flags = uids.map((uid) => jobKeys.relayed({ uid }));
      // A flag that stays behind expires; one that went too early would let a late relay queue its row again.
      await redis.run(forgetRelayed, flags, [SETTLED_FLAG_MS]).catch(() => {});
    }
    return uids.length;
  }

  async #wake(): Promise<void> {
    if (this.#waking) return;
    this.#waking = true;
    try {
      for (const seconds of WAKE_SECONDS) {
        await this.#ctx.clock.sleep(seconds);
        await this.relayAll();
      }
    } catch {
      // The regular look of every worker repeats it, and reports what is wrong.
    } finally {
      this.#waking = false;
    }
  }
}

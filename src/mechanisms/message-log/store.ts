import { sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import type { Fence } from "../lock/index.ts";
import type { FlushResult } from "../write-behind/index.ts";
import { buffer } from "./log.ts";
import type { StoredNote } from "./notes.ts";
import { messageLogSettings } from "./settings.ts";

/** Entries per flush; their rows go in statements of a bounded size, which an embedded engine finishes in milliseconds. */
const ENTRIES = 200;
const ROWS = 500;
const PRUNED_AT_ONCE = 10_000;

type StoreContext = Pick<KernelContext, "redis" | "sql" | "clock" | "config" | "alerts" | "log">;

export interface StoreOptions {
  readonly runner: string;
  /** A keyed digest: addresses themselves stay out of the table. */
  digest(address: string): string;
  shuttingDown(): boolean;
  exhausted(): boolean;
}

/** Moves what was noted into SQL. */
export function storeNotes(ctx: StoreContext, fence: Fence, options: StoreOptions): Promise<FlushResult> {
  return buffer.flush(ctx, fence, {
    runner: options.runner,
    batch: ENTRIES,
    shuttingDown: options.shuttingDown,
    exhausted: options.exhausted,
    write: async (groups) => {
      const notes = groups.flat();
      for (let from = 0; from < notes.length; from += ROWS)
        await insert(ctx, notes.slice(from, from + ROWS), options.digest);
    },
  });
}

async function insert(ctx: StoreContext, notes: readonly StoredNote[], digest: StoreOptions["digest"]): Promise<void> {
  const column = <At extends 0 | 1 | 2 | 3 | 4 | 5>(at: At) => notes.map((note) => note[at]);
  const digests = notes.map(([, , , , , , address]) => (address === null ? null : digest(address)));
  await sql`
    insert into message_steps (channel, uid, at, step, provider, detail, address_digest)
    select channel, uid, to_timestamp(at), step, provider, detail, address_digest
    from unnest(${column(0)}::text[], ${column(1)}::text[], ${column(2)}::float8[], ${column(3)}::text[],
      ${column(4)}::text[], ${column(5)}::text[], ${digests}::text[])
      as note (channel, uid, at, step, provider, detail, address_digest)`.execute(ctx.sql.tables());
}

/** Forgets steps that are old enough, some thousands at a time; answers how many. */
export async function pruneSteps(
  ctx: Pick<KernelContext, "sql" | "clock" | "config">,
  goOn: () => boolean = () => true,
): Promise<number> {
  const before = timestamp(ctx.clock.now() - ctx.config.get(messageLogSettings.days) * 86_400);
  let pruned = 0;
  for (;;) {
    const { numAffectedRows = 0n } = await sql`
      delete from message_steps where ctid = any(array(
        select ctid from message_steps where at < ${before} limit ${PRUNED_AT_ONCE}))`.execute(ctx.sql.tables());
    pruned += Number(numAffectedRows);
    if (numAffectedRows < PRUNED_AT_ONCE || !goOn()) return pruned;
  }
}

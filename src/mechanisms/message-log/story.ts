import { type SqlBool, sql } from "kysely";
import type { KernelContext } from "../../kernel/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { messageLogKeys } from "./keys.ts";
import { noteGroup, type StoredNote, tidyUid } from "./notes.ts";
import type { MessageLogTables } from "./tables.ts";

export interface Step {
  readonly channel: string;
  readonly step: string;
  readonly at: number;
  readonly provider: string | null;
  readonly detail: string | null;
  /** Seconds until the next step; null for the last one. */
  readonly lasted: number | null;
}

type ReadContext = Pick<KernelContext, "redis" | "sql">;

const MOST_STEPS = 1_000;
const PAGE = 100;
/** Entries of the buffer that one look goes through: when SQL has been away for long, the newest of them. */
const MOST_ENTRIES = 5_000;

/** All that is known of what happened to a message, oldest first, also what has not reached SQL yet. */
export async function storyOf(ctx: ReadContext, uid: string): Promise<readonly Step[]> {
  const wanted = tidyUid(uid);
  // The buffer first: a note that is stored between the two looks is then seen twice, and not missed.
  const waiting = (await buffered(ctx, wanted)).filter((note) => note[1] === wanted);
  const rows = await ctx.sql
    .tables<MessageLogTables>()
    .selectFrom("message_steps")
    .select(["channel", "step", "at", "provider", "detail"])
    .where("uid", "=", wanted)
    .orderBy("at")
    .limit(MOST_STEPS)
    .execute();
  const known = new Map(rows.map((row) => [identity(row), row]));
  for (const [channel, , time, step, provider, detail] of waiting) {
    // As SQL will have it: microseconds.
    const row = { channel, step, at: Number(time.toFixed(6)), provider, detail };
    if (!known.has(identity(row))) known.set(identity(row), row);
  }
  const steps = [...known.values()].sort((a, b) => a.at - b.at);
  return steps.map((step, index) => {
    const next = steps[index + 1];
    return { ...step, lasted: next ? Math.max(0, Number((next.at - step.at).toFixed(6))) : null };
  });
}

const identity = ({ at, step }: { at: number; step: string }) => `${step} ${at.toFixed(6)}`;

export interface KnownMessage {
  readonly uid: string;
  readonly channel: string;
  readonly first_at: number;
  readonly last_step: string;
  readonly last_at: number;
}

/** Messages to one address, newest first; those before `before` are the next page. */
export async function messagesTo(
  ctx: Pick<KernelContext, "sql">,
  digest: string,
  options: { readonly limit: number; readonly before?: number | undefined },
): Promise<readonly KnownMessage[]> {
  return ctx.sql
    .tables<MessageLogTables>()
    .selectFrom("message_steps as first")
    .distinct()
    .innerJoinLateral(
      (join) =>
        join
          .selectFrom("message_steps as step")
          .select(["step.step as last_step", "step.at as last_at"])
          .whereRef("step.uid", "=", "first.uid")
          .orderBy("step.at", "desc")
          .limit(1)
          .as("latest"),
      (on) => on.onTrue(),
    )
    .select(["first.uid", "first.channel", "first.at as first_at", "latest.last_step", "latest.last_at"])
    .where("first.address_digest", "=", digest)
    .where((where) =>
      options.before === undefined ? sql<SqlBool>`true` : where("first.at", "<", timestamp(options.before)),
    )
    .orderBy("first.at", "desc")
    .limit(options.limit)
    .execute();
}

/** Notes that still wait for SQL and may be about the message, looked at from the newest back. */
async function buffered(ctx: ReadContext, uid: string): Promise<StoredNote[]> {
  const key = ctx.redis.topology.key(messageLogKeys.buffer());
  const needle = JSON.stringify(uid);
  const found: StoredNote[] = [];
  // From the right: notes that are added meanwhile push the others along, so they are seen again and not passed over.
  for (let from = 0; from < MOST_ENTRIES; from += PAGE) {
    const raws = await ctx.redis.commands.lrangeBuffer(key, -(from + PAGE), -(from + 1));
    for (const raw of raws) if (raw.includes(needle)) found.push(...readable(raw));
    if (raws.length < PAGE) break;
  }
  return found;
}

/** An entry that cannot be read is the storing job's to set aside. */
function readable(raw: Buffer): readonly StoredNote[] {
  try {
    return noteGroup.decode(raw);
  } catch {
    return [];
  }
}

import { sql as raw, type Selectable, type Transaction } from "kysely";
import type { Context } from "../../../src/jobs/context.ts";
import { newUid } from "../../../src/kernel/ids.ts";
import { timestamp } from "../../../src/kernel/sql/index.ts";
import { errors } from "./errors.ts";
import { keys } from "./keys.ts";
import { settleDue } from "./scripts.ts";
import type { NoteRow, NoteTables } from "./tables.ts";

/**
 * The life of a note:
 *
 *   absent --alarm set--> announced --row written--> there --its time comes--> row deleted --alarm ended--> absent
 *                                                     |  ^
 *                                                     +--+ kept longer: the row alone changes
 *
 * The row is authoritative. The alarm in Redis only says when to look at it, so it may ring too early and must never ring
 * too late: it is set before the row is written, and keeping a note longer does not touch it. What a crash leaves: after
 * `announced` an alarm without a note, which the job ends; after `row deleted` the same. The job may run twice over any
 * of it.
 */
export type Note = Selectable<NoteRow>;

export const EXPIRY_BATCH = 500;

export async function writeNote(
  ctx: Pick<Context, "sql" | "redis" | "clock">,
  note: { userId: number; text: string; expiresIn: number },
): Promise<Note> {
  const now = ctx.clock.now();
  const expiresAt = now + note.expiresIn;
  const uid = newUid("note");
  const { commands, topology } = ctx.redis;
  await commands.zadd(topology.key(keys.alarms()), expiresAt, uid);
  return ctx.sql
    .tables<NoteTables>()
    .insertInto("notes")
    .values({
      uid,
      user_id: note.userId,
      text: note.text,
      created_at: timestamp(now),
      expires_at: timestamp(expiresAt),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Newest first. Pages are cut by id, so a note that goes meanwhile shifts nothing. */
export async function listNotes(
  ctx: Pick<Context, "sql" | "clock">,
  userId: number,
  page: { before?: string; limit: number },
): Promise<{ readonly notes: readonly Note[]; readonly next: string | undefined }> {
  let query = ctx.sql
    .tables<NoteTables>()
    .selectFrom("notes")
    .selectAll()
    .where("user_id", "=", userId)
    .where("expires_at", ">", timestamp(ctx.clock.now()))
    .orderBy("id", "desc")
    .limit(page.limit + 1);
  if (page.before !== undefined)
    query = query.where("id", "<", (nested) =>
      nested.selectFrom("notes").select("id").where("uid", "=", page.before!).where("user_id", "=", userId),
    );
  const rows = await query.execute();
  const notes = rows.slice(0, page.limit);
  return { notes, next: rows.length > page.limit ? notes.at(-1)?.uid : undefined };
}

/** Lets a note live longer, never shorter. */
export async function keepNote(
  ctx: Pick<Context, "sql" | "clock">,
  userId: number,
  uid: string,
  expiresIn: number,
): Promise<Note> {
  const now = ctx.clock.now();
  const kept = await ctx.sql
    .tables<NoteTables>()
    .updateTable("notes")
    .set({ expires_at: raw<number>`greatest(expires_at, ${timestamp(now + expiresIn)})` })
    .where("uid", "=", uid)
    .where("user_id", "=", userId)
    .where("expires_at", ">", timestamp(now))
    .returningAll()
    .executeTakeFirst();
  if (!kept) throw errors.note_not_found();
  return kept;
}

/** Deletes notes whose time is over, one batch; answers how many alarms it looked at. */
export async function expireDue(ctx: Pick<Context, "sql" | "redis" | "clock">): Promise<number> {
  const now = ctx.clock.now();
  const { commands, topology } = ctx.redis;
  const due = await commands.zrangebyscore(topology.key(keys.alarms()), "-inf", now, "LIMIT", 0, EXPIRY_BATCH);
  if (due.length === 0) return 0;
  const rows = ctx.sql.tables<NoteTables>();
  const amongDue = raw<boolean>`uid = any(${due}::text[])`;
  await rows.deleteFrom("notes").where(amongDue).where("expires_at", "<=", timestamp(now)).execute();
  const kept = await rows.selectFrom("notes").select(["uid", "expires_at"]).where(amongDue).execute();
  const later = new Map(kept.map((note) => [note.uid, note.expires_at]));
  await ctx.redis.run(settleDue, [keys.alarms()], [now, ...due.flatMap((uid) => [uid, later.get(uid) ?? ""])]);
  return due.length;
}

/** Inside the transaction that deletes the user. The alarms ring once more, find no note, and end. */
export async function deleteNotesOf(tx: unknown, userId: number): Promise<void> {
  await (tx as Transaction<NoteTables>).deleteFrom("notes").where("user_id", "=", userId).execute();
}

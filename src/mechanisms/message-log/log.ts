import type { KernelContext } from "../../kernel/context.ts";
import { writeBehind } from "../write-behind/index.ts";
import { messageLogKeys } from "./keys.ts";
import { type Note, noteGroup, type StoredNote, storedNote } from "./notes.ts";
import { messageLogSettings } from "./settings.ts";

/**
 * The story of messages: what happened to each, when, and by which provider.
 *
 *   channel ──note──▶ this process ──append──▶ messages:log ──store──▶ message_steps ──after 30 days──▶ gone
 *
 * No message depends on its story. A channel notes what it did after it did it, never waits for the note and never hears
 * of its failure; a process that dies takes along what it had not appended, at most the notes of one call. From the
 * buffer on nothing is lost: a run that dies after the commit stores the same rows again. Steps may arrive in any order
 * and more than once; whoever reads them sorts them by their times and tells equal ones once.
 */
export const buffer = writeBehind({ buffer: messageLogKeys.buffer(), codec: noteGroup });

/** Notes in one entry of the buffer, and entries in one call. */
const GROUP = 50;
const GROUPS_PER_CALL = 20;
/** Entries in the buffer: when SQL is away for long, later steps are not kept rather than filling Redis. */
export const MOST_GROUPS = 50_000;
/** Notes that one process holds while Redis is slow. */
const MOST_WAITING = 200_000;
const DROPPED = "carillon_message_log_dropped_total";

type LogContext = Pick<KernelContext, "redis" | "clock" | "config" | "alerts" | "log" | "metrics">;

class Line {
  #waiting: StoredNote[][] = [];
  #count = 0;
  #appending: Promise<void> | undefined;

  get settled(): Promise<void> {
    return this.#appending ?? Promise.resolve();
  }

  add(ctx: LogContext, notes: readonly StoredNote[]): void {
    const kept = notes.slice(0, Math.max(0, MOST_WAITING - this.#count));
    if (kept.length < notes.length) drop(ctx, notes.length - kept.length, "Redis is slow to take them");
    for (const note of kept) {
      const last = this.#waiting.at(-1);
      if (last && last.length < GROUP) last.push(note);
      else this.#waiting.push([note]);
    }
    this.#count += kept.length;
    this.#appending ??= this.#append(ctx);
  }

  /** What is noted during one append goes with the next, so that busy times make larger calls and not more. */
  async #append(ctx: LogContext): Promise<void> {
    // Notes of the same turn of the event loop go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const groups = this.#waiting.splice(0, GROUPS_PER_CALL);
      const notes = groups.reduce((sum, group) => sum + group.length, 0);
      this.#count -= notes;
      try {
        const answer = await buffer.append(ctx, groups, { maxLength: MOST_GROUPS });
        if (!answer.ok) drop(ctx, notes, "SQL takes them too slowly");
      } catch (error) {
        ctx.log.warn({ err: error, count: notes }, "steps of messages could not be noted");
        count(ctx, notes);
      }
    }
    // At once: what is noted a moment later must find nobody who seems to be at work.
    this.#appending = undefined;
  }
}

const lines = new WeakMap<object, Line>();

/** Notes steps of messages, any number at once. Never throws, and never waits. */
export function noteSteps(ctx: LogContext, notes: readonly Note[]): void {
  if (notes.length === 0 || !ctx.config.get(messageLogSettings.enabled)) return;
  const now = ctx.clock.now();
  const line = lines.get(ctx.redis) ?? new Line();
  lines.set(ctx.redis, line);
  line.add(
    ctx,
    notes.map((note) => storedNote(note, now)),
  );
}

/** Resolves when all that this process noted is in Redis or given up: for the end of a process, and for tests. */
export async function notesSettled(ctx: Pick<KernelContext, "redis">): Promise<void> {
  await lines.get(ctx.redis)?.settled;
}

function drop(ctx: LogContext, notes: number, why: string): void {
  count(ctx, notes);
  ctx.alerts.warning("message_log:dropped", `${notes} steps of messages were not kept: ${why}`);
}

function count(ctx: LogContext, notes: number): void {
  ctx.metrics.counter(DROPPED, "Steps of messages that were not kept").inc(notes);
}

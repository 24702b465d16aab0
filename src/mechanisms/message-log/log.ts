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
 * buffer on nothing is lost: a run that dies after the commit stores the same rows again, which changes nothing. Steps
 * may arrive in any order; whoever reads them sorts them by their times.
 */
export const buffer = writeBehind({ buffer: messageLogKeys.buffer(), codec: noteGroup });

/** Notes in one entry of the buffer, and in one call. */
const GROUP = 50;
const PER_CALL = 1_000;
/** Entries in the buffer: when SQL is away for long, later steps are not kept rather than filling Redis. */
export const MOST_GROUPS = 50_000;
/** Notes that one process holds while Redis is slow. */
const MOST_WAITING = 20_000;
const DROPPED = "carillon_message_log_dropped_total";

type LogContext = Pick<KernelContext, "redis" | "clock" | "config" | "alerts" | "log" | "metrics">;

class Line {
  #waiting: StoredNote[] = [];
  #appending: Promise<void> | undefined;

  get settled(): Promise<void> {
    return this.#appending ?? Promise.resolve();
  }

  add(ctx: LogContext, notes: readonly StoredNote[]): void {
    const room = MOST_WAITING - this.#waiting.length;
    if (notes.length > room) drop(ctx, notes.length - Math.max(0, room), "Redis is slow to take them");
    // Not spread into push: a campaign notes more than a call may have arguments.
    this.#waiting = this.#waiting.concat(notes.slice(0, Math.max(0, room)));
    this.#appending ??= this.#append(ctx).finally(() => {
      this.#appending = undefined;
    });
  }

  /** What is noted during one append goes with the next, so that busy times make larger calls and not more. */
  async #append(ctx: LogContext): Promise<void> {
    // Notes of the same turn of the event loop go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const notes = this.#waiting.slice(0, PER_CALL);
      this.#waiting = this.#waiting.slice(notes.length);
      const groups = Array.from({ length: Math.ceil(notes.length / GROUP) }, (_, at) =>
        notes.slice(at * GROUP, (at + 1) * GROUP),
      );
      try {
        const answer = await buffer.append(ctx, groups, { maxLength: MOST_GROUPS });
        if (!answer.ok) drop(ctx, notes.length, "SQL takes them too slowly");
      } catch (error) {
        ctx.log.warn({ err: error, count: notes.length }, "steps of messages could not be noted");
        count(ctx, notes.length);
      }
    }
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

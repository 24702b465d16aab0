import { defineScript } from "../../kernel/redis/index.ts";
import { decidedOf } from "../../mechanisms/decision/index.ts";
import { FENCED_CODE, type Fenced, fenced } from "../../mechanisms/lock/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

export type EnqueueAnswer =
  | { readonly ok: true; readonly duplicate: boolean }
  | { readonly ok: false; readonly reason: "backpressure" };

/** Idempotent by its flag: a repeat is answered as a duplicate. */
export const enqueue = defineScript({
  name: "push.enqueue",
  file: file("enqueue"),
  keys: ["to_send", "seen", "...counters"],
  args: ["max_length", "seen_ms", "item_count", "...values"],
  idempotent: true,
  reply: (code: number): EnqueueAnswer =>
    code === -1 ? { ok: false, reason: "backpressure" } : { ok: true, duplicate: code === -2 },
});

/** Idempotent: an entry that is gone from the purgatory has no effect again. */
export const settle = defineScript({
  name: "push.settle",
  file: file("settle"),
  keys: ["purgatory", "cold", "hot", "lock", "...counters"],
  args: ["lock_id", "head", "last", "...groups"],
  idempotent: true,
  reply: (flags: number[]) => (flags[0] === -1 ? ("another head" as const) : flags.map((flag) => flag === 1)),
});

/** Idempotent by the flags of its decisions. */
export const decideTries = defineScript({
  name: "push.decide_tries",
  file: file("decide_tries"),
  keys: ["waiting", "...flags_and_counters"],
  args: ["flag_ms", "flag_count", "...items"],
  idempotent: true,
  reply: (pairs: [number, string][]) => pairs.map(decidedOf),
});

export interface Stretch {
  readonly ok: true;
  readonly moved: number;
  readonly looked: number;
  /** Where the next stretch begins. */
  readonly cursor: Cursor;
}

/** A place in the cold set: a score as Redis wrote it, and how many members of that score lie behind. */
export interface Cursor {
  readonly score: string;
  readonly skip: number;
}

export const coldToHot = defineScript({
  name: "push.cold_to_hot",
  file: file("cold_to_hot"),
  keys: ["cold", "hot", "lock"],
  args: ["lock_id", "cutoff", "latest", "max_items", "score", "skip"],
  idempotent: false,
  reply: ([moved, looked, score, skip]: [number, number, string, number]): Stretch | Fenced =>
    moved === FENCED_CODE ? fenced : { ok: true, moved, looked, cursor: { score, skip } },
});

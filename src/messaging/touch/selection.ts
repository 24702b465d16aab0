import { randomInt } from "node:crypto";
import { z } from "zod";
import type { SelectionStrategy } from "./point.ts";

/** Which of its messages a touch point says next to somebody. The state is of one user, touch point and channel. */
export interface Selection {
  readonly at: number;
  /** Absent: the strategy keeps none. */
  readonly state?: unknown;
}

interface Candidate {
  readonly uid: string;
  readonly priority: number;
}

/** A number from 0 to below `of`. */
export type Dice = (of: number) => number;
const dice: Dice = (of) => randomInt(of);

const Seen = z.array(z.string());
const Order = z.object({ last_priority: z.number(), counter: z.int(), seen: z.record(z.string(), z.int()) });

/** Chooses among messages in the order of their priority; there is at least one. */
export function select(
  strategy: SelectionStrategy,
  messages: readonly Candidate[],
  state: unknown,
  options: { readonly reset?: boolean; readonly roll?: Dice } = {},
): Selection {
  const { reset = false, roll = dice } = options;
  switch (strategy) {
    case "random_with_replacement":
      return { at: roll(messages.length) };
    case "fixed":
      return fixed(messages, state, roll);
    case "ordered_resettable":
      return ordered(messages, state, reset);
  }
}

export function keepsState(strategy: SelectionStrategy): boolean {
  return strategy !== "random_with_replacement";
}

/** Everything once, the lowest priority first and by chance within it; then from the beginning. */
function fixed(messages: readonly Candidate[], state: unknown, roll: Dice): Selection {
  const parsed = state === undefined ? undefined : Seen.safeParse(state);
  const known = new Set(messages.map(({ uid }) => uid));
  const seen = new Set(parsed?.success ? parsed.data.filter((uid) => known.has(uid)) : []);
  const isFresh = messages.some(({ uid }) => !seen.has(uid));
  let lowest = Number.POSITIVE_INFINITY;
  let choices: number[] = [];
  for (const [at, { uid, priority }] of messages.entries()) {
    if ((isFresh && seen.has(uid)) || priority > lowest) continue;
    if (priority < lowest) choices = [];
    lowest = priority;
    choices.push(at);
  }
  const at = choices[roll(choices.length)]!;
  const { uid } = messages[at]!;
  return { at, state: isFresh ? [...seen, uid] : [uid] };
}

/** One of each priority in turn, upwards; within a priority what was never said, then what was said longest ago. */
function ordered(messages: readonly Candidate[], state: unknown, reset: boolean): Selection {
  const parsed = Order.safeParse(state);
  const held = parsed.success ? parsed.data : undefined;
  const counter = (held?.counter ?? 0) + 1;
  const seen = held?.seen ?? {};
  const threshold = held && !reset ? held.last_priority : Number.NEGATIVE_INFINITY;
  const above = messages.filter(({ priority }) => priority > threshold);
  const open = above.length > 0 ? above : messages;
  const lowest = Math.min(...open.map(({ priority }) => priority));
  let at = -1;
  for (const [index, { uid, priority }] of messages.entries()) {
    if (priority !== lowest) continue;
    if (at === -1 || lastSaid(seen, uid) < lastSaid(seen, messages[at]!.uid)) at = index;
  }
  const chosen = messages[at]!;
  const known = new Set(messages.map(({ uid }) => uid));
  const kept = Object.fromEntries(Object.entries(seen).filter(([uid]) => known.has(uid)));
  return { at, state: { last_priority: chosen.priority, counter, seen: { ...kept, [chosen.uid]: counter } } };
}

const lastSaid = (seen: Readonly<Record<string, number>>, uid: string) => seen[uid] ?? Number.NEGATIVE_INFINITY;

import { defineScript } from "../../kernel/redis/index.ts";
import { FENCED_CODE, type Fenced, fenced } from "../lock/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

/** How a batch came into the worker's hands. */
export interface Claim {
  readonly ok: true;
  /** How many items the purgatory holds now. */
  readonly size: number;
  /** True when they were left by a run that died. */
  readonly recovered: boolean;
}

export type Remaining = { readonly ok: true; readonly remaining: number } | Fenced;

const remaining = (code: number): Remaining => (code === FENCED_CODE ? fenced : { ok: true, remaining: code });

export const push = defineScript({
  name: "purgatory_queue.push",
  file: file("push"),
  keys: ["queue"],
  args: ["max_length", "...items"],
  idempotent: false,
  reply: (code: number) =>
    code < 0 ? ({ ok: false, reason: "backpressure" } as const) : ({ ok: true, length: code } as const),
});

export const claim = defineScript({
  name: "purgatory_queue.claim",
  file: file("claim"),
  keys: ["queue", "purgatory", "lock", "...retrying"],
  args: ["lock_id", "max_items", "now"],
  idempotent: false,
  reply: ([size, recovered]: [number, number]): Claim | Fenced =>
    size === FENCED_CODE ? fenced : { ok: true, size, recovered: recovered === 1 },
});

export const claimMore = defineScript({
  name: "purgatory_queue.claim_more",
  file: file("claim_more"),
  keys: ["queue", "purgatory", "lock", "...retrying"],
  args: ["lock_id", "max_items", "now", "limit"],
  idempotent: false,
  reply: ([size, moved]: [number, number]): (Claim & { readonly moved: number }) | Fenced =>
    size === FENCED_CODE ? fenced : { ok: true, size, recovered: false, moved },
});

/** Idempotent: a repeat finds the head that the first call put there. */
export const claimOne = defineScript({
  name: "purgatory_queue.claim_one",
  file: file("claim_one"),
  keys: ["queue", "purgatory", "lock"],
  args: ["lock_id"],
  idempotent: true,
  reply: (code: number): { readonly ok: true; readonly present: boolean } | Fenced =>
    code === FENCED_CODE ? fenced : { ok: true, present: code === 1 },
});

export const ack = defineScript({
  name: "purgatory_queue.ack",
  file: file("ack"),
  keys: ["purgatory", "lock"],
  args: ["lock_id", "count"],
  idempotent: false,
  reply: remaining,
});

/** Not idempotent: a repeat would remove an equal item that somebody else still works on. */
export const ackValues = defineScript({
  name: "purgatory_queue.ack_values",
  file: file("ack_values"),
  keys: ["purgatory"],
  args: ["...items"],
  idempotent: false,
  reply: (flags: number[]) => flags.map((flag) => flag === 1),
});

export const ackAll = defineScript({
  name: "purgatory_queue.ack_all",
  file: file("ack_all"),
  keys: ["purgatory", "lock"],
  args: ["lock_id"],
  idempotent: false,
  reply: (code: number): { readonly ok: true; readonly removed: number } | Fenced =>
    code === FENCED_CODE ? fenced : { ok: true, removed: code },
});

export const ackWith = defineScript({
  name: "purgatory_queue.ack_with",
  file: file("ack_with"),
  keys: ["purgatory", "lock", "...targets"],
  args: ["lock_id", "count", "...effects"],
  idempotent: false,
  reply: remaining,
});

export const putBack = defineScript({
  name: "purgatory_queue.put_back",
  file: file("put_back"),
  keys: ["queue", "purgatory", "lock"],
  args: ["lock_id"],
  idempotent: false,
  reply: (code: number): { readonly ok: true; readonly returned: number } | Fenced =>
    code === FENCED_CODE ? fenced : { ok: true, returned: code },
});

export const quarantine = defineScript({
  name: "purgatory_queue.quarantine",
  file: file("quarantine"),
  keys: ["list", "quarantine"],
  args: ["...pairs"],
  idempotent: false,
  reply: (flags: number[]) => flags.map((flag) => flag === 1),
});

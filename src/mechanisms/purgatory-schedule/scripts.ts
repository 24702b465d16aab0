import { defineScript } from "../../kernel/redis/index.ts";
import { FENCED_CODE, type Fenced, fenced } from "../lock/index.ts";
import type { Claim } from "../purgatory-queue/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

export const schedule = defineScript({
  name: "purgatory_schedule.schedule",
  file: file("schedule"),
  keys: ["schedule"],
  args: ["mode", "...pairs"],
  idempotent: true,
  reply: ([added, changed]: [number, number]) => ({ added, changed }),
});

export const shift = defineScript({
  name: "purgatory_schedule.shift",
  file: file("shift"),
  keys: ["schedule", "purgatory", "lock"],
  args: ["lock_id", "max_items", "max_score"],
  idempotent: false,
  reply: ([size, recovered]: [number, number]): Claim | Fenced =>
    size === FENCED_CODE ? fenced : { ok: true, size, recovered: recovered === 1 },
});

export const shiftMore = defineScript({
  name: "purgatory_schedule.shift_more",
  file: file("shift_more"),
  keys: ["schedule", "purgatory", "lock"],
  args: ["lock_id", "max_items", "max_score", "limit"],
  idempotent: false,
  reply: ([size, moved]: [number, number]): (Claim & { readonly moved: number }) | Fenced =>
    size === FENCED_CODE ? fenced : { ok: true, size, recovered: false, moved },
});

export const ack = defineScript({
  name: "purgatory_schedule.ack",
  file: file("ack"),
  keys: ["purgatory"],
  args: ["...members"],
  idempotent: true,
  reply: (removed: number) => removed,
});

export const reschedule = defineScript({
  name: "purgatory_schedule.reschedule",
  file: file("reschedule"),
  keys: ["schedule", "purgatory", "lock"],
  args: ["lock_id", "...pairs"],
  idempotent: false,
  reply: (code: number): { readonly ok: true; readonly moved: number } | Fenced =>
    code === FENCED_CODE ? fenced : { ok: true, moved: code },
});

export type PromoteStop = "src_empty" | "max_score" | "max_count" | "backpressure";

export const promote = defineScript({
  name: "purgatory_schedule.promote",
  file: file("promote"),
  keys: ["schedule", "list"],
  args: ["max_score", "max_items", "max_length"],
  idempotent: false,
  reply: ([moved, stop]: [number, PromoteStop]) => ({ moved, stop }),
});

export const quarantine = defineScript({
  name: "purgatory_schedule.quarantine",
  file: file("quarantine"),
  keys: ["purgatory", "quarantine"],
  args: ["...pairs"],
  idempotent: false,
  reply: (flags: number[]) => flags.map((flag) => flag === 1),
});

import { defineScript } from "../../kernel/redis/index.ts";
import { decidedOf } from "../../mechanisms/decision/index.ts";
import { FENCED_CODE, fenced } from "../../mechanisms/lock/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);
const codes = (raw: number[]) => raw;

export const enqueue = defineScript({
  name: "email.enqueue",
  file: file("enqueue"),
  keys: ["to_send", "urgent", "seen", "...counters"],
  args: ["max_length", "flag_ms", "ordinary", "urgent_count", "...items"],
  idempotent: false,
  reply: (code: number) => {
    if (code >= 0) return { ok: true, length: code } as const;
    return { ok: false, reason: code === -1 ? "backpressure" : "duplicate" } as const;
  },
});

export const commitSend = defineScript({
  name: "email.commit_send",
  file: file("commit_send"),
  keys: ["purgatory", "pending", "event", "jobs", "lock", "...counters"],
  args: ["lock_id", "head", "last", "kinds", "size", "...items"],
  idempotent: false,
  reply: (raw: number[]) => (raw[0] === -1 ? ("another head" as const) : raw),
});

/** Idempotent: what a first call returned, a repeat no longer finds in the purgatory. */
export const unreserve = defineScript({
  name: "email.unreserve",
  file: file("unreserve"),
  keys: ["to_send", "urgent", "purgatory", "lock"],
  args: ["lock_id", "ordinary", "...items"],
  idempotent: true,
  reply: (code: number) => (code === FENCED_CODE ? fenced : ({ ok: true, returned: code } as const)),
});

/** Idempotent: what a first call set aside, a repeat no longer finds in the purgatory. */
export const setAside = defineScript({
  name: "email.set_aside",
  file: file("set_aside"),
  keys: ["purgatory", "paused", "lock"],
  args: ["lock_id", "...items"],
  idempotent: true,
  reply: (code: number) => (code === FENCED_CODE ? fenced : ({ ok: true, aside: code } as const)),
});

export const bringBack = defineScript({
  name: "email.bring_back",
  file: file("bring_back"),
  keys: ["paused", "to_send"],
  args: ["most"],
  idempotent: true,
  reply: (left: number) => left,
});

/** Idempotent by its flags: a repeat answers what was decided. */
export const decide = defineScript({
  name: "email.decide",
  file: file("decide"),
  keys: ["retrying", "urgent", "...keys"],
  args: ["count", "flag_ms", "...items"],
  idempotent: true,
  reply: (raw: [number, string][]) => raw.map(decidedOf),
});

export const reconcile = defineScript({
  name: "email.reconcile",
  file: file("reconcile"),
  keys: ["purgatory", "pending", "early", "jobs", "...counters"],
  args: ["due", "kinds", "...items"],
  idempotent: false,
  reply: codes,
});

/** Idempotent: what a first call closed, a repeat finds gone. */
export const closeStale = defineScript({
  name: "email.close_stale",
  file: file("close_stale"),
  keys: ["pending", "jobs"],
  args: ["...items"],
  idempotent: true,
  reply: codes,
});

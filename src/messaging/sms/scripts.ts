import { defineScript } from "../../kernel/redis/index.ts";
import { decidedOf } from "../../mechanisms/decision/index.ts";
import { FENCED_CODE, type Fenced, fenced } from "../../mechanisms/lock/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);
const codes = (raw: number[]) => raw;

export const enqueue = defineScript({
  name: "sms.enqueue",
  file: file("enqueue"),
  keys: ["to_send", "seen", "...counters"],
  args: ["max_length", "flag_ms", "count", "...items"],
  idempotent: false,
  reply: (code: number) => {
    if (code >= 0) return { ok: true, length: code } as const;
    return { ok: false, reason: code === -1 ? "backpressure" : "duplicate" } as const;
  },
});

export const commitSend = defineScript({
  name: "sms.commit_send",
  file: file("commit_send"),
  keys: ["purgatory", "pending", "jobs", "recent", "...counters"],
  args: ["now", "forget_before", "kinds", "...items"],
  idempotent: false,
  reply: codes,
});

export const putBackDoubtful = defineScript({
  name: "sms.put_back_doubtful",
  file: file("put_back_doubtful"),
  keys: ["to_send", "purgatory", "lock"],
  args: ["lock_id", "...items"],
  idempotent: false,
  reply: (code: number): { readonly ok: true; readonly returned: number } | Fenced =>
    code === FENCED_CODE ? fenced : { ok: true, returned: code },
});

/** Idempotent by its flags: a repeat answers what was decided. */
export const decideSend = defineScript({
  name: "sms.decide_send",
  file: file("decide_send"),
  keys: ["retrying", "...keys"],
  args: ["count", "flag_ms", "...items"],
  idempotent: true,
  reply: (raw: [number, string][]) => raw.map(decidedOf),
});

const PENDING_ARGS = ["version_field", "companions", "queue", "now", "call_id"] as const;

export const pendingStale = defineScript({
  name: "sms.pending_stale",
  file: file("pending_stale"),
  keys: ["set", "quarantine", "jobs", "...counters"],
  args: [...PENDING_ARGS, "new_due", "...items"],
  idempotent: false,
  reply: codes,
});

export const decidePending = defineScript({
  name: "sms.decide_pending",
  file: file("decide_pending"),
  keys: ["set", "quarantine", "recovery", "...keys"],
  args: [...PENDING_ARGS, "count", "flag_ms", "...items"],
  idempotent: true,
  reply: (raw: [number, string][]) =>
    raw.map(([code, decision]) => ({ applied: code > 0, ...decidedOf([code === 1 ? 1 : 0, decision]) })),
});

export const commitRecovery = defineScript({
  name: "sms.commit_recovery",
  file: file("commit_recovery"),
  keys: ["purgatory", "event", "...counters"],
  args: ["...items"],
  idempotent: false,
  reply: codes,
});

export const commitEvents = defineScript({
  name: "sms.commit_events",
  file: file("commit_events"),
  keys: ["set", "quarantine", "purgatory", "early", "jobs", "...counters"],
  args: [...PENDING_ARGS, "kinds", "...items"],
  idempotent: false,
  reply: codes,
});

/** Idempotent: what was forgotten is not there to be compared. */
export const settleWishes = defineScript({
  name: "sms.settle_wishes",
  file: file("settle_wishes"),
  keys: ["wishes"],
  args: ["...pairs"],
  idempotent: true,
  reply: (raw: number) => raw,
});

import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

export const enqueue = defineScript({
  name: "touch.enqueue",
  file: file("enqueue"),
  keys: ["to_send", "seen", "...counters"],
  args: ["max_length", "flag_ms", "count", "...items"],
  idempotent: false,
  reply: (raw: number[]) =>
    raw[0] === -1
      ? ({ duplicate: true } as const)
      : ({ duplicate: false, queued: raw.map((one) => one === 1) } as const),
});

export const dispatch = defineScript({
  name: "touch.dispatch",
  file: file("dispatch"),
  keys: ["purgatory", "pending", "to_log", "jobs", "to_tell", "sent_on", "push", "sms", "email", "...counters"],
  args: ["now", "touches", "waiting", "rows", "callbacks", "told", "sent", "kept_ms", "groups", "...items"],
  idempotent: false,
  reply: (left: number) => (left < 0 ? ({ ok: false } as const) : ({ ok: true, left } as const)),
});

/** What a touch did when one of its messages ended. */
export type TouchFate = "goes_on" | "ended" | "was_over";
const FATES: readonly TouchFate[] = ["goes_on", "ended", "was_over"];

export const settle = defineScript({
  name: "touch.settle",
  file: file("settle"),
  keys: ["pending", "to_log", "jobs", "to_tell"],
  args: ["now", "...items"],
  idempotent: false,
  reply: (raw: number[]) => raw.map((code) => FATES[code - 1]!),
});

const EXPIRIES = ["waits", "failed", "arrived"] as const;

export const expire = defineScript({
  name: "touch.expire",
  file: file("expire"),
  keys: ["pending", "jobs", "to_tell", "...counters"],
  args: ["now", "cutoff", "tell", "count", "...items"],
  idempotent: false,
  reply: (raw: number[]) => raw.map((code) => EXPIRIES[code]!),
});

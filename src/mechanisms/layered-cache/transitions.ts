import { defineScript } from "../../kernel/redis/index.ts";

/** The atomic steps of filling, purging and pushing. A repeated finish would report its own success as lost. */
const script = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

/** What asking for a fill lock answered, for one id. */
export type FillRight =
  | { readonly kind: "ours" }
  | { readonly kind: "stored" }
  | { readonly kind: "held"; readonly seconds: number };

function toRight(reply: number): FillRight {
  if (reply === 0) return { kind: "ours" };
  return reply < 0 ? { kind: "stored" } : { kind: "held", seconds: reply / 1000 };
}

export const takeFillLocks = defineScript({
  name: "layered_cache.take_fill_locks",
  file: script("take_fill_locks"),
  keys: ["...locks"],
  args: ["token", "ttl_ms"],
  idempotent: false,
  reply: (raw: number[]) => raw.map(toRight),
});

export const takeFillLocksUnlessStored = defineScript({
  name: "layered_cache.take_fill_locks_unless_stored",
  file: script("take_fill_locks_unless_stored"),
  keys: ["...locks"],
  args: ["token", "ttl_ms"],
  idempotent: false,
  reply: (raw: number[]) => raw.map(toRight),
});

export const finishFill = defineScript({
  name: "layered_cache.finish_fill",
  file: script("finish_fill"),
  keys: ["...locks"],
  args: ["token", "channel", "...frames"],
  idempotent: false,
  reply: (raw: number[]) => raw.map((code) => code === 1),
});

export const finishFillAndStore = defineScript({
  name: "layered_cache.finish_fill_and_store",
  file: script("finish_fill_and_store"),
  keys: ["...locks"],
  args: ["token", "channel", "ttl_ms", "...items"],
  idempotent: false,
  reply: (raw: number[]) => raw.map((code) => code === 1),
});

export const releaseFillLocks = defineScript({
  name: "layered_cache.release_fill_locks",
  file: script("release_fill_locks"),
  keys: ["...locks"],
  args: ["token"],
  idempotent: true,
  reply: (raw: number) => raw,
});

export const purge = defineScript({
  name: "layered_cache.purge",
  file: script("purge"),
  keys: ["...keys"],
  args: ["channel", "mirror", "echo", "...frames"],
  idempotent: true,
  reply: (raw: number) => raw,
});

export const push = defineScript({
  name: "layered_cache.push",
  file: script("push"),
  keys: ["...keys"],
  args: ["count", "ttl_ms", "channel", "mirror", "echo", "...items"],
  // A repeat could come after somebody else's purge and bring the value back that it undid.
  idempotent: false,
  reply: (raw: number) => raw,
});

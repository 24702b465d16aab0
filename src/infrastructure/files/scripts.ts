import { defineScript } from "../../kernel/redis/index.ts";

export type Protected =
  | { readonly ok: true; readonly added: number }
  | { readonly ok: false; readonly reason: "being_swept" };
export type Renewed = { readonly ok: true } | { readonly ok: false; readonly reason: "gone" | "being_swept" };

export const protect = defineScript({
  name: "files.protect",
  file: new URL("./scripts/protect.lua", import.meta.url),
  keys: ["purgatory", "sweep_purgatory"],
  args: ["due", "keep", "...members"],
  idempotent: true,
  reply: (raw: number): Protected => (raw < 0 ? { ok: false, reason: "being_swept" } : { ok: true, added: raw }),
});

export const renew = defineScript({
  name: "files.renew",
  file: new URL("./scripts/renew.lua", import.meta.url),
  keys: ["purgatory", "sweep_purgatory"],
  args: ["due", "member"],
  idempotent: true,
  reply: (raw: 1 | 0 | -1): Renewed =>
    raw === 1 ? { ok: true } : { ok: false, reason: raw === 0 ? "gone" : "being_swept" },
});

export const unprotect = defineScript({
  name: "files.unprotect",
  file: new URL("./scripts/unprotect.lua", import.meta.url),
  keys: ["purgatory"],
  args: ["...members"],
  // A repeat would answer that nothing was removed, which means something else.
  idempotent: false,
  reply: (raw: number) => raw,
});

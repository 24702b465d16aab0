import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

export type AcquireRefusal = "same_host" | "other_host" | "malformed";

const ACQUIRE_CODES: Record<number, "acquired" | "already_held" | AcquireRefusal> = {
  1: "acquired",
  [-4]: "already_held",
  [-3]: "same_host",
  [-1]: "other_host",
  [-5]: "malformed",
};

export interface AcquireAnswer {
  readonly outcome: "acquired" | "already_held" | AcquireRefusal;
  /** Seconds since the present holder took it, where the lock tells. */
  readonly age: number | undefined;
  readonly holder: string | undefined;
}

/** Idempotent, because a repeat carries the same id and is recognised by it. */
export const acquire = defineScript({
  name: "lock.acquire",
  file: file("acquire"),
  keys: ["lock"],
  args: ["value", "hostname", "lock_id", "now", "lease_ms"],
  idempotent: true,
  reply: ([code, age, holder]: [number, string, string]): AcquireAnswer => ({
    outcome: ACQUIRE_CODES[code]!,
    age: age === "" ? undefined : Number(age),
    holder: holder === "" ? undefined : holder,
  }),
});

export type HoldAnswer = { readonly ok: true } | { readonly ok: false; readonly reason: "stolen" | "not_set" };

const holdAnswer = (code: number): HoldAnswer =>
  code === 1 ? { ok: true } : { ok: false, reason: code === -1 ? "stolen" : "not_set" };

export const renew = defineScript({
  name: "lock.renew",
  file: file("renew"),
  keys: ["lock"],
  args: ["lock_id", "lease_ms"],
  idempotent: true,
  reply: holdAnswer,
});

export type ReleaseAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "stolen" | "malformed" | "not_set" };

const RELEASE_REFUSALS = { [-1]: "stolen", [-2]: "malformed", [-3]: "not_set" } as const;

export const release = defineScript({
  name: "lock.release",
  file: file("release"),
  keys: ["lock"],
  args: ["lock_id", "mode"],
  idempotent: true,
  reply: (code: 1 | -1 | -2 | -3): ReleaseAnswer =>
    code === 1 ? { ok: true } : { ok: false, reason: RELEASE_REFUSALS[code] },
});

export const acquireToken = defineScript({
  name: "lock.acquire_token",
  file: file("acquire_token"),
  keys: ["lock"],
  args: ["token", "lease_ms"],
  idempotent: true,
  reply: (code: number): AcquireAnswer => ({ outcome: ACQUIRE_CODES[code]!, age: undefined, holder: undefined }),
});

export const renewToken = defineScript({
  name: "lock.renew_token",
  file: file("renew_token"),
  keys: ["lock"],
  args: ["token", "lease_ms"],
  idempotent: true,
  reply: holdAnswer,
});

export const delIfMatch = defineScript({
  name: "lock.del_if_match",
  file: file("del_if_match"),
  keys: ["lock"],
  args: ["token"],
  idempotent: true,
  reply: (code: number) => code === 1,
});

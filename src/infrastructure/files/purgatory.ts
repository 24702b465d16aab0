import type { KernelContext } from "../../kernel/context.ts";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { type FileMember, keys } from "./keys.ts";
import { type Protected, protect, type Renewed, renew, unprotect } from "./scripts.ts";

/** Where an object is. */
export interface FileLocation {
  readonly bucket: string;
  readonly key: string;
}

type PurgatoryContext = Pick<KernelContext, "redis">;

/** Redis keeps scores as doubles; six decimals are what times are written with everywhere. */
const scoreOf = (unixSeconds: number) => unixSeconds.toFixed(6);

/** Members of one script call. */
const BATCH = 100;
const PLACES = [keys.purgatory(), keys.sweepPurgatory()] as const;

/** The member that protects an upload. It has no hint, so that everybody who knows the key can name it. */
export function protectionOf({ bucket, key }: FileLocation): string {
  return canonicalJson({ bucket, key } satisfies FileMember);
}

/** The member that stands for a wanted deletion. It differs from the protection, so one never hides the other. */
export function deletionOf({ bucket, key }: FileLocation, hint: string): string {
  return canonicalJson({ bucket, key, expected: true, hint } satisfies FileMember);
}

/** Before an upload: if it never finishes, the sweep removes what it left. */
export function protectUntil(ctx: PurgatoryContext, member: string, until: number): Promise<Protected> {
  return ctx.redis.run(protect, [...PLACES], [scoreOf(until), "GT", member]);
}

export function renewUntil(ctx: PurgatoryContext, member: string, until: number): Promise<Renewed> {
  return ctx.redis.run(renew, [...PLACES], [scoreOf(until), member]);
}

/** Has objects deleted at `due`. Those that the sweep is deleting already need nothing more. */
export async function deleteAt(ctx: PurgatoryContext, deletions: readonly string[], due: number): Promise<void> {
  for (let start = 0; start < deletions.length; start += BATCH) {
    const batch = deletions.slice(start, start + BATCH);
    const outcome = await ctx.redis.run(protect, [...PLACES], [scoreOf(due), "LT", ...batch]);
    if (outcome.ok || batch.length === 1) continue;
    for (const deletion of batch) await ctx.redis.run(protect, [...PLACES], [scoreOf(due), "LT", deletion]);
  }
}

/** How many of them were still there to be taken off. */
export async function takeOff(ctx: PurgatoryContext, members: readonly string[]): Promise<number> {
  let removed = 0;
  for (let start = 0; start < members.length; start += BATCH)
    removed += await ctx.redis.run(unprotect, [keys.purgatory()], members.slice(start, start + BATCH));
  return removed;
}

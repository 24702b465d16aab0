import type { KernelContext } from "../../kernel/context.ts";
import type { Catalogue, CatalogueEntry } from "../../kernel/keyspace/index.ts";
import { lockErrors } from "./errors.ts";
import { ownerLock } from "./keys.ts";
import type { LockKindName } from "./kinds.ts";

/** A lock that is present now, as an operator sees it. Its id is not shown: whoever knows it passes the fence. */
export interface PresentLock {
  /** The key; only its pattern where names are secret. */
  readonly key: string;
  readonly kind: LockKindName;
  /** The hostname of the holder, where the lock tells. */
  readonly holder: string | undefined;
  /** Seconds since it was taken, where the lock tells. */
  readonly age: number | undefined;
  /** Seconds until it ends by itself; undefined for a lock that never would. */
  readonly ttl: number | undefined;
  readonly malformed: boolean;
}

const SCAN_COUNT = 1000;

/** Every present lock among the declared ones, by key. */
export async function listLocks(
  ctx: Pick<KernelContext, "redis" | "clock">,
  catalogue: Catalogue,
): Promise<PresentLock[]> {
  const declared = catalogue.entries.filter((entry) => entry.lock !== undefined);
  const fixed = declared.filter((entry) => entry.compiled.parameters.length === 0).map((entry) => entry.pattern);
  const open = declared.filter((entry) => entry.compiled.parameters.length > 0);
  const names = [...fixed, ...(await scanLocks(ctx, catalogue, open))];
  const present = await Promise.all(names.map((name) => inspect(ctx, catalogue, name)));
  return present.filter((lock) => lock !== undefined).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** Frees a lock whoever holds it; the holder notices at its next renewal or fenced script. */
export async function forceRelease(
  ctx: Pick<KernelContext, "redis">,
  catalogue: Catalogue,
  key: string,
): Promise<void> {
  if (catalogue.match(key)?.entry.lock === undefined) throw lockErrors.not_a_lock();
  if ((await ctx.redis.commands.del(ctx.redis.topology.key(key))) === 0) throw lockErrors.lock_absent();
}

/** One pass over the keyspace serves all patterns with parameters. */
async function scanLocks(
  ctx: Pick<KernelContext, "redis">,
  catalogue: Catalogue,
  open: readonly CatalogueEntry[],
): Promise<Set<string>> {
  const found = new Set<string>();
  if (open.length === 0) return found;
  const match = open.every((entry) => entry.pattern.includes("lock")) ? "*lock*" : "*";
  let cursor = "0";
  do {
    const [next, page] = await ctx.redis.commands.scan(cursor, "MATCH", match, "COUNT", SCAN_COUNT, "TYPE", "string");
    cursor = next;
    for (const name of page.map((rendered) => ctx.redis.topology.documented(rendered))) {
      const entry = catalogue.match(name)?.entry;
      if (entry?.lock !== undefined && entry.compiled.parameters.length > 0) found.add(name);
    }
  } while (cursor !== "0");
  return found;
}

async function inspect(
  ctx: Pick<KernelContext, "redis" | "clock">,
  catalogue: Catalogue,
  name: string,
): Promise<PresentLock | undefined> {
  const entry = catalogue.match(name)?.entry;
  if (entry?.lock === undefined) return undefined;
  const rendered = ctx.redis.topology.key(name);
  const [raw, ttl] = await Promise.all([ctx.redis.commands.getBuffer(rendered), ctx.redis.commands.pttl(rendered)]);
  if (raw === null) return undefined;
  let malformed = false;
  let holder: string | undefined;
  let age: number | undefined;
  try {
    entry.value.element?.decode(raw);
    if (entry.lock === "owner") {
      const owner = ownerLock.decode(raw);
      holder = owner.hostname;
      age = ctx.clock.now() - owner.acquired_at;
    }
  } catch {
    malformed = true;
  }
  return {
    key: entry.secret ? entry.pattern : name,
    kind: entry.lock,
    holder,
    age,
    ttl: ttl < 0 ? undefined : ttl / 1000,
    malformed,
  };
}

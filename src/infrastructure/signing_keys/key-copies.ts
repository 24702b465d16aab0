import { type CryptoKey, importJWK } from "jose";
import type { KernelContext } from "../../kernel/context.ts";
import type { RedisConnection } from "../../kernel/redis/index.ts";
import { errors } from "./errors.ts";
import { fetchPublishedKeys, type Issuer } from "./issuer.ts";
import { KEYS_TTL, keys, type PublishedKey } from "./keys.ts";

/**
 * The issuer is authoritative; we hold two copies of what it publishes.
 *
 *   process copy (300 s) -> Redis copy (3600 s) -> issuer
 *
 * A key that no copy knows may be brand new, so the Redis copy is read again and, if it is older than 60 s, fetched
 * again: a rotated key works at once, while tokens with invented key ids cost the issuer at most one question a minute.
 * When the issuer does not answer, the process copy serves for up to a day with a warning, and the issuer is left
 * alone for a while. An answer of the wrong shape counts as no answer and replaces nothing. A crash loses only the
 * process copy; losing the Redis copy costs one fetch.
 */

const PROCESS_COPY_AGE = 300;
const REFETCH_AGE = 60;
const STALE_AGE = 86_400;
/** How long a silent issuer is left alone: shorter while nobody can be verified at all. */
const PAUSE_WITH_COPY = 60;
const PAUSE_WITHOUT_COPY = 5;

const RSA_ALGORITHMS = new Set(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]);

interface KeyCopy {
  readonly keys: readonly PublishedKey[];
  /** When the issuer said so, by the wall clock. */
  readonly fetchedAt: number;
  /** When this process got it, by the monotonic clock. */
  readonly heldSince: number;
}

interface Held {
  copy: KeyCopy | undefined;
  fetching: Promise<KeyCopy> | undefined;
  leaveAloneUntil: number;
}

type KeyContext = Pick<KernelContext, "clock" | "cacheRedis" | "alerts" | "config" | "log">;

export interface VerificationKey {
  readonly algorithm: string;
  readonly key: CryptoKey | Uint8Array;
}

/** One set of copies per process, which a connection stands for. */
const held = new WeakMap<RedisConnection, Map<string, Held>>();

/** The key with this id that may verify signatures, or `unknown_key`. */
export async function verificationKey(ctx: KeyContext, issuer: Issuer, kid: string): Promise<VerificationKey> {
  const mine = heldBy(ctx, issuer);
  const first = usable(await currentCopy(ctx, issuer, mine), kid);
  if (first) return imported(first);

  const stored = await readStoredCopy(ctx, issuer, mine);
  const second = stored && usable(stored, kid);
  if (second) return imported(second);

  if (!stored || ctx.clock.now() - stored.fetchedAt >= REFETCH_AGE) {
    const third = usable(await fetchedOrStale(ctx, issuer, mine), kid);
    if (third) return imported(third);
  }
  throw errors.unknown_key();
}

function heldBy(ctx: KeyContext, issuer: Issuer): Held {
  const issuers = held.get(ctx.cacheRedis) ?? new Map<string, Held>();
  held.set(ctx.cacheRedis, issuers);
  const mine = issuers.get(issuer.address) ?? {
    copy: undefined,
    fetching: undefined,
    leaveAloneUntil: Number.NEGATIVE_INFINITY,
  };
  issuers.set(issuer.address, mine);
  return mine;
}

async function currentCopy(ctx: KeyContext, issuer: Issuer, mine: Held): Promise<KeyCopy> {
  if (mine.copy && ctx.clock.monotonic() - mine.copy.heldSince <= PROCESS_COPY_AGE) return mine.copy;
  return (await readStoredCopy(ctx, issuer, mine)) ?? (await fetchedOrStale(ctx, issuer, mine));
}

/** Takes over the copy in Redis; its age follows from what is left of its life. */
async function readStoredCopy(ctx: KeyContext, issuer: Issuer, mine: Held): Promise<KeyCopy | undefined> {
  const { commands, topology } = ctx.cacheRedis;
  let raw: Buffer | null;
  let left: number;
  try {
    [raw, left] = await Promise.all([
      commands.getBuffer(topology.key(issuer.copy)),
      commands.pttl(topology.key(issuer.copy)),
    ]);
  } catch (error) {
    ctx.log.warn({ err: error, issuer: issuer.name }, "the copy of the signing keys cannot be read");
    return undefined;
  }
  if (raw === null || left < 0) return undefined;
  try {
    const fetchedAt = ctx.clock.now() - (KEYS_TTL - left / 1000);
    mine.copy = { keys: keys[issuer.name].codec.decode(raw), fetchedAt, heldSince: ctx.clock.monotonic() };
    return mine.copy;
  } catch (error) {
    ctx.alerts.warning("signing_keys:malformed_copy", `${issuer.copy} is not a list of keys: ${String(error)}`);
    return undefined;
  }
}

async function fetchedOrStale(ctx: KeyContext, issuer: Issuer, mine: Held): Promise<KeyCopy> {
  const now = ctx.clock.monotonic();
  let reason: unknown = new Error("the issuer did not answer a moment ago");
  if (now >= mine.leaveAloneUntil)
    try {
      mine.fetching ??= fetchCopy(ctx, issuer, mine).finally(() => {
        mine.fetching = undefined;
      });
      return await mine.fetching;
    } catch (error) {
      reason = error;
    }
  const stale = mine.copy && ctx.clock.now() - mine.copy.fetchedAt <= STALE_AGE ? mine.copy : undefined;
  if (now >= mine.leaveAloneUntil)
    mine.leaveAloneUntil = ctx.clock.monotonic() + (stale ? PAUSE_WITH_COPY : PAUSE_WITHOUT_COPY);
  if (!stale) throw errors.signing_keys_unavailable({ retryAfter: PAUSE_WITHOUT_COPY, cause: reason });
  const age = Math.round(ctx.clock.now() - stale.fetchedAt);
  ctx.alerts.warning(
    `signing_keys:stale:${issuer.name}`,
    `the keys of ${issuer.name} cannot be fetched (${String(reason)}); a copy ${age} s old is used`,
  );
  return stale;
}

async function fetchCopy(ctx: KeyContext, issuer: Issuer, mine: Held): Promise<KeyCopy> {
  const published = await fetchPublishedKeys(ctx, issuer);
  mine.copy = { keys: published, fetchedAt: ctx.clock.now(), heldSince: ctx.clock.monotonic() };
  // Without Redis every process asks the issuer by itself, which is slower but right.
  const { commands, topology } = ctx.cacheRedis;
  await commands
    .set(topology.key(issuer.copy), keys[issuer.name].codec.encode(published), "PX", KEYS_TTL * 1000)
    .catch((error: unknown) => ctx.log.warn({ err: error, issuer: issuer.name }, "the signing keys cannot be kept"));
  return mine.copy;
}

function usable(copy: KeyCopy, kid: string): PublishedKey | undefined {
  return copy.keys.find(
    (key) =>
      key.kid === kid && key.use === "sig" && key.kty === "RSA" && key.alg !== undefined && RSA_ALGORITHMS.has(key.alg),
  );
}

const importedKeys = new WeakMap<PublishedKey, Promise<VerificationKey>>();

function imported(key: PublishedKey): Promise<VerificationKey> {
  const known = importedKeys.get(key);
  if (known) return known;
  const { kty, n, e, alg } = key;
  const importing = importJWK({ kty, n, e, alg }, alg).then(
    (result) => ({ algorithm: alg!, key: result }),
    () => {
      throw errors.unknown_key();
    },
  );
  importedKeys.set(key, importing);
  return importing;
}

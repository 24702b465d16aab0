import type { KernelContext } from "../../kernel/context.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { quarantineOf } from "../quarantine/index.ts";

/** Where a message was seen, and what it means that it is there. */
export interface Sighting {
  readonly uid: string;
  readonly channel: string;
  /** The key it was seen in. */
  readonly place: string;
  readonly state: string;
  readonly since: number | null;
  /** When something happens to it at the latest, where that is known. */
  readonly due: number | null;
  /** How many are before it, where there is an order. */
  readonly ahead: number | null;
  readonly failed_tries: number | null;
  readonly provider: string | null;
  readonly provider_id: string | null;
}

/** A place where messages of a channel stay. */
export type Station =
  /** Entries are JSON with a `uid`. */
  | { readonly kind: "list"; readonly key: KeyName<"list">; readonly state: string }
  | {
      readonly kind: "zset";
      readonly key: KeyName<"zset">;
      readonly state: string;
      readonly score: "due" | "since";
    }
  /** Members are the provider's ids; what they mean is in a hash of each. */
  | {
      readonly kind: "pending";
      readonly key: KeyName<"zset">;
      readonly state: string;
      readonly score: "due" | "since";
      hash(id: string): KeyName<"hash">;
      /** The field that says since when. */
      readonly since: string;
    }
  /** Entries name the provider's id only, so it must be known from elsewhere. */
  | {
      readonly kind: "ids";
      readonly type: "list" | "zset";
      readonly key: KeyName<"list" | "zset">;
      readonly state: string;
    };

type LookContext = Pick<KernelContext, "redis">;

const PAGE = 1_000;
const PENDING_PAGE = 500;

/**
 * Looks through the stations of a channel, page by page, while its jobs go on. A message that moves during the look may
 * be seen twice or not at all; whoever finds nothing looks once more.
 */
export async function lookFor(
  ctx: LookContext,
  channel: string,
  stations: readonly Station[],
  uids: readonly string[],
): Promise<readonly Sighting[]> {
  const wanted = new Set(uids);
  if (wanted.size === 0) return [];
  const seen: Sighting[] = [];
  for (const station of stations) {
    if (station.kind === "list") seen.push(...(await inList(ctx, channel, station, wanted)));
    else if (station.kind === "zset") seen.push(...(await inZset(ctx, channel, station, wanted)));
    else if (station.kind === "pending") seen.push(...(await inPending(ctx, channel, station, wanted)));
    if (station.kind !== "ids") seen.push(...(await inQuarantine(ctx, channel, station, wanted)));
  }
  const known = seen.filter(({ provider_id }) => provider_id !== null);
  if (known.length > 0)
    for (const station of stations)
      if (station.kind === "ids") seen.push(...(await byIds(ctx, channel, station, known)));
  return seen;
}

interface Entry {
  readonly uid?: unknown;
  readonly last_queued_at?: unknown;
  readonly retry?: unknown;
  readonly provider?: unknown;
  readonly push_ticket?: { readonly id?: unknown };
}

const numberOf = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : null);
const textOf = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);

/** Read by hand: an entry that its own job would refuse should be found all the same. */
function sightingIn(
  channel: string,
  { key, state }: { readonly key: string; readonly state: string },
  raw: Buffer | string,
  wanted: ReadonlySet<string>,
): Sighting | undefined {
  if (![...wanted].some((uid) => raw.includes(uid))) return undefined;
  let entry: Entry;
  try {
    entry = JSON.parse(raw.toString()) as Entry;
  } catch {
    return undefined;
  }
  if (typeof entry?.uid !== "string" || !wanted.has(entry.uid)) return undefined;
  return {
    uid: entry.uid,
    channel,
    place: key,
    state,
    since: numberOf(entry.last_queued_at),
    due: null,
    ahead: null,
    failed_tries: numberOf(entry.retry),
    provider: textOf(entry.provider),
    provider_id: textOf(entry.push_ticket?.id),
  };
}

async function inList(
  ctx: LookContext,
  channel: string,
  station: Extract<Station, { kind: "list" }>,
  wanted: ReadonlySet<string>,
): Promise<Sighting[]> {
  const seen: Sighting[] = [];
  for await (const { raw, ahead } of eachOfList(ctx, station.key)) {
    const sighting = sightingIn(channel, station, raw, wanted);
    if (sighting) seen.push({ ...sighting, ahead });
  }
  return seen;
}

async function inZset(
  ctx: LookContext,
  channel: string,
  station: Extract<Station, { kind: "zset" }>,
  wanted: ReadonlySet<string>,
): Promise<Sighting[]> {
  const seen = new Map<string, Sighting>();
  for await (const { member, score } of eachOfZset(ctx, station.key)) {
    const sighting = sightingIn(channel, station, member, wanted);
    // A scan may bring a member twice.
    if (sighting) seen.set(member, { ...sighting, [station.score]: score });
  }
  return [...seen.values()];
}

async function inPending(
  ctx: LookContext,
  channel: string,
  { key, state, score: means, hash, since }: Extract<Station, { kind: "pending" }>,
  wanted: ReadonlySet<string>,
): Promise<Sighting[]> {
  const seen = new Map<string, Sighting>();
  const { commands, topology } = ctx.redis;
  for await (const page of pages(eachOfZset(ctx, key), PENDING_PAGE)) {
    const hashes = await Promise.all(
      page.map(({ member }) => commands.hmget(topology.key(hash(member)), "uid", since, "provider")),
    );
    for (const [at, [uid, begun, provider]] of hashes.entries()) {
      if (typeof uid !== "string" || !wanted.has(uid)) continue;
      const { member, score } = page[at]!;
      const from = Number(begun);
      seen.set(member, {
        uid,
        channel,
        place: key,
        state,
        since: means === "since" ? score : begun && Number.isFinite(from) ? from : null,
        due: means === "due" ? score : null,
        ahead: null,
        failed_tries: null,
        provider: textOf(provider),
        provider_id: member,
      });
    }
  }
  return [...seen.values()];
}

async function inQuarantine(
  ctx: LookContext,
  channel: string,
  { key }: Station,
  wanted: ReadonlySet<string>,
): Promise<Sighting[]> {
  const aside = quarantineOf(key);
  const name = ctx.redis.topology.scriptKeys([key, aside])[1]!;
  const seen: Sighting[] = [];
  for await (const { raw } of eachOfRenderedList(ctx, name))
    for (const uid of wanted)
      if (raw.includes(uid))
        seen.push({
          uid,
          channel,
          place: aside,
          state: "set aside: nobody could read it; see `carillon quarantine`",
          since: quarantinedAt(raw),
          due: null,
          ahead: null,
          failed_tries: null,
          provider: null,
          provider_id: null,
        });
  return seen;
}

function quarantinedAt(raw: Buffer): number | null {
  try {
    return numberOf((JSON.parse(raw.toString()) as { quarantined_at?: unknown }).quarantined_at);
  } catch {
    return null;
  }
}

async function byIds(
  ctx: LookContext,
  channel: string,
  station: Extract<Station, { kind: "ids" }>,
  known: readonly Sighting[],
): Promise<Sighting[]> {
  const seen: Sighting[] = [];
  const look = (raw: Buffer | string, ahead: number | null, due: number | null) => {
    for (const { uid, provider, provider_id } of known)
      if (raw.includes(provider_id!))
        seen.push({
          ...{ uid, channel, place: station.key, state: station.state, since: null, due, ahead },
          ...{ failed_tries: null, provider, provider_id },
        });
  };
  if (station.type === "list")
    for await (const { raw, ahead } of eachOfList(ctx, station.key as KeyName<"list">)) look(raw, ahead, null);
  else for await (const { member, score } of eachOfZset(ctx, station.key as KeyName<"zset">)) look(member, null, score);
  return seen;
}

/** The entries of a list from its end: what is added meanwhile pushes the others along, so none is passed over. */
export function eachOfList(ctx: LookContext, key: KeyName<"list">) {
  return eachOfRenderedList(ctx, ctx.redis.topology.key(key));
}

export async function* eachOfRenderedList(
  { redis }: LookContext,
  name: string,
): AsyncGenerator<{ readonly raw: Buffer; readonly ahead: number }> {
  const length = await redis.commands.llen(name);
  if (length === 0) return;
  for (let from = 0; ; from += PAGE) {
    const raws = await redis.commands.lrangeBuffer(name, -(from + PAGE), -(from + 1));
    for (const [at, raw] of raws.entries()) yield { raw, ahead: Math.max(0, length - from - raws.length + at) };
    if (raws.length < PAGE) return;
  }
}

export async function* eachOfZset(
  { redis }: LookContext,
  key: KeyName<"zset">,
): AsyncGenerator<{ readonly member: string; readonly score: number }> {
  let cursor = "0";
  do {
    const [next, found] = await redis.commands.zscan(redis.topology.key(key), cursor, "COUNT", PAGE);
    for (let at = 0; at < found.length; at += 2) yield { member: found[at]!, score: Number(found[at + 1]) };
    cursor = next;
  } while (cursor !== "0");
}

async function* pages<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let page: T[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

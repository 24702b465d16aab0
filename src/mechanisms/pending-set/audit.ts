import type { Faults, HashCodec, InvariantContext, KeyName } from "../../kernel/keyspace/index.ts";

const PAGE = 500;

/** A pending set as its audit sees it. */
export interface AuditedSet<T> {
  readonly set: KeyName<"zset">;
  hash(member: string): KeyName<"hash">;
  readonly codec: HashCodec<T>;
}

interface Seen {
  readonly member: string;
  readonly score: number;
  /** Undefined where something else than a hash is. */
  readonly raw: Record<string, Buffer> | undefined;
}

/** Members a page at a time, the hashes of a page in one round trip. */
async function* pages(
  { redis: { commands, topology } }: InvariantContext,
  { set, hash }: Pick<AuditedSet<unknown>, "set" | "hash">,
): AsyncGenerator<readonly Seen[]> {
  for (let start = 0; ; start += PAGE) {
    const flat = await commands.zrange(topology.key(set), start, String(start + PAGE - 1), "WITHSCORES");
    const members = flat.filter((_, at) => at % 2 === 0);
    const raws = await Promise.all(
      members.map((member) => commands.hgetallBuffer(topology.key(hash(member))).catch(() => undefined)),
    );
    yield members.map((member, at) => ({ member, score: Number(flat[2 * at + 1]), raw: raws[at] }));
    if (members.length < PAGE) return;
  }
}

/** Members whose hash is missing or broken or has the given faults, and hashes without a member. */
export async function pendingFaults<T>(
  ctx: InvariantContext,
  audited: AuditedSet<T>,
  faultsOf: (member: string, score: number, value: T) => Iterable<string>,
): Promise<Faults> {
  const { set, codec } = audited;
  const faults = new Map<string, string>();
  for await (const page of pages(ctx, audited))
    for (const { member, score, raw } of page) {
      const value = decoded(codec, raw);
      for (const fault of typeof value === "string" ? [value] : faultsOf(member, score, value.value))
        faults.set(`${member} ${fault}`, `${set} ${member} ${fault}`);
    }
  for await (const member of alone(ctx, audited)) faults.set(member, `${set}:${member} is not in ${set}`);
  return faults;
}

function decoded<T>(codec: HashCodec<T>, raw: Seen["raw"]): { readonly value: T } | string {
  if (raw === undefined) return "has something else where its hash should be";
  if (Object.keys(raw).length === 0) return "has no hash";
  try {
    return { value: codec.decode(raw) };
  } catch {
    return "has a hash that does not have the declared shape";
  }
}

async function* alone(
  { redis: { commands, topology } }: InvariantContext,
  { set, hash }: Pick<AuditedSet<unknown>, "set" | "hash">,
): AsyncGenerator<string> {
  const prefix = topology.key(hash("x")).slice(0, -1);
  let cursor = "0";
  do {
    const [next, names] = await commands.scan(cursor, "MATCH", `${prefix}*`, "COUNT", PAGE);
    cursor = next;
    const members = names.map((name) => name.slice(prefix.length));
    const scores = members.length === 0 ? [] : await commands.zmscore(topology.key(set), ...members);
    for (const [at, member] of members.entries()) if (scores[at] === null) yield member;
  } while (cursor !== "0");
}

/** Where entries wait that are JSON with a `uid`. */
export interface Place {
  readonly key: KeyName<"list"> | KeyName<"zset">;
  readonly type: "list" | "zset";
}

/** What is in more than one of these places, or twice in one; a pending set counts as a place of those in its hashes. */
export async function inTwoPlaces(
  ctx: InvariantContext,
  what: string,
  places: readonly Place[],
  pending: Pick<AuditedSet<unknown>, "set" | "hash">,
): Promise<Faults> {
  const seen = new Map<string, string>();
  const twice = new Map<string, string>();
  const see = (uid: string | undefined, place: string) => {
    if (uid === undefined) return;
    const other = seen.get(uid);
    if (other === undefined) seen.set(uid, place);
    else twice.set(uid, `the ${what} ${uid} is in ${[other, place].sort().join(" and ")}`);
  };
  for (const place of places) for await (const raw of entriesIn(ctx, place)) see(uidOf(raw), place.key);
  for await (const page of pages(ctx, pending))
    for (const { raw } of page) see(raw?.uid?.toString("utf8"), pending.set);
  return twice;
}

async function* entriesIn({ redis: { commands, topology } }: InvariantContext, place: Place): AsyncGenerator<string> {
  const name = topology.key(place.key);
  for (let start = 0; ; start += PAGE) {
    const end = start + PAGE - 1;
    const raws = await (place.type === "zset"
      ? commands.zrange(name, start, String(end))
      : commands.lrange(name, start, end));
    yield* raws;
    if (raws.length < PAGE) return;
  }
}

/** Only the uid is looked for: whether an entry is sound is the audit's own question. */
function uidOf(raw: string): string | undefined {
  try {
    const { uid } = JSON.parse(raw) as { uid?: unknown };
    return typeof uid === "string" ? uid : undefined;
  } catch {
    return undefined;
  }
}

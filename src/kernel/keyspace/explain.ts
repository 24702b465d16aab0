import type { Redis } from "ioredis";
import type { KernelContext } from "../context.ts";
import type { Catalogue, CatalogueEntry, Match } from "./catalogue.ts";
import { type Depth, inspect } from "./inspect.ts";
import { ttlText } from "./reference.ts";
import { decodeElements } from "./sample.ts";

/** What a name means and, if it is a key on the server, what it holds. */
export type Explanation =
  | {
      readonly known: true;
      readonly kind: "key" | "channel";
      readonly pattern: string;
      /** What the name has in place of the pattern's parameters; null for secret patterns. */
      readonly parameters: Readonly<Record<string, string>> | null;
      readonly type: string;
      readonly family: string;
      readonly domain: string;
      readonly ttl: string;
      readonly origin: string;
      readonly shape: string;
      readonly doc: string;
      readonly shared: boolean;
      readonly secret: boolean;
      readonly cache: boolean;
      /** Undefined when no server was asked, or the name is a pattern or a channel. */
      readonly live: LiveValue | undefined;
    }
  | { readonly known: false; readonly name: string; readonly near: readonly NearPattern[] };

export type LiveValue =
  | { readonly exists: false }
  | {
      readonly exists: true;
      readonly type: string;
      /** Seconds left; null: never expires. */
      readonly expires_in: number | null;
      readonly bytes: number;
      /** Bytes of a string, elements of a collection; null when withheld. */
      readonly length: number | null;
      /** Decoded: at most a few elements of a collection. Undefined when withheld, too large or undecodable. */
      readonly value: unknown;
      /** Of a zset: the score of each element, null for one that has left since. */
      readonly scores?: readonly (number | null)[];
      readonly complete: boolean;
      /** Why there is no value. */
      readonly note: string | undefined;
    };

export interface NearPattern {
  readonly pattern: string;
  readonly kind: "key" | "channel";
  readonly doc: string;
}

const SHOWN: Depth = { elements: 10, fields: 100, stringBytes: 64 * 1024, usageSamples: 5 };
const NEAR = 5;
const NEAR_ENOUGH = 0.5;

/**
 * Explains a key, a channel or a pattern. The name may be as documented or as a Cluster has it, with its family's tag.
 * With a context it also looks at the server; values of secret patterns are never read.
 */
export async function explain(
  catalogue: Catalogue,
  given: string,
  ctx?: Pick<KernelContext, "redis" | "cacheRedis">,
): Promise<Explanation> {
  const name = given.replace(/^\{[^}]+\}:(?=.)/, "");
  const declared = catalogue.entries.find(({ pattern }) => pattern === given || pattern === name);
  const match = declared ? { entry: declared, parameters: {} } : findMatch(catalogue, given, name);
  if (!match) return { known: false, name: given, near: nearPatterns(catalogue, name) };
  const { entry, parameters } = match;
  const concrete = !declared || entry.compiled.parameters.length === 0;
  return {
    known: true,
    kind: entry.kind,
    pattern: entry.pattern,
    parameters: entry.secret ? null : parameters,
    type: entry.type,
    family: entry.family,
    domain: entry.domain,
    ttl: entry.kind === "channel" ? "" : ttlText(entry.ttl),
    origin: entry.origin,
    shape: entry.value.shape,
    doc: entry.doc,
    shared: entry.shared,
    secret: entry.secret,
    cache: entry.cache,
    live: ctx && concrete && entry.kind === "key" ? await look(ctx, entry, name) : undefined,
  };
}

function findMatch(catalogue: Catalogue, ...names: readonly string[]): Match | undefined {
  for (const name of names) {
    const match = catalogue.match(name) ?? catalogue.matchChannel(name);
    if (match) return match;
  }
  return undefined;
}

async function look(
  ctx: Pick<KernelContext, "redis" | "cacheRedis">,
  entry: CatalogueEntry,
  name: string,
): Promise<LiveValue> {
  const { commands, topology } = entry.cache ? ctx.cacheRedis : ctx.redis;
  if (entry.secret) return lookFromOutside(commands, topology.key(name));
  const copies = await inspect(commands, topology.copies(name), SHOWN);
  const key = copies.find(({ type }) => type !== "none");
  if (!key) return { exists: false };
  const outside = {
    exists: true,
    type: key.type,
    expires_in: key.pttl < 0 ? null : key.pttl / 1000,
    bytes: key.bytes,
    length: key.length,
  } as const;
  const without = (note: string) => ({ ...outside, value: undefined, complete: false, note });
  if (key.type !== entry.type) return without(`not decoded: it is a ${key.type}, declared as ${entry.type}`);
  if (key.sample === undefined) return without("too large to show");
  try {
    const found = { ...outside, value: decodeElements(entry, key), complete: key.whole, note: undefined };
    if (key.type !== "zset") return found;
    const scores = await commands.zmscore(key.name, ...(key.sample as readonly Buffer[]));
    return { ...found, scores: scores.map((score) => (score === null ? null : Number(score))) };
  } catch (error) {
    return without(`undecodable: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Of a secret key the server is not even asked for its value. */
async function lookFromOutside(commands: Redis, name: string): Promise<LiveValue> {
  const [type, pttl, bytes] = await Promise.all([
    commands.type(name),
    commands.pttl(name),
    commands.memory("USAGE", name),
  ]);
  if (type === "none") return { exists: false };
  return {
    exists: true,
    type,
    expires_in: pttl < 0 ? null : pttl / 1000,
    bytes: Number(bytes ?? 0),
    length: null,
    value: undefined,
    complete: false,
    note: "withheld, because its pattern is secret",
  };
}

/** The patterns that look most like the name, for somebody who mistyped it. */
function nearPatterns(catalogue: Catalogue, name: string): readonly NearPattern[] {
  const segments = name.split(":");
  return catalogue.entries
    .map((entry) => ({ entry, likeness: likeness(segments, entry.pattern.split(":")) }))
    .filter((candidate) => candidate.likeness >= NEAR_ENOUGH)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, NEAR)
    .map(({ entry: { pattern, kind, doc } }) => ({ pattern, kind, doc }));
}

/** From 0 to 1: how alike the segments are, place by place. A parameter is like anything, but less than an equal word. */
function likeness(name: readonly string[], pattern: readonly string[]): number {
  const places = Math.max(name.length, pattern.length);
  let alike = 0;
  for (let place = 0; place < places; place++) {
    const [own, declared] = [name[place], pattern[place]];
    if (own === undefined || declared === undefined) continue;
    alike += declared.includes("{") ? 0.5 : 1 - distance(own, declared) / Math.max(own.length, declared.length, 1);
  }
  return alike / places;
}

/** Letters to change, add or drop to get from one word to the other. */
function distance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++)
      current.push(
        Math.min(
          previous[column]! + 1,
          current[column - 1]! + 1,
          previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1),
        ),
      );
    previous = current;
  }
  return previous[to.length]!;
}

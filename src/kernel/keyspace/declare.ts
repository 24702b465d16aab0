import type { Codec, HashCodec } from "./codec.ts";
import { text } from "./codec.ts";
import { type CompiledPattern, compilePattern, type ParameterArguments } from "./pattern.ts";

export type RedisType = "string" | "list" | "set" | "zset" | "hash" | "stream";

declare const redisType: unique symbol;
/** The name of a key that holds this Redis type; to Redis and ioredis it is just a string. */
export type KeyName<Type extends RedisType = RedisType> = string & { readonly [redisType]: Type };

declare const channelBrand: unique symbol;
export type ChannelName = string & { readonly [channelBrand]: true };

/** When a key may expire. The auditor reports a TTL that breaks its rule. */
export type TtlRule =
  /** Never expires. */
  | { readonly rule: "none" }
  /** Always has a TTL, of at most this many seconds if a bound is known. */
  | { readonly rule: "required"; readonly max?: number; readonly text?: string }
  /** May or may not have one. */
  | { readonly rule: "optional"; readonly max?: number; readonly text?: string };

export const forever: TtlRule = { rule: "none" };

/** The key always expires, at most `max` seconds from any moment. */
export function expires(max?: number, text?: string): TtlRule {
  return { rule: "required", max, text };
}

export function mayExpire(max?: number, text?: string): TtlRule {
  return { rule: "optional", max, text };
}

export type Origin = "documented" | "carillon";

export interface DeclarationOptions<Pattern extends string = string> {
  /** What the key is for, in a sentence an operator understands. */
  readonly doc: string;
  /** Default: never expires. */
  readonly ttl?: TtlRule;
  /** Whether the name comes from the documented keyspace (default) or is one of Carillon's own. */
  readonly origin?: Origin;
  /** What parameters may hold; default one segment without a colon. */
  readonly params?: Partial<Record<Extract<ParameterName<Pattern>, string>, RegExp>>;
  /** Every family's scripts may append to it; on a Cluster each family has its own copy. */
  readonly shared?: boolean;
  /** Its parameter or value is a secret or an address: only the pattern is ever shown. */
  readonly secret?: boolean;
  /** Can be lost without harm: may live on a second server that evicts. */
  readonly cache?: boolean;
  /** This key is a lock of that kind, so admin pages can list and release it. */
  readonly lock?: "basic" | "token" | "owner";
  /** A sorted set whose scores are the unix times from which somebody should take its entries: warned of when nobody does. */
  readonly due?: boolean;
  /** A list whose entries stay until a person decides or newer ones push them out: that they wait is nothing to warn of. */
  readonly lingers?: boolean;
  /** This key is the run report of a job. */
  readonly report?: { readonly runner: string; readonly prefix?: "last_"; readonly unit: "seconds" | "milliseconds" };
}

type ParameterName<Pattern extends string> = Pattern extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterName<Rest>
  : never;

export interface ValueShape {
  readonly shape: string;
  /** Decodes the value of a string, or one element of a list, set, zset or stream. */
  readonly element?: Codec<unknown>;
  readonly hash?: HashCodec<unknown>;
}

/** A declaration before its family is known. */
export interface Declaration<
  Pattern extends string = string,
  Type extends RedisType | "channel" = RedisType | "channel",
> {
  readonly pattern: Pattern;
  readonly kind: Type extends "channel" ? "channel" : "key";
  readonly type: Type;
  readonly value: ValueShape;
  readonly compiled: CompiledPattern;
  readonly ttl: TtlRule;
  readonly origin: Origin;
  readonly doc: string;
  readonly shared: boolean;
  readonly secret: boolean;
  readonly cache: boolean;
  readonly lock: DeclarationOptions["lock"];
  readonly due: boolean;
  readonly lingers: boolean;
  readonly report: DeclarationOptions["report"];
}

export interface CodecDeclaration<P extends string, T extends RedisType | "channel", C> extends Declaration<P, T> {
  readonly codec: C;
}

function declare<P extends string, T extends RedisType | "channel", C>(
  type: T,
  pattern: P,
  codec: C,
  value: ValueShape,
  options: DeclarationOptions<P>,
): CodecDeclaration<P, T, C> {
  return {
    pattern,
    kind: (type === "channel" ? "channel" : "key") as CodecDeclaration<P, T, C>["kind"],
    type,
    codec,
    value,
    compiled: compilePattern(pattern, options.params as Record<string, RegExp | undefined>),
    ttl: options.ttl ?? forever,
    origin: options.origin ?? "documented",
    doc: options.doc,
    shared: options.shared ?? false,
    secret: options.secret ?? false,
    cache: options.cache ?? false,
    lock: options.lock,
    due: options.due ?? false,
    lingers: options.lingers ?? false,
    report: options.report,
  };
}

const element = <T>(codec: Codec<T>): ValueShape => ({ shape: codec.shape, element: codec as Codec<unknown> });

export function string<const P extends string, T>(pattern: P, codec: Codec<T>, options: DeclarationOptions<P>) {
  return declare("string", pattern, codec, element(codec), options);
}

export function list<const P extends string, T>(pattern: P, codec: Codec<T>, options: DeclarationOptions<P>) {
  return declare("list", pattern, codec, element(codec), options);
}

export function set<const P extends string, T>(pattern: P, codec: Codec<T>, options: DeclarationOptions<P>) {
  return declare("set", pattern, codec, element(codec), options);
}

/** A sorted set; `score` says what its scores mean. */
export function zset<const P extends string, T>(
  pattern: P,
  codec: Codec<T>,
  options: DeclarationOptions<P> & { readonly score: string },
) {
  return declare("zset", pattern, codec, { ...element(codec), shape: `${codec.shape} → ${options.score}` }, options);
}

export function hash<const P extends string, T>(pattern: P, codec: HashCodec<T>, options: DeclarationOptions<P>) {
  return declare("hash", pattern, codec, { shape: codec.shape, hash: codec as HashCodec<unknown> }, options);
}

export function stream<const P extends string, T>(pattern: P, codec: HashCodec<T>, options: DeclarationOptions<P>) {
  return declare("stream", pattern, codec, { shape: codec.shape, hash: codec as HashCodec<unknown> }, options);
}

export function channel<const P extends string, T>(
  pattern: P,
  codec: Codec<T>,
  options: Omit<DeclarationOptions<P>, "ttl">,
) {
  return declare("channel", pattern, codec, element(codec), options);
}

/** Plain text members, the commonest element of all. */
export const member = text;

/** A declaration inside its family: call it with the parameters to get the key's name. */
export type Key<D extends Declaration> = Omit<D, "compiled"> & {
  readonly compiled: CompiledPattern;
  readonly family: string;
  (...parameters: ParameterArguments<D["pattern"]>): D["type"] extends RedisType ? KeyName<D["type"]> : ChannelName;
};

/** Any key of any family, as catalogue and auditor see it. */
export type AnyKey = Declaration & { readonly family: string };

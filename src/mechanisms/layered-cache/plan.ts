import type { ChannelName, Codec, KeyName } from "../../kernel/keyspace/index.ts";

/** What a frame on a cache channel says. Times are unix seconds; a frame without one is taken in the order it came. */
export type CacheMessage =
  | {
      readonly kind: "fill";
      readonly id: string;
      /** The value as the family's codec writes it: frames carry it as it is. */
      readonly encoded: Buffer;
      /** When the source was read, or just before. */
      readonly checkedAt?: number;
    }
  | {
      readonly kind: "purge";
      readonly ids: readonly string[] | "all";
      /** What was read before this time is stale; absent: everything is. */
      readonly minCheckedAt?: number;
    };

/** Entries whose truth depends on frames having arrived: they are dropped whenever frames may have been missed. */
export const COLLAB = "collab";

/**
 * One cached family: which layers it has, how its values and frames look, and where they come from. Every name is a
 * declared key or channel of the family's own domain.
 */
export interface CachePlan<Value> {
  /** Names the family in warnings, metrics and on the local disk. */
  readonly name: string;
  readonly codec: Codec<Value>;
  /** Seconds that a value may be served from this process's memory and disk. */
  readonly ttl: number;
  /** Default `collab`. Any other tag survives restarts and reconnects, which only immutable values should. */
  readonly tag?: string;
  /** How many values the memory layer keeps at least; it forgets what was not used for longest. Default 10,000. */
  readonly maxEntries?: number;
  /** Default true, if the process has a cache folder at all. */
  readonly disk?: boolean;
  /** The layer in Redis, if the family has one. */
  readonly redis?: { key(id: string): KeyName<"string">; readonly ttl: number };
  /**
   * The lock that one filler holds, with its companion that names the holder. Without it every process reads the source
   * for itself, and a slow reader is not fenced off by a purge, so stale values end with their TTL only.
   */
  readonly lock?: { key(id: string): KeyName<"string">; owner(id: string): KeyName<"string"> };
  readonly channel?: {
    readonly name: ChannelName;
    readonly frames: Codec<CacheMessage>;
    /** Default true: fills are published too. False: the channel only knows purges. */
    readonly pushes?: boolean;
    /** Default true. False: the channel only knows fills. */
    readonly purges?: boolean;
  };
  /** Reads the source for all ids at once; ids that it does not know are missing from the answer. */
  source(ids: readonly string[]): Promise<ReadonlyMap<string, Value>>;
  /** Cached and answered in place of a value when the source has none. Without it absence is never cached. */
  readonly absent?: Value;
}

/** A frame codec of another shape, seen as cache messages. */
export function messages<Frame>(
  frames: Codec<Frame>,
  meaning: { write(message: CacheMessage): Frame; read(frame: Frame): CacheMessage },
): Codec<CacheMessage> {
  return {
    shape: frames.shape,
    encode: (message) => frames.encode(meaning.write(message)),
    decode: (raw) => meaning.read(frames.decode(raw)),
  };
}
